------------------------- MODULE PollingOwnership -------------------------
(* Does polling run exactly while the lease is owned, through start, loss,  *)
(* rollback, suspend and reload?  One process's side: one runtime, or an    *)
(* old and a new one after a reload, and the registry's entry for one bot.  *)
(* (locks.md 9, 10, 14.4; S25-S30, S33, S34, S37; V10-V12; K5, K6, K11.)    *)
(*                                                                          *)
(* Polling *starts* only while owned; nothing is sent under an own lease    *)
(* that has passed; a displaced poller stops by its next check.  A forced   *)
(* takeover therefore overlaps with us by at most one check, and a request  *)
(* that was open when the lease passed stays open.  No law can close that:  *)
(* the resource's fence covers it (NoStaleEffect of LeaderElection).        *)
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

(* A follower stands for election (Succession says when). *)
Elect(r) ==
    /\ Runs(r) /\ Spend("elect")
    /\ node[r].phase = "follower"
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

-----------------------------------------------------------------------------
(* What a look at the registry does to a runtime that is watched: on to `goal` when it was good, otherwise out. *)
Look(r, saw, good, goal, healthy) ==
    LET stays == healthy /\ (good \/ Permit("unknown_is_no_loss", saw = "unknown"))
    IN  /\ node' = [node EXCEPT ![r].phase =
             IF healthy /\ good THEN goal ELSE IF stays THEN @ ELSE IF @ = "cleaning" THEN "unwinding" ELSE "losing"]
        /\ poller' = IF stays THEN poller ELSE [poller EXCEPT ![r].phase = "off"]
        /\ outside' = [outside EXCEPT ![r].watched = stays, ![r].noticed = @ \/ saw = "other" \/ passed]

Saw(r) == IF Mine(r) THEN "mine" ELSE "other"

(* Rewrite the heartbeat.  The first refresh is the acquisition's other half; a later one touches no lease that passed. *)
Refresh(r) ==
    LET first == node[r].phase = "refreshing"
        saw == IF busy \/ (passed /\ ~first) THEN "unknown" ELSE Saw(r)
        good == Guard("still_mine", saw = "mine")
        healthy == Guard("lease_healthy", ~passed)
    IN  /\ Runs(r) /\ outside[r].watched
        /\ passed' = (passed /\ saw # "mine")
        /\ CASE ~first -> Look(r, saw, good, node[r].phase, healthy)
             [] first /\ good -> To(r, "preparing", TRUE, 0) /\ Call(r, "on_acquired") /\ UNCHANGED poller
             [] OTHER -> /\ ~(healthy /\ Permit("unknown_is_no_loss", saw = "unknown"))
                         /\ Down(r, "losing", FALSE, outside[r].calls)
        /\ <<node, outside, passed>>' # <<node, outside, passed>>
        /\ UNCHANGED <<entry, system, budget>>

(* A read-only look.  It needs no guard, but it can fail as well.  The one in phase confirming ends the start. *)
Check(r, fails) ==
    LET saw == IF fails THEN "unknown" ELSE Saw(r)
        confirms == node[r].phase = "confirming"
        good == IF confirms THEN Guard("owned_at_the_end", saw = "mine") ELSE Guard("still_mine", saw = "mine")
    IN  /\ Runs(r) /\ outside[r].watched /\ node[r].phase # "refreshing"
        /\ fails => busy
        /\ Look(r, saw, good, IF confirms THEN "active" ELSE node[r].phase, Guard("lease_healthy", ~passed))
        /\ <<node, outside>>' # <<node, outside>>
        /\ UNCHANGED <<key, system, budget>>

(* on_acquired returned: start polling.  A loop that still drains does not swallow the wish. *)
Prepared(r) ==
    /\ Runs(r) /\ node[r].phase = "preparing" /\ "on_acquired" \in outside[r].calls
    /\ To(r, "launching", node[r].waiting, node[r].shown)
    /\ outside' = [outside EXCEPT ![r].calls = (@ \ {"on_acquired"}) \cup {"start_polling"}]
    /\ poller' = IF \/ Guard("previous_loop_ended", poller[r].live = 0)
                    \/ Permit("start_waits_for_drain", poller[r].live > 0)
                 THEN [poller EXCEPT ![r].phase = "pending"] ELSE poller
    /\ UNCHANGED <<key, system, budget>>

(* However slow the start was: the loop begins inside the transaction that finds the lease ours. *)
Begin(r) ==
    /\ Runs(r) /\ "start_polling" \in outside[r].calls
    /\ poller[r].phase = "pending"
    /\ Guard("previous_loop_ended", poller[r].live = 0)
    /\ Guard("owned_at_start", ~Lost(r))
    /\ poller' = [poller EXCEPT ![r] = [phase |-> "running", live |-> @.live + 1]]
    /\ To(r, "confirming", FALSE, 0)
    /\ outside' = [outside EXCEPT ![r].calls = @ \ {"start_polling"}]
    /\ UNCHANGED <<key, system, budget>>

(* An exception in either of them: watchers off, stop polling, release. *)
Fail(r) ==
    LET call == IF node[r].phase = "preparing" THEN "on_acquired" ELSE "start_polling"
    IN  /\ Runs(r) /\ Spend("fail")
        /\ node[r].phase \in {"preparing", "launching"} /\ call \in outside[r].calls
        /\ Down(r, "unwinding", FALSE, outside[r].calls \ {call})
        /\ UNCHANGED <<key, system>>

(* Late is nothing: a call of an abandoned run returns. *)
Return(r, call) ==
    /\ Runs(r) /\ call \in outside[r].calls
    /\ node[r].phase # [register |-> "registering", on_acquired |-> "preparing", start_polling |-> "launching",
                        clean_up |-> "cleaning"][call]
    /\ Settle(r, call)
    /\ UNCHANGED <<key, system, budget>>

-----------------------------------------------------------------------------
(* The loop ends by itself: an owner that cannot poll gives the lease back. *)
LoopDies(r) ==
    /\ Runs(r) /\ Spend("fail") /\ poller[r].phase = "running"
    /\ poller' = [poller EXCEPT ![r] = [phase |-> "off", live |-> @.live - 1]]
    /\ IF node[r].phase \in {"confirming", "active"}
       THEN To(r, "unwinding", FALSE, 0) /\ outside' = [outside EXCEPT ![r].watched = FALSE]
       ELSE UNCHANGED <<node, outside>>
    /\ UNCHANGED <<key, system>>

(* A loop that was told to end has drained. *)
LoopEnds(r) ==
    /\ Runs(r) /\ poller[r].phase # "running" /\ poller[r].live > 0
    /\ poller' = [poller EXCEPT ![r].live = @ - 1]
    /\ outside' = [outside EXCEPT ![r].asking = FALSE, ![r].noticed = FALSE]
    /\ UNCHANGED <<node, key, system, budget>>

CleanUp(r) ==
    /\ Runs(r) /\ node[r].phase = "cleaning" /\ "clean_up" \in outside[r].calls
    /\ Down(r, "unwinding", FALSE, outside[r].calls \ {"clean_up"})
    /\ UNCHANGED <<key, system, budget>>

CleanUpFails(r) ==
    /\ Runs(r) /\ Spend("fail") /\ node[r].phase = "cleaning" /\ "clean_up" \in outside[r].calls
    /\ IF Permit("leave_anyway", node[r].waiting) THEN Down(r, "unwinding", FALSE, outside[r].calls \ {"clean_up"})
       ELSE outside' = [outside EXCEPT ![r].calls = @ \ {"clean_up"}] /\ UNCHANGED <<node, poller>>
    /\ UNCHANGED <<key, system>>

(* No loop is live, and no call of the run is on its way: the runtime is where it was going. *)
Stopped(r) ==
    /\ Runs(r) /\ node[r].phase \in Abandoned
    /\ poller[r] = [phase |-> "off", live |-> 0]
    /\ Guard("run_has_ended", ~node[r].waiting)
    /\ IF node[r].phase = "unwinding" THEN To(r, "releasing", FALSE, 0)
       ELSE node' = [node EXCEPT ![r].phase =
               [losing |-> "idle", suspending |-> "suspended", retiring |-> "retired"][@]]
    /\ outside' = [outside EXCEPT ![r].asking = FALSE, ![r].noticed = FALSE,
                     ![r].calls = IF node[r].phase = "unwinding" THEN @ \cup {"release"} ELSE @]
    /\ UNCHANGED <<poller, key, system, budget>>

(* Delete the own entry, and nobody else's. *)
Release(r) ==
    /\ Runs(r) /\ ~busy /\ "release" \in outside[r].calls
    /\ IF Mine(r) THEN entry' = None /\ passed' = FALSE ELSE UNCHANGED key
    /\ IF node[r].phase = "releasing" THEN To(r, "idle", node[r].waiting, node[r].shown) ELSE UNCHANGED node
    /\ outside' = [outside EXCEPT ![r].calls = @ \ {"release"}]
    /\ UNCHANGED <<poller, system, budget>>

(* It is tried again while the entry looks alive; after that it is anybody's. *)
ReleaseFails(r) ==
    /\ Runs(r) /\ busy /\ "release" \in outside[r].calls
    /\ ~(node[r].phase = "releasing" /\ Permit("release_waits", ~passed))
    /\ IF node[r].phase = "releasing" THEN To(r, "idle", node[r].waiting, node[r].shown) ELSE UNCHANGED node
    /\ outside' = [outside EXCEPT ![r].calls = @ \ {"release"}]
    /\ UNCHANGED <<poller, key, system, budget>>

(* The older runtime is told that there is a newer one: it stops first, and for good. *)
Supersede(r) ==
    /\ Runs(r) /\ r = "old" /\ reloaded
    /\ \/ node[r].phase \in {"idle", "suspended"}
          /\ To(r, "retired", node[r].waiting, node[r].shown) /\ UNCHANGED <<poller, outside>>
       \/ node[r].phase = "follower" /\ To(r, "retired", FALSE, 0) /\ UNCHANGED <<poller, outside>>
       \/ /\ node[r].phase \in Entering \cup Starting \cup {"active", "losing", "suspending"}
          /\ node' = [node EXCEPT ![r].phase = "retiring", ![r].shown = Shown(r, node[r].waiting), ![r].session = 0]
          /\ poller' = [poller EXCEPT ![r].phase = "off"]
          /\ outside' = [outside EXCEPT ![r].watched = FALSE]
    /\ UNCHANGED <<key, system, budget>>

(* A request to the service under this tenure; it reads the own clock, whatever the watchers have seen. *)
Request(r) ==
    /\ Runs(r) /\ ~outside[r].asking
    /\ node[r].phase \in {"preparing", "launching", "confirming", "active", "cleaning"}
    /\ Guard("own_clock_allows", ~passed)
    /\ outside' = [outside EXCEPT ![r].asking = TRUE]
    /\ UNCHANGED <<node, poller, key, system, budget>>

Answer(r) ==
    /\ outside[r].asking
    /\ outside' = [outside EXCEPT ![r].asking = FALSE]
    /\ UNCHANGED <<node, poller, key, system, budget>>

-----------------------------------------------------------------------------
(* The environment of the process. *)
Reload == ~paused /\ ~reloaded /\ Spend("reload") /\ reloaded' = TRUE /\ UNCHANGED <<node, poller, outside, key, busy, paused>>

(* A lease grows old for a cause: nobody refreshes it, or whoever does is stopped or kept from the guard. *)
Expire ==
    /\ ~passed
    /\ \E r \in Runtimes :
          IF outside[r].watched
          THEN paused \/ busy \/ (node[r].phase \in Starting /\ Guard("heartbeat_from_acquisition", FALSE))
          ELSE Mine(r)
    /\ passed' = TRUE
    /\ UNCHANGED <<node, poller, outside, entry, system, budget>>

Busy == ~busy /\ Spend("busy") /\ busy' = TRUE /\ UNCHANGED <<node, poller, outside, key, paused, reloaded>>
Calm == busy /\ busy' = FALSE /\ UNCHANGED <<node, poller, outside, key, paused, reloaded, budget>>
Pause == ~paused /\ Spend("pause") /\ paused' = TRUE /\ UNCHANGED <<node, poller, outside, key, busy, reloaded>>
Continue == paused /\ paused' = FALSE /\ UNCHANGED <<node, poller, outside, key, busy, reloaded, budget>>

(* The process dies and is started again, in the same directory (here) or in another one. *)
Crash(cwd) ==
    /\ Spend("crash")
    /\ entry' = IF entry.owner \in Runtimes THEN [owner |-> "former", cwd |-> cwd, live |-> FALSE, id |-> 1]
                ELSE IF entry.owner # "none" /\ cwd = "there" THEN [entry EXCEPT !.cwd = "there"] ELSE entry
    /\ node' = [r \in Runtimes |-> Idle]
    /\ poller' = [r \in Runtimes |-> [phase |-> "off", live |-> 0]]
    /\ outside' = [r \in Runtimes |-> Alone]
    /\ passed' = FALSE /\ paused' = FALSE /\ reloaded' = ("old" \notin Runtimes)
    /\ <<entry, node, poller, outside, passed, paused, reloaded>>' # <<entry, node, poller, outside, passed, paused, reloaded>>
    /\ UNCHANGED busy

(* Another process takes what is free or stale; by force (or by a clock that is ahead) also what is ours and healthy. *)
ForeignTakes(cwd) ==
    /\ ~busy /\ (entry.owner = "none" \/ Stale) /\ entry' = Other(cwd)
    /\ UNCHANGED <<node, poller, outside, passed, system, budget>>
ForeignForces ==
    /\ ~busy /\ entry.owner \in Runtimes /\ Spend("force") /\ entry' = Other("there")
    /\ UNCHANGED <<node, poller, outside, passed, system>>
ForeignDies == LiveOther /\ entry' = [entry EXCEPT !.live = FALSE] /\ UNCHANGED <<node, poller, outside, passed, system, budget>>
ForeignLeaves ==
    /\ entry.owner = "other" /\ ~busy /\ entry' = None
    /\ UNCHANGED <<node, poller, outside, passed, system, budget>>
-----------------------------------------------------------------------------
Init ==
    /\ node = [r \in Runtimes |-> Idle]
    /\ poller = [r \in Runtimes |-> [phase |-> "off", live |-> 0]]
    /\ outside = [r \in Runtimes |-> Alone]
    /\ entry = None /\ passed = FALSE /\ busy = FALSE /\ paused = FALSE
    /\ reloaded = ("old" \notin Runtimes) /\ budget = Budget

CallNames == {"register", "on_acquired", "start_polling", "clean_up"}

Next ==
    \/ \E r \in Runtimes : Start(r)
    \/ \E r \in Runtimes : Force(r)
    \/ \E r \in Runtimes : Elect(r)
    \/ \E r \in Runtimes : SessionStart(r)
    \/ \E r \in Runtimes : Stop(r)
    \/ \E r \in Runtimes : Suspend(r)
    \/ \E r \in Runtimes : LateSuspend(r)
    \/ \E r \in Runtimes : AutoRun(r)
    \/ \E r \in Runtimes, mode \in Modes : Acquire(r, mode)
    \/ \E r \in Runtimes, mode \in Modes, written \in BOOLEAN : AcquireFails(r, mode, written)
    \/ \E r \in Runtimes : Register(r)
    \/ \E r \in Runtimes : RegisterFails(r)
    \/ \E r \in Runtimes : Refresh(r)
    \/ \E r \in Runtimes, fails \in BOOLEAN : Check(r, fails)
    \/ \E r \in Runtimes : Prepared(r)
    \/ \E r \in Runtimes : Begin(r)
    \/ \E r \in Runtimes : Fail(r)
    \/ \E r \in Runtimes : LoopDies(r)
    \/ \E r \in Runtimes : LoopEnds(r)
    \/ \E r \in Runtimes, call \in CallNames : Return(r, call)
    \/ \E r \in Runtimes : CleanUp(r)
    \/ \E r \in Runtimes : CleanUpFails(r)
    \/ \E r \in Runtimes : Stopped(r)
    \/ \E r \in Runtimes : Release(r)
    \/ \E r \in Runtimes : ReleaseFails(r)
    \/ \E r \in Runtimes : Supersede(r)
    \/ \E r \in Runtimes : Request(r)
    \/ \E r \in Runtimes : Answer(r)
    \/ Reload
    \/ Expire
    \/ Busy
    \/ Calm
    \/ Pause
    \/ Continue
    \/ \E cwd \in {"here", "there"} : Crash(cwd)
    \/ \E cwd \in {"here", "there"} : ForeignTakes(cwd)
    \/ ForeignForces
    \/ ForeignDies
    \/ ForeignLeaves

(* Guards become free, the stopped go on, calls return, timers fire.  Nobody has to command, to die, or to leave; *)
(* and nobody has to wait until a lease has passed.                                                              *)
Fairness ==
    /\ WF_vars(Calm) /\ WF_vars(Continue)
    /\ \A r \in Runtimes :
          /\ WF_vars(AutoRun(r)) /\ WF_vars(\E mode \in Modes : Acquire(r, mode)) /\ WF_vars(RegisterFails(r))
          /\ WF_vars(Refresh(r)) /\ WF_vars(\E fails \in BOOLEAN : Check(r, fails))
          /\ WF_vars(Prepared(r)) /\ WF_vars(Begin(r)) /\ WF_vars(\E call \in CallNames : Return(r, call))
          /\ WF_vars(LoopEnds(r)) /\ WF_vars(CleanUp(r)) /\ WF_vars(Stopped(r)) /\ WF_vars(Release(r))
          /\ WF_vars(Supersede(r))

Spec == Init /\ [][Next]_vars /\ Fairness
-----------------------------------------------------------------------------
TypeOK ==
    /\ \A r \in Runtimes :
          /\ node[r].phase \in AtRest \cup Entering \cup Starting \cup Abandoned
                               \cup {"follower", "active", "cleaning", "releasing"}
          /\ node[r].waiting \in BOOLEAN /\ node[r].shown \in 0..3 /\ node[r].session \in 0..3
          /\ poller[r].phase \in {"off", "pending", "running"} /\ poller[r].live \in 0..Budget
          /\ outside[r].calls \subseteq Modes \cup CallNames \cup {"release"}
          /\ outside[r].watched = (node[r].phase \in Starting \cup {"active", "cleaning"})
    /\ entry.owner \in Runtimes \cup {"former", "other", "none"} /\ entry.id \in 0..3
    /\ {passed, busy, paused, reloaded} \subseteq BOOLEAN /\ budget \in 0..Budget

(* A loop begins only while its runtime owns a healthy lease. *)
PollOnlyOwned_S25 == [][\A r \in Runtimes : poller'[r].live > poller[r].live => ~Lost(r)]_vars
(* A start that says ok owned the lease when it said so. *)
PollOnlyOwned_S26 ==
    [][\A r \in Runtimes : node'[r].phase = "active" /\ node[r].phase # "active" => ~Lost(r)]_vars
(* A runtime at work that is neither stopped nor kept from the guard does not look stale, however slow its start. *)
PollOnlyOwned_S28 ==
    [][~passed /\ passed' /\ ~paused /\ ~busy => \A r \in Runtimes : ~outside[r].watched]_vars
(* In thread mode a live leader is never evicted, and a follower never polls. *)
PollOnlyOwned_S30 ==
    [][ThreadMode => /\ ~(LiveOther /\ entry'.owner \in Runtimes)
                     /\ \A r \in Runtimes : node'[r].phase = "follower" => poller'[r].phase = "off"]_vars
(* A live owner is evicted only if it is the very one that was shown. *)
PollOnlyOwned_S15 ==
    [][\A r \in Runtimes : LiveOther /\ entry'.owner = r => node[r].shown = entry.id]_vars
(* Whoever is at rest takes no lease and begins no loop: nothing started before the suspend goes on after it. *)
PollOnlyOwned_S34 ==
    [][\A r \in Runtimes : node[r].phase \in AtRest =>
          (entry'.owner = r => Mine(r)) /\ poller'[r].live <= poller[r].live]_vars
(* At most one loop in this process. *)
PollOnlyOwned_S37 ==
    \A r, q \in Runtimes : poller[r].live <= 1 /\ (r # q => poller[r].live = 0 \/ poller[q].live = 0)
(* Nothing is sent beside a successor that took over because the own lease had passed. *)
PollOnlyOwned_K11 ==
    [][\A r \in Runtimes : outside'[r].asking /\ ~outside[r].asking => Mine(r) \/ ~passed]_vars
PollOnlyOwned ==
    /\ PollOnlyOwned_S15 /\ PollOnlyOwned_S25 /\ PollOnlyOwned_S26 /\ PollOnlyOwned_S28 /\ PollOnlyOwned_S30
    /\ PollOnlyOwned_S34 /\ []PollOnlyOwned_S37 /\ PollOnlyOwned_K11

(* Idle means: no poller, no loop to come, and no lease that looks alive. *)
FailedStartLeavesNothing_S27 == \A r \in Runtimes : node[r].phase = "idle" => poller[r].phase = "off" /\ Lost(r)
FailedStartLeavesNothing == FailedStartLeavesNothing_S27

(* A runtime that looked, and could have seen that the lease is lost, does not poll on. *)
LossStopsPolling_S29 == \A r \in Runtimes : outside[r].noticed => poller[r].phase # "running"
LossStopsPolling == LossStopsPolling_S29

(* A session start takes what was left in this directory, or nothing. *)
NoStealAtSessionStart_S33 ==
    [][\A r \in Runtimes : "resume" \in outside[r].calls /\ ~Mine(r) /\ entry'.owner = r =>
          entry.owner # "none" /\ entry.cwd = "here"]_vars
(* A background child never leads. *)
NoStealAtSessionStart_A41 == Background => entry.owner \notin Runtimes
NoStealAtSessionStart == NoStealAtSessionStart_S33 /\ []NoStealAtSessionStart_A41

(* A session that finds what this directory left resumes it, and is not stopped by the shutdown of an older one. *)
Waits(r) == /\ outside[r].wish
            /\ \/ node[r].phase = "suspended" /\ Mine(r)
               \/ node[r].phase # "retired" /\ entry.owner = "former" /\ entry.cwd = "here"
EventuallyPolling_V10 == \A r \in Runtimes : Waits(r) ~> ~Waits(r)
(* An explicit disconnect comes to its end, whatever fails on the way. *)
Leaving(r) == node[r].phase \in {"cleaning", "unwinding", "releasing"}
EventuallyPolling_V10_left == \A r \in Runtimes : Leaving(r) ~> ~Leaving(r)
(* A poller that lost its lease stops. *)
EventuallyPolling_V11 == \A r \in Runtimes : (poller[r].phase = "running" /\ Lost(r)) ~> poller[r].live = 0
(* An owner with a healthy lease polls, or gives it up. *)
Healthy(r) == ~Lost(r) /\ node[r].phase \notin {"suspended", "retired"}
EventuallyPolling_V12 == \A r \in Runtimes : Healthy(r) ~> (poller[r].phase = "running" \/ ~Healthy(r))
EventuallyPolling ==
    EventuallyPolling_V10 /\ EventuallyPolling_V10_left /\ EventuallyPolling_V11 /\ EventuallyPolling_V12
=============================================================================
