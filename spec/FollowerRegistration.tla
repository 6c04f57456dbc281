------------------------ MODULE FollowerRegistration ------------------------
(* Does work reach exactly the current registration of an instance?  Two    *)
(* followers (two processes, two of one shell, a reload, a successor) and   *)
(* two successive leaders, over a channel that loses, repeats, delays and   *)
(* reorders.  (bus.md b, annexes A, C, I; I1-I6, I9, I10, I12; V1-V3;       *)
(* L0 for registrations, L12, L14-L16, L24, L25.)                           *)
EXTENDS LeaderRoutes
-----------------------------------------------------------------------------
(* The channel. *)
Lose == /\ Spend("lose") /\ \E m \in net : net' = net \ {m}
        /\ UNCHANGED <<node, outside, leader, harm>>

(* Nobody was heard for longer than the bound: by a fault, or because nobody is there to be heard. *)
Silence(l, p) ==
    /\ Serving(l)
    /\ \E e \in Entries(l) :
        /\ e.who = p /\ ~e.silent
        /\ IF Beats(p, e) THEN Spend("silence") ELSE UNCHANGED budget
        /\ Put(l, (Entries(l) \ {e}) \cup {[e EXCEPT !.heard = 0, !.silent = TRUE]}, Changes(l))
    /\ UNCHANGED <<node, outside, net, intents, threads, epoch, harm>>

(* A leader that was displaced, and has not noticed; one that died; its successor; and when it notices. *)
Depose == /\ epoch = "L1" /\ Spend("depose") /\ epoch' = "L2"
          /\ route' = [route EXCEPT !["L2"].phase = "serving"]
          /\ UNCHANGED <<node, outside, net, intents, threads, harm>>
Shut(l, said) ==
    /\ route' = [route EXCEPT ![l] = [phase |-> "closed", entries |-> {}, mutations |-> {}]]
    /\ net' = {m \in net : m.lead # l \/ m.kind \notin {"register", "beat", "goodbye", "ask"}} \cup said
Kill == /\ epoch = "L1" /\ Spend("kill") /\ epoch' = "none" /\ Shut("L1", {})
        /\ UNCHANGED <<node, outside, intents, threads, harm>>
Succeed == /\ epoch = "none" /\ epoch' = "L2"
           /\ route' = [route EXCEPT !["L2"].phase = "serving"]
           /\ UNCHANGED <<node, outside, net, intents, threads, harm, budget>>
Refused(l, u) == IF u.asked THEN Told([Answer(IF u.kind = "register" THEN "registered" ELSE "gone", u.who, u.gen, l, FALSE)
                                              EXCEPT !.session = u.session])
                    ELSE {}
Close(l) == /\ Serving(l) /\ epoch # l /\ Shut(l, UNION {Refused(l, u) : u \in Changes(l)})
            /\ UNCHANGED <<node, outside, intents, threads, epoch, harm, budget>>

(* A process dies, and somebody starts another one in its place; or it goes on as another instance. *)
Stopped(p) == [node[p] EXCEPT !.phase = "stopped", !.generation = 0, !.abandoned = 0, !.acknowledged = FALSE,
                              !.beating = FALSE, !.target = 0]
Over(p) == {m \in net : ~(m.who = p /\ m.kind \in {"registered", "beaten", "gone"})}
Crash(p) == /\ Up(p) /\ Spend("crash") /\ To(p, Stopped(p))
            /\ outside' = [outside EXCEPT ![p] = [@ EXCEPT !.up = "dead", !.lead = "none", !.calls = {}]]
            /\ net' = Over(p)
            /\ UNCHANGED <<leader, harm>>
Restart == /\ Relation = "successor" /\ outside["b"].up = "no" /\ Dead("a")
           /\ outside' = [outside EXCEPT !["b"].up = "yes"]
           /\ UNCHANGED <<node, net, leader, harm, budget>>
Reload == /\ Relation = "reload" /\ outside["b"].up = "no" /\ Up("a") /\ Spend("reload")
          /\ node' = [node EXCEPT !["a"] = Stopped("a"), !["b"].target = node["a"].target]
          /\ outside' = [outside EXCEPT !["a"] = [@ EXCEPT !.up = "gone", !.lead = "none", !.calls = {}], !["b"].up = "yes"]
          /\ net' = Over("a")
          /\ UNCHANGED <<leader, harm>>
-----------------------------------------------------------------------------
Init ==
    /\ node = [p \in Instances |-> [phase |-> "idle", session |-> 1, generation |-> 0, acknowledged |-> FALSE,
                                    beating |-> FALSE, abandoned |-> 0, own_key |-> FALSE,
                                    target |-> IF p \in Claims THEN 1 ELSE 0]]
    /\ outside = [p \in Instances |->
                    [up |-> IF p = "b" /\ Relation \in {"reload", "successor"} THEN "no" ELSE "yes",
                     lead |-> "none", session |-> 1, calls |-> {}]]
    /\ net = {} /\ intents = {} /\ epoch = "L1" /\ harm = {} /\ budget = Budget
    /\ threads = IF Claims = {} THEN {} ELSE {[target |-> 1, who |-> "a", gen |-> 0, key |-> Key("a", FALSE)]}
    /\ route = [l \in Leaders |-> [phase |-> IF l = "L1" THEN "serving" ELSE "closed", entries |-> {}, mutations |-> {}]]

Next ==
    \/ \E p \in Instances : Register(p)
    \/ \E p \in Instances : HearAnswer(p)
    \/ \E p \in Instances : Beat(p)
    \/ \E p \in Instances : HearBeat(p)
    \/ \E p \in Instances : Disconnect(p)
    \/ \E p \in Instances : HearGone(p)
    \/ \E p \in Instances : Return(p)
    \/ \E p \in Instances : Session(p)
    \/ \E p \in Instances : Host(p)
    \/ \E p \in Instances : Leave(p)
    \/ \E p \in Instances, bare \in BOOLEAN : Ask(p, bare)
    \/ \E p \in Instances : Deliver(p)
    \/ \E l \in Leaders, p \in Instances, again \in BOOLEAN : HearRegister(l, p, again)
    \/ \E l \in Leaders, p \in Instances : Provisioned(l, p)
    \/ \E l \in Leaders, p \in Instances : ProvisionFails(l, p)
    \/ \E l \in Leaders, p \in Instances : Refresh(l, p)
    \/ \E l \in Leaders, p \in Instances : Perform(l, p)
    \/ \E l \in Leaders, p \in Instances : Forward(l, p)
    \/ \E l \in Leaders, p \in Instances : Move(l, p)
    \/ \E l \in Leaders, p \in Instances : HearGoodbye(l, p)
    \/ \E l \in Leaders, p \in Instances : Resume(l, p)
    \/ \E l \in Leaders, p \in Instances : Bury(l, p)
    \/ \E l \in Leaders, p \in Instances : Delete(l, p)
    \/ \E l \in Leaders, p \in Instances : Cleaned(l, p)
    \/ \E l \in Leaders, p \in Instances : CleanUpFails(l, p)
    \/ \E l \in Leaders, p \in Instances : Prune(l, p)
    \/ \E l \in Leaders, p \in Instances : Silence(l, p)
    \/ Lose
    \/ Depose
    \/ Kill
    \/ Succeed
    \/ \E l \in Leaders : Close(l)
    \/ \E p \in Instances : Crash(p)
    \/ Restart
    \/ Reload

(* Who is up goes on, calls return, what arrives is heard, the port answers, somebody leads.  Nobody has to command, to *)
(* die, to be silent or to start again, and no message that is lost has to arrive.                                      *)
Fairness ==
    /\ WF_vars(Succeed) /\ \A l \in Leaders : WF_vars(Close(l))
    /\ \A p \in Instances :
          /\ WF_vars(Register(p)) /\ WF_vars(HearAnswer(p)) /\ WF_vars(Beat(p)) /\ WF_vars(HearBeat(p))
          /\ WF_vars(HearGone(p)) /\ WF_vars(Return(p))
          /\ \A l \in Leaders :
                /\ WF_vars(HearRegister(l, p, FALSE)) /\ WF_vars(Refresh(l, p)) /\ WF_vars(HearGoodbye(l, p))
                /\ WF_vars(Provisioned(l, p)) /\ WF_vars(Delete(l, p))
                /\ WF_vars(Cleaned(l, p))

Spec == Init /\ [][Next]_vars /\ Fairness
-----------------------------------------------------------------------------
Phases == {"idle", "registering", "registered", "disconnecting", "stopped"}
TypeOK ==
    /\ \A p \in Instances :
          /\ node[p].phase \in Phases /\ node[p].session \in 0..2 /\ node[p].target \in 0..12
          /\ node[p].acknowledged = (node[p].phase \in {"registered", "disconnecting"})
          /\ (node[p].generation = 0) = (node[p].phase \in {"idle", "stopped"})
          /\ outside[p].up \in {"no", "yes", "gone", "dead"} /\ outside[p].lead \in Leaders \cup {"none"}
    /\ \A l \in Leaders : route[l].phase = "closed" => Entries(l) = {} /\ Changes(l) = {}
    /\ epoch \in Leaders \cup {"none"} /\ budget \in 0..Budget

(* Work is taken by the instance that holds the registration under which it was decided, and by no other. *)
RouteIsCurrent_I1 == "strayed" \notin harm
(* Work is taken where a host context is there to do it. *)
RouteIsCurrent_Host == "nobody home" \notin harm
(* What is asked is done for the registration that stands. *)
RouteIsCurrent_I1_asked == "acted" \notin harm
(* A change begins under the epoch of the moment, and a route is written under the epoch that began it. *)
RouteIsCurrent_I3 ==
    [][\A l \in Leaders : epoch # l => /\ \A e \in Entries(l)' : Current(l, e.who, e.gen)
                                      /\ Changes(l)' \subseteq Changes(l)]_vars
(* Nothing is provisioned for who does not fit or does not know the secret, and no follower takes a leader that does not fit. *)
RouteIsCurrent_I9 ==
    /\ \A l \in Leaders : \A x \in Entries(l) \cup Changes(l) : x.who \notin Odd \cup Outsiders
    /\ \A p \in Instances : node[p].phase = "registered" => outside[p].lead \notin Odd
(* Who beats is not cut off: not later (V3), and not before the first beat (I10). *)
RouteIsCurrent_V3_I10 == "cut" \notin harm
(* Whoever is told again that it is registered is. *)
RouteIsCurrent_L14 == "echo" \notin harm
(* The thread of a registration is not deleted for an older one (L0, I4), nor any for silence. *)
RouteIsCurrent_L0 == "taken" \notin harm
RouteIsCurrent_Silence == "silenced" \notin harm
RouteIsCurrent ==
    /\ [](RouteIsCurrent_I1 /\ RouteIsCurrent_Host /\ RouteIsCurrent_I1_asked /\ RouteIsCurrent_I9 /\ RouteIsCurrent_V3_I10)
    /\ [](RouteIsCurrent_L14 /\ RouteIsCurrent_L0 /\ RouteIsCurrent_Silence) /\ RouteIsCurrent_I3

(* A member has one route, a thread has one holder. *)
OneRoutePerProfile_I2 ==
    \A l \in Leaders : \A e, f \in Entries(l) : e # f => e.who # f.who /\ e.key # f.key /\ e.target # f.target
(* No live process is put out by another one, whatever that one names as its own. *)
OneRoutePerProfile_L24 ==
    [][\A l \in Leaders : \A f \in Entries(l)' : ~Current(l, f.who, f.gen) =>
          \A e \in Entries(l) : e.who # f.who /\ e \notin Entries(l)' => GivesWay(e, f.who)]_vars
OneRoutePerProfile == []OneRoutePerProfile_I2 /\ OneRoutePerProfile_L24

(* What belongs to a registration, or to an epoch, that is over changes nothing. *)
LateIsInert_I4 == "removed" \notin harm
LateIsInert_I5 == "late" \notin harm
LateIsInert_I6 == "piled" \notin harm
LateIsInert_I12 == "two calls" \notin harm
LateIsInert_L25 == "dead session" \notin harm
LateIsInert_B19 == "ghost" \notin harm
LateIsInert == [](LateIsInert_I4 /\ LateIsInert_I5 /\ LateIsInert_I6 /\ LateIsInert_I12 /\ LateIsInert_L25 /\ LateIsInert_B19)

(* Who wants to be a follower is registered with whoever leads, again and again if need be (V2: with the next leader). *)
Wants(p) == Up(p) /\ {p, epoch} \cap (Odd \cup Outsiders) = {}
EventuallyRegistered_V1 ==
    \A p \in Instances : Wants(p) ~> (~Wants(p) \/ (node[p].phase = "registered" /\ Routed(p)))
EventuallyRegistered == EventuallyRegistered_V1
=============================================================================
