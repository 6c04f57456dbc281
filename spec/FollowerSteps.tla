--------------------------- MODULE FollowerSteps ---------------------------
(* A follower's own steps: it registers, beats, says goodbye, takes work,   *)
(* and forgets what comes late.  LeaderRoutes has the leader's steps,       *)
(* FollowerRegistration the world and what holds.                           *)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Instances,  \* {"a"} or {"a", "b"}
    Relation,   \* of b to a: apart, shell (one profile), reload (one process and profile), successor (of the dead)
    Beating,    \* instances whose heartbeats are looked at; the others' always arrive
    Causes,     \* which faults and commands there are
    Budget,     \* how many of them together
    Odd,        \* instances and leaders whose protocol does not fit
    Outsiders,  \* instances that do not know the leader's secret
    Claims,     \* instances that name the first thread as theirs, which once was that of a
    Off         \* the guards and permits taken away; {} is the protocol

ASSUME Relation \in {"apart", "shell", "reload", "successor"}

VARIABLES
    node,       \* node[p]: the follower's phase and memory
    outside,    \* outside[p]: is it up; whom it asked last; its session; its calls that have not returned
    net,        \* requests, answers and work on their way; nothing else says that they arrive
    route,      \* route[l]: is it serving; its entries; the changes under way
    intents,    \* on disk: threads to be deleted
    threads,    \* threads that exist, and on disk who registered with them last
    epoch,      \* who leads
    harm,       \* what happened that must not
    budget

vars == <<node, outside, net, route, intents, threads, epoch, harm, budget>>
leader == <<route, intents, threads, epoch>>

Guard(name, holds)  == name \in Off \/ holds
Permit(name, holds) == name \notin Off /\ holds

Spend(cause) == cause \in Causes /\ budget > 0 /\ budget' = budget - 1
Least(used) == CHOOSE n \in 1..12 : n \notin used /\ \A m \in 1..12 : m < n => m \in used
Harmed(name, happened) == harm' = IF happened THEN harm \cup {name} ELSE harm

Leaders == {"L1", "L2"}
Up(p) == outside[p].up = "yes"
Dead(p) == outside[p].up = "dead"
Serving(l) == route[l].phase = "serving"
Key(p, own) == IF own \/ Relation = "apart" THEN p ELSE "shared"

Used == {0} \cup {m.gen : m \in net} \cup {t.gen : t \in threads} \cup {i.gen : i \in intents}
        \cup UNION {{e.gen : e \in route[l].entries} \cup {u.gen : u \in route[l].mutations} : l \in Leaders}
        \cup UNION {{node[p].generation, node[p].abandoned} \cup {c.gen : c \in outside[p].calls} : p \in Instances}

Msg(kind, p, gen, l) == [kind |-> kind, who |-> p, gen |-> gen, lead |-> l, session |-> 0, own |-> FALSE, target |-> 0,
                         ok |-> FALSE, held |-> FALSE]
(* To whom nobody listens, nothing is sent: the call has no answer. *)
Post(m) == IF Serving(m.lead) THEN {m} ELSE {}
Call(kind, gen) == [kind |-> kind, gen |-> gen]
-----------------------------------------------------------------------------
Free(n) == [n EXCEPT !.phase = "idle", !.generation = 0, !.acknowledged = FALSE, !.beating = FALSE]
To(p, n) == node' = [node EXCEPT ![p] = n]
Calls(p, set) == outside' = [outside EXCEPT ![p].calls = set]
Without(p, kind, gen) == outside[p].calls \ {Call(kind, gen)}

(* One registration at a time, under a generation that was never used, with whoever leads. *)
Register(p) ==
    /\ Up(p) /\ node[p].phase = "idle" /\ epoch # "none"
    /\ Guard("one_at_a_time", node[p].abandoned = 0)
    /\ LET gen == Least(Used) IN
       /\ To(p, [node[p] EXCEPT !.phase = "registering", !.generation = gen])
       /\ outside' = [outside EXCEPT ![p].lead = epoch, ![p].calls = @ \cup {Call("register", gen)}]
       /\ net' = net \cup {[Msg("register", p, gen, epoch) EXCEPT !.own = node[p].own_key, !.target = node[p].target,
                                                                !.session = node[p].session]}
    /\ Harmed("two calls", \E c \in outside[p].calls : c.kind = "register")
    /\ UNCHANGED <<leader, budget>>

(* What an answer to the register request does; an answer that is not mine does nothing. *)
Answered(n, a) ==
    LET fits == Guard("leader_compatible", a.lead \notin Odd)
    IN  CASE n.phase = "idle" -> [n EXCEPT !.abandoned = IF @ = a.gen THEN 0 ELSE @]
          [] n.phase = "registering" /\ Guard("answer_is_mine", a.gen = n.generation) ->
                IF fits /\ Guard("accepted", a.ok)
                THEN [n EXCEPT !.phase = "registered", !.acknowledged = TRUE, !.beating = TRUE,
                               !.target = IF a.target # 0 THEN a.target ELSE @]
                ELSE [Free(n) EXCEPT !.own_key = @ \/ (fits /\ Permit("own_key_when_held", ~a.ok /\ a.held))]
          [] OTHER -> n

(* Whoever is registered beats at once. *)
HearAnswer(p) ==
    /\ Up(p)
    /\ \E a \in net :
        /\ a.kind = "registered" /\ a.who = p
        /\ LET n == node[p]
               after == Answered(n, a)
               held == after.phase = "registered" /\ n.phase # "registered"
               beats == held /\ p \in Beating
           IN  /\ To(p, after)
               /\ Calls(p, Without(p, "register", a.gen) \cup (IF beats THEN {Call("beat", after.generation)} ELSE {}))
               /\ net' = (net \ {a}) \cup (IF beats THEN Post(Msg("beat", p, after.generation, outside[p].lead)) ELSE {})
               /\ harm' = harm \cup (IF after # n /\ a.gen \notin {n.generation, n.abandoned} THEN {"late"} ELSE {})
                               \cup (IF held /\ a.session # outside[p].session THEN {"dead session"} ELSE {})
    /\ UNCHANGED <<leader, budget>>

Beat(p) ==
    /\ Up(p) /\ node[p].phase = "registered" /\ p \in Beating
    /\ Guard("one_beat_at_a_time", ~node[p].beating)
    /\ LET call == Call("beat", node[p].generation) IN
       /\ To(p, [node[p] EXCEPT !.beating = TRUE])
       /\ Calls(p, outside[p].calls \cup {call})
       /\ net' = net \cup Post(Msg("beat", p, node[p].generation, outside[p].lead))
       /\ Harmed("piled", call \in outside[p].calls)
    /\ <<node, outside, net>>' # <<node, outside, net>>
    /\ UNCHANGED <<leader, budget>>

(* A heartbeat that is refused, or fails, ends its own registration and no other. *)
Beaten(n, gen, ok) ==
    IF n.phase \notin {"registered", "disconnecting"} \/ ~Guard("beat_is_mine", gen = n.generation) THEN n
    ELSE IF n.phase = "disconnecting" \/ Guard("beat_accepted", ok) THEN [n EXCEPT !.beating = FALSE]
    ELSE Free(n)

HearBeat(p) ==
    /\ Up(p)
    /\ \E a \in net :
        /\ a.kind = "beaten" /\ a.who = p
        /\ LET after == Beaten(node[p], a.gen, a.ok) IN
           /\ To(p, after)
           /\ Harmed("late", after # node[p] /\ a.gen # node[p].generation)
           /\ Calls(p, Without(p, "beat", a.gen))
        /\ net' = net \ {a}
    /\ UNCHANGED <<leader, budget>>

(* A person disconnects: the leader is to delete the thread first. *)
Disconnect(p) ==
    /\ Up(p) /\ node[p].phase = "registered" /\ Spend("goodbye")
    /\ To(p, [node[p] EXCEPT !.phase = "disconnecting"])
    /\ Calls(p, outside[p].calls \cup {Call("goodbye", node[p].generation)})
    /\ net' = net \cup Post(Msg("goodbye", p, node[p].generation, outside[p].lead))
    /\ UNCHANGED <<leader, harm>>

Gone(n, gen, ok) ==
    IF n.phase # "disconnecting" \/ ~Guard("goodbye_is_mine", gen = n.generation) THEN n
    ELSE IF Guard("goodbye_confirmed", ok) THEN [Free(n) EXCEPT !.target = 0]
    ELSE [n EXCEPT !.phase = "registered"]

Routed(p) == \E e \in (IF epoch = "none" THEN {} ELSE route[epoch].entries) : e.who = p /\ e.gen = node[p].generation

HearGone(p) ==
    /\ Up(p)
    /\ \E a \in net :
        /\ a.kind = "gone" /\ a.who = p
        /\ LET after == Gone(node[p], a.gen, a.ok) IN
           /\ To(p, after)
           /\ harm' = harm \cup (IF after # node[p] /\ a.gen # node[p].generation THEN {"late"} ELSE {})
                           \cup (IF after.phase = "idle" /\ node[p].phase # "idle" /\ Routed(p) THEN {"ghost"} ELSE {})
        /\ Calls(p, Without(p, "goodbye", a.gen))
        /\ net' = net \ {a}
    /\ UNCHANGED <<leader, budget>>

(* A call returns without an answer: at once where none can come any more, else only by a fault of time.  An answer *)
(* that was on its way by then may be heard all the same.                                                            *)
Hopeless(p, c) ==
    /\ ~\E m \in net : m.who = p /\ m.gen = c.gen /\ m.kind \in
          (CASE c.kind = "register" -> {"register", "registered"} [] c.kind = "beat" -> {"beat", "beaten"}
             [] OTHER -> {"goodbye", "gone"})
    /\ ~\E l \in Leaders : \E u \in route[l].mutations : u.who = p /\ u.gen = c.gen /\ u.asked
Fails(n, c) ==
    CASE c.kind = "beat" -> IF n.phase = "registered" /\ Guard("beat_is_mine", c.gen = n.generation) THEN Free(n)
                            ELSE Beaten(n, c.gen, FALSE)
      [] c.kind = "goodbye" ->
            IF n.phase = "disconnecting" /\ Guard("goodbye_is_mine", c.gen = n.generation)
            THEN [n EXCEPT !.phase = "registered"] ELSE n
      [] OTHER ->
            IF n.phase = "idle" THEN [n EXCEPT !.abandoned = IF @ = c.gen THEN 0 ELSE @]
            ELSE IF n.phase = "registering" /\ Guard("answer_is_mine", c.gen = n.generation) THEN Free(n) ELSE n
Return(p) ==
    /\ Up(p)
    /\ \E c \in outside[p].calls :
        /\ IF Hopeless(p, c) THEN UNCHANGED budget ELSE Spend("late")
        /\ LET after == Fails(node[p], c) IN
           /\ To(p, after)
           /\ Harmed("late", after # node[p] /\ c.gen \notin {node[p].generation, node[p].abandoned})
        /\ Calls(p, outside[p].calls \ {c})
    /\ UNCHANGED <<leader, net>>

(* The host context is replaced, or ends (0), or is there again: a registration that is under way ends there and then; *)
(* one that is held stays.                                                                                             *)
Serves(p, session) ==
    /\ LET n == [node[p] EXCEPT !.session = session] IN
       To(p, IF n.phase # "registering" THEN n
             ELSE IF Permit("session_ends_registration", TRUE) THEN [Free(n) EXCEPT !.abandoned = n.generation]
             ELSE node[p])
    /\ outside' = [outside EXCEPT ![p].session = session]
    /\ UNCHANGED <<leader, net, harm>>
Session(p) == Up(p) /\ outside[p].session # 0 /\ Spend("session") /\ Serves(p, 3 - outside[p].session)
Host(p) == Up(p) /\ Spend("host") /\ Serves(p, IF outside[p].session = 0 THEN 1 ELSE 0)

(* An election is near: the registration is given up without a word. *)
Leave(p) ==
    /\ Up(p) /\ node[p].phase \in {"registering", "registered", "disconnecting"} /\ Spend("leave")
    /\ To(p, [Free(node[p]) EXCEPT !.abandoned = IF node[p].phase = "registering" THEN node[p].generation ELSE 0])
    /\ UNCHANGED <<leader, outside, net, harm>>

(* Somebody here asks the leader for something; `bare`: an envelope that names no registration. *)
Ask(p, bare) ==
    /\ Up(p) /\ IF bare THEN Spend("bare") ELSE node[p].phase = "registered" /\ Spend("ask")
    /\ outside[p].lead \in Leaders
    /\ net' = net \cup Post(Msg("ask", p, IF bare THEN 0 ELSE node[p].generation, outside[p].lead))
    /\ net' # net
    /\ UNCHANGED <<leader, node, outside, harm>>

(* Nobody takes work before it is registered. *)
Early(n, m) == m.kind = "work" /\ n.phase # "stopped" /\ Guard("registered_first", FALSE)

(* Work arrives, or news of another thread; by a mistake of the channel at the other instance.  It is taken by whom it *)
(* is for, or by nobody.                                                                                              *)
Deliver(p) ==
    /\ Up(p)
    /\ \E m \in net :
        /\ m.kind \in {"work", "moved"}
        /\ IF m.who = p THEN UNCHANGED budget ELSE Spend("astray")
        /\ LET n == node[p]
               mine == Guard("addressed_to_me", m.who = p) /\ Guard("route_is_mine", m.gen = n.generation)
               takes == (n.phase = "registered" \/ Early(n, m)) /\ mine /\ Guard("host_serves", n.session # 0)
           IN  /\ To(p, IF takes /\ m.kind = "moved" THEN [n EXCEPT !.target = m.target] ELSE n)
               /\ harm' = harm
                    \cup (IF takes /\ ~(m.who = p /\ n.phase = "registered" /\ m.gen = n.generation) THEN {"strayed"} ELSE {})
                    \cup (IF takes /\ outside[p].session = 0 THEN {"nobody home"} ELSE {})
        /\ net' = net \ {m}
    /\ UNCHANGED <<leader, outside>>
=============================================================================
