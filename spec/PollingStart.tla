---------------------------- MODULE PollingStart ----------------------------
(* The state of one runtime of the poller, and its way in: it is commanded, *)
(* acquires or is refused, and has its watchers on before anything slow.    *)
(* PollingWork has what follows, PollingOwnership the world and what holds. *)
EXTENDS Naturals

CONSTANTS
    Runtimes,   \* {"new"}, or {"old", "new"}: the old one is superseded by a reload
    Causes,     \* which faults and commands there are; strings
    Budget,     \* how many of them together
    ThreadMode, \* the owner publishes thread mode: who is refused may become its follower
    Background, \* this process is a background child (print or json run mode)
    Off         \* the guards and permits taken away; {} is the protocol

ASSUME Runtimes \in {{"new"}, {"old", "new"}}

VARIABLES
    node,       \* node[r]: the runtime's phase, and what it remembers: waiting for a call, entry shown, session
    poller,     \* poller[r]: off, pending or running; live: loops that have not ended
    outside,    \* outside[r]: calls not answered, watchers on, a request open at the service, loss noticed,
                \* session alive, whether it wishes to poll, an old session whose shutdown is still to come
    entry,      \* the registry's entry: owner (a runtime, former: this process before a crash, other, none), cwd, live, id
    passed,     \* the lease, last refreshed from here, is older than STALE_HEARTBEAT
    busy,       \* the registry's guard is held by somebody; every transaction fails
    paused,     \* this process is stopped
    reloaded,   \* the new runtime is there
    budget

vars == <<node, poller, outside, entry, passed, busy, paused, reloaded, budget>>
key == <<entry, passed>>
system == <<busy, paused, reloaded>>

Guard(name, holds)  == name \in Off \/ holds
Permit(name, holds) == name \notin Off /\ holds

Spend(cause) == cause \in Causes /\ budget > 0 /\ budget' = budget - 1
Least(used) == CHOOSE n \in 1..4 : n \notin used /\ \A m \in 1..4 : m < n => m \in used

None == [owner |-> "none", cwd |-> "there", live |-> FALSE, id |-> 0]
Other(cwd) == [owner |-> "other", cwd |-> cwd, live |-> TRUE, id |-> Least({node[r].shown : r \in Runtimes})]

Idle == [phase |-> "idle", waiting |-> FALSE, shown |-> 0, session |-> 0]
Alone == [calls |-> {}, watched |-> FALSE, asking |-> FALSE, noticed |-> FALSE, live |-> 0, wish |-> FALSE, closing |-> 0]

Starting == {"refreshing", "preparing", "launching", "confirming"}
Entering == {"deferred", "acquiring", "resuming", "electing", "registering"}
Abandoned == {"losing", "unwinding", "suspending", "retiring"}
AtRest == {"idle", "suspended", "retired"}
Modes == {"plain", "force", "elect", "resume"}

Runs(r) == ~paused /\ (r = "old" \/ reloaded)
Mine(r) == entry.owner = r
Lost(r) == ~Mine(r) \/ passed
Stale == IF entry.owner \in Runtimes THEN passed ELSE entry.owner # "none" /\ ~entry.live
LiveOther == entry.owner = "other" /\ entry.live

(* Every older runtime of this process has retired, and its loops have ended. *)
PredecessorGone(r) == \A q \in Runtimes \ {r} : r = "new" => node[q].phase = "retired" /\ poller[q].live = 0

-----------------------------------------------------------------------------
(* Ways to move a runtime. *)
To(r, phase, waiting, shown) ==
    node' = [node EXCEPT ![r].phase = phase, ![r].waiting = waiting, ![r].shown = shown]
Call(r, call) == outside' = [outside EXCEPT ![r].calls = @ \cup {call}]

(* The run ends on the way to `phase`: watchers off, polling to stop.  What was shown is kept for a call on its way. *)
Shown(r, waiting) == IF waiting THEN node[r].shown ELSE 0
Down(r, phase, waiting, calls) ==
    /\ To(r, phase, waiting, Shown(r, waiting))
    /\ poller' = [poller EXCEPT ![r].phase = "off"]
    /\ outside' = [outside EXCEPT ![r].calls = calls, ![r].watched = FALSE]

-----------------------------------------------------------------------------
(* A person connects, also while the last run is still being stopped after a loss. *)
Start(r) ==
    /\ Runs(r) /\ Spend("start")
    /\ node[r].phase \in {"idle", "suspended", "losing"}
    /\ Guard("interactive", ~Background)
    /\ Guard("predecessor_stopped", PredecessorGone(r))
    /\ node[r].phase = "losing" => Guard("run_has_ended", ~node[r].waiting)
    /\ To(r, "acquiring", TRUE, 0) /\ Call(r, "plain")
    /\ UNCHANGED <<poller, key, system>>

(* The person confirms the takeover that was offered. *)
Force(r) ==
    /\ Runs(r) /\ Spend("confirm")
    /\ node[r].phase = "idle"
    /\ Guard("was_shown", node[r].shown # 0)
    /\ To(r, "acquiring", TRUE, node[r].shown) /\ Call(r, "force")
    /\ UNCHANGED <<poller, key, system>>

(* Somebody stands for election (Succession says when): a follower, or whoever follows without this machine's help. *)
Elect(r) ==
    /\ Runs(r) /\ Spend("elect")
    /\ \/ node[r].phase = "follower"
       \/ /\ node[r].phase = "idle"
          /\ Guard("interactive", ~Background) /\ Guard("predecessor_stopped", PredecessorGone(r))
    /\ To(r, "electing", TRUE, entry.id) /\ Call(r, "elect")
    /\ UNCHANGED <<poller, key, system>>

(* A session begins.  It resumes what was left here, and neither creates nor steals. *)
SessionStart(r) ==
    LET around == outside[r]
        session == Least({around.live, around.closing})
        resumes == /\ Guard("interactive", ~Background)
                   /\ Guard("left_here", Mine(r) \/ (entry.owner # "none" /\ entry.cwd = "here"))
                   /\ Permit("session_resumes", Stale \/ entry.owner \in Runtimes)
    IN  /\ Runs(r) /\ Spend("session")
        /\ around.live = 0 \/ ("late" \in Causes /\ around.closing = 0)
        /\ node[r].phase \in {"idle", "suspended", "follower", "active", "cleaning"} \cup Entering \cup Starting
        /\ node' = [node EXCEPT ![r] =
             IF @.phase \notin AtRest THEN [@ EXCEPT !.session = session]
             ELSE IF resumes THEN [phase |-> "deferred", waiting |-> FALSE, shown |-> entry.id, session |-> session]
             ELSE [@ EXCEPT !.phase = "idle", !.session = session]]
        /\ outside' = [outside EXCEPT ![r].live = session, ![r].wish = @ \/ node[r].phase \in AtRest,
                                      ![r].closing = IF around.live # 0 THEN around.live ELSE @]
        /\ UNCHANGED <<poller, key, system>>

(* A person disconnects: a leader says goodbye first, then everybody stops and releases. *)
Stop(r) ==
    /\ Runs(r) /\ Spend("stop")
    /\ LET quiet == [outside EXCEPT ![r].wish = FALSE] IN
       CASE node[r].phase = "active" ->
                /\ To(r, "cleaning", TRUE, 0) /\ UNCHANGED poller
                /\ outside' = [quiet EXCEPT ![r].calls = @ \cup {"clean_up"}]
         [] node[r].phase \in Entering \cup Starting \cup {"losing", "suspending"} ->
                /\ To(r, "unwinding", node[r].waiting, Shown(r, node[r].waiting))
                /\ poller' = [poller EXCEPT ![r].phase = "off"]
                /\ outside' = [quiet EXCEPT ![r].watched = FALSE]
         [] node[r].phase \in {"idle", "suspended"} ->
                /\ To(r, "releasing", FALSE, 0) /\ UNCHANGED poller
                /\ outside' = [quiet EXCEPT ![r].calls = @ \cup {"release"}]
         [] node[r].phase = "follower" ->
                To(r, "idle", FALSE, 0) /\ UNCHANGED poller /\ outside' = quiet
         [] OTHER -> FALSE
    /\ UNCHANGED <<key, system>>

(* A session ends, the process stays: what the runtime does about it, with `around` as the rest of outside[r]. *)
SessionEnds(r, around) ==
    LET halts == node[r].phase \in Entering \cup Starting \cup {"active"}
    IN  /\ node' = [node EXCEPT ![r] =
             IF halts THEN [@ EXCEPT !.phase = "suspending", !.shown = Shown(r, node[r].waiting), !.session = 0]
             ELSE IF @.phase = "follower" THEN Idle ELSE [@ EXCEPT !.session = 0]]
        /\ poller' = IF halts THEN [poller EXCEPT ![r].phase = "off"] ELSE poller
        /\ outside' = [outside EXCEPT ![r] = [around EXCEPT !.watched = @ /\ ~halts]]
HearsEnd(r, session) ==
    node[r].phase \notin {"suspending", "retiring", "retired"} /\ Guard("current_session", session = node[r].session)

Suspend(r) ==
    /\ Runs(r) /\ Spend("suspend")
    /\ HearsEnd(r, outside[r].live)
    /\ SessionEnds(r, [outside[r] EXCEPT !.live = 0, !.wish = FALSE])
    /\ <<node, outside>>' # <<node, outside>>
    /\ UNCHANGED <<key, system>>

(* The shutdown of an old session comes after its successor has begun. *)
LateSuspend(r) ==
    /\ Runs(r) /\ outside[r].closing # 0
    /\ LET around == [outside[r] EXCEPT !.closing = 0] IN
       IF HearsEnd(r, outside[r].closing) THEN SessionEnds(r, around)
       ELSE outside' = [outside EXCEPT ![r] = around] /\ UNCHANGED <<node, poller>>
    /\ UNCHANGED <<key, system, budget>>

-----------------------------------------------------------------------------
(* The deferred start of a session has its turn. *)
AutoRun(r) ==
    /\ Runs(r) /\ node[r].phase = "deferred"
    /\ Guard("predecessor_stopped", PredecessorGone(r))
    /\ To(r, "resuming", TRUE, node[r].shown) /\ Call(r, "resume")
    /\ UNCHANGED <<poller, key, system, budget>>

(* What the registry answers (locks.md 7.1).  Exact is the entry that was shown or observed. *)
Won(r, mode) ==
    LET exact == entry.owner # "none" /\ entry.id = node[r].shown
        open == entry.owner \in {"none", r} \/ Stale \/ (entry.owner = "old" /\ r = "new")
    IN  CASE mode = "plain"  -> open
          [] mode = "force"  -> open \/ Guard("exact_owner", exact)
          [] mode = "elect"  -> entry.owner = "none" \/ (Stale /\ exact)
          [] mode = "resume" -> open /\ (Mine(r) \/ Guard("observed_still_there", exact))
Write(r) ==
    IF Mine(r) THEN UNCHANGED key
    ELSE entry' = [owner |-> r, cwd |-> "here", live |-> TRUE, id |-> 0] /\ passed' = FALSE

(* A call of a run that was abandoned returns: it may land, but it starts nothing. *)
Settle(r, call) ==
    /\ outside' = [outside EXCEPT ![r].calls = @ \ {call}]
    /\ IF node[r].phase \in Abandoned THEN To(r, node[r].phase, FALSE, 0) ELSE UNCHANGED node
    /\ UNCHANGED poller

(* Watchers run from the acquisition on, before anything slow. *)
Acquire(r, mode) ==
    /\ Runs(r) /\ ~busy /\ mode \in outside[r].calls
    /\ IF Won(r, mode) THEN Write(r) ELSE UNCHANGED key
    /\ IF node[r].phase \notin {"acquiring", "resuming", "electing"} THEN Settle(r, mode)
       ELSE /\ UNCHANGED poller
            /\ IF Won(r, mode) THEN
                  /\ To(r, "refreshing", FALSE, 0)
                  /\ outside' = [outside EXCEPT ![r].calls = @ \ {mode}, ![r].watched = TRUE, ![r].noticed = FALSE]
               ELSE IF node[r].phase = "acquiring" THEN
                  /\ To(r, "registering", TRUE, entry.id)
                  /\ outside' = [outside EXCEPT ![r].calls = (@ \ {mode}) \cup {"register"}]
               ELSE
                  /\ To(r, "idle", FALSE, 0)
                  /\ outside' = [outside EXCEPT ![r].calls = @ \ {mode}]
    /\ UNCHANGED <<system, budget>>

(* Unknown: it failed, and may have written.  A session tries again, a person is told and everything is released. *)
AcquireFails(r, mode, written) ==
    /\ Runs(r) /\ busy /\ mode \in outside[r].calls
    /\ IF written THEN Won(r, mode) /\ Write(r) ELSE UNCHANGED key
    /\ CASE node[r].phase = "resuming" ->
              outside' = [outside EXCEPT ![r].calls = (@ \ {mode}) \cup {"resume"}] /\ UNCHANGED <<node, poller>>
         [] node[r].phase \in {"acquiring", "electing"} -> Down(r, "unwinding", FALSE, outside[r].calls \ {mode})
         [] OTHER -> Settle(r, mode)
    /\ <<outside, entry>>' # <<outside, entry>>
    /\ UNCHANGED <<system, budget>>

(* Who was refused asks the owner to take it as a follower. *)
Register(r) ==
    /\ Runs(r) /\ ThreadMode /\ LiveOther
    /\ node[r].phase = "registering" /\ "register" \in outside[r].calls
    /\ To(r, "follower", FALSE, 0)
    /\ outside' = [outside EXCEPT ![r].calls = @ \ {"register"}]
    /\ UNCHANGED <<poller, key, system, budget>>

(* Without thread mode there are no followers: then, and only then, the takeover is offered. *)
RegisterFails(r) ==
    /\ Runs(r)
    /\ node[r].phase = "registering" /\ "register" \in outside[r].calls
    /\ To(r, "idle", FALSE, IF Guard("no_thread_mode", ~ThreadMode) THEN node[r].shown ELSE 0)
    /\ outside' = [outside EXCEPT ![r].calls = @ \ {"register"}]
    /\ UNCHANGED <<poller, key, system, budget>>

=============================================================================
