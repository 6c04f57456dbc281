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
EXTENDS PollingWork
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
