---------------------------- MODULE PollingWork ----------------------------
(* A runtime that holds a lease: looks and refreshes, preparation, the loop *)
(* begun and ended, loss, stop and release, and the way back to rest.       *)
EXTENDS PollingStart
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

=============================================================================
