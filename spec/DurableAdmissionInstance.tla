---------------------- MODULE DurableAdmissionInstance ----------------------
(* What an instance and its worker do with a delivery, a transaction of the *)
(* journal at a time; and a leader, with one of its own.                    *)
EXTENDS DurableAdmissionLeader
-----------------------------------------------------------------------------
(* A delivery, and the receipt that is the right to execute it. *)
Same(d, m) == d.i = m.i /\ d.b = m.b /\ d.g = m.g
Known(m) == {d \in work : Same(d, m)}
(* The position in a batch is computed anew by every leader; it is no part of the body (L8). *)
Body(m) == IF Permit("position_left_out", TRUE) THEN m.body ELSE m.body + 10 * m.pos
New(q, m) == [i |-> m.i, b |-> m.b, g |-> m.g, at |-> Home(q), body |-> Body(m), phase |-> "journaled",
              receipt |-> "pending", owner |-> "none", did |-> FALSE, tries |-> 0]

(* Late is nothing: what is bound elsewhere by now, or over, is not executed because an old forward arrives. *)
WantedHere(m, row) == IF row.phase = "absent" THEN m.i > offset
                      ELSE row.phase \in {"journaled", "forwarding", "waiting"} /\ row.binding = m.b
HasRoom == Cardinality({d \in work : d.phase = "journaled"}) < Room
OwnBinding(q, m) == Guard("own_binding", m.b = Home(q))

Inserts(q, m, row) ==
    /\ Known(m) = {}
    /\ Guard("genuine_id", m.g = 0) /\ OwnBinding(q, m)
    /\ Guard("wanted_here", WantedHere(m, row)) /\ Guard("has_room", HasRoom)
SaysAgain(q, m) ==
    /\ OwnBinding(q, m)
    /\ \E d \in Known(m) : Guard("same_body", d.body = Body(m))

(* An update of the leader's own binding needs no bus: two rows, one transaction. *)
Keep(p, i) ==
    /\ Ready(p, i) /\ Home(p) \in Wanted(i) /\ Sticks(i, Home(p))
    /\ LET m == Message("forward", p, node[p].epoch, i, Home(p), 0)
       IN  \/ Inserts(p, m, [phase |-> "journaled", binding |-> Home(p)]) /\ work' = work \cup {New(p, m)}
           \/ SaysAgain(p, m) /\ UNCHANGED work
    /\ Set(i, "delivered", Home(p))
    /\ UNCHANGED <<telegram, node, net, meta, outcome, budget>>

(* An answer is heard as long as somebody waits for it. *)
Reply(m, ok, b, g) ==
    IF \E p \in Processes : Up(p) /\ node[p].epoch = m.epoch /\ m.i \in node[p].sending
    THEN {[Message("ack", m.to, m.epoch, m.i, b, g) EXCEPT !.ok = ok]}
    ELSE {}

(* Durable first: journaled, and then answered.  An instance of another system (foreign) sees no row of the leader's. *)
HearForward(q, i) ==
    /\ Up(q)
    /\ \E m \in net, cause \in {"none", "dup", "full", "foreign"} :
        /\ m.kind = "forward" /\ m.to = q /\ m.i = i /\ i \notin Mute
        /\ LET unseen == [phase |-> "forwarding", binding |-> m.b]
               inserts == Inserts(q, m, IF cause = "foreign" THEN unseen ELSE update[i])
               ok == IF cause = "full" THEN Guard("ack_after_commit", FALSE) ELSE inserts \/ SaysAgain(q, m)
               reply == Reply(m, ok, IF ok THEN m.b ELSE "none", IF ok THEN m.g ELSE 0)
           IN  /\ cause = "full" => inserts
               /\ cause = "foreign" => inserts /\ ~Inserts(q, m, update[i])
               /\ Costs(cause)
               /\ work' = IF inserts /\ cause # "full" THEN work \cup {New(q, m)} ELSE work
               /\ net' = (IF cause = "dup" THEN net ELSE net \ {m}) \cup reply
               /\ net' # net \/ work' # work
               /\ harm' = harm
                    \cup (IF ~ok /\ \E d \in Known(m) : d.at = Home(q) /\ d.body % 10 = m.body THEN {"refused"} ELSE {})
                    \cup (IF ok /\ ~\E d \in work' : Same(d, m) /\ d.body % 10 = m.body THEN {"unsafe"} ELSE {})
    /\ UNCHANGED <<telegram, node, meta, update, effects, unwanted>>

(* It cannot be read there, or kills who reads it. *)
Unheard(q, i) ==
    /\ Up(q) /\ i \in Mute
    /\ \E m \in net : m.kind = "forward" /\ m.to = q /\ m.i = i /\ net' = net \ {m}
    /\ UNCHANGED <<telegram, node, meta, update, work, outcome, budget>>

(* Somebody has journaled nothing, and is friendly, means another, or names what he refuses. *)
Babble(q, i) ==
    /\ Up(q) /\ Spend("babble")
    /\ \E m \in net :
        /\ m.kind = "forward" /\ m.to = q /\ m.i = i
        /\ \E reply \in {Reply(m, TRUE, "none", 0), Reply(m, TRUE, m.b, 1), Reply(m, FALSE, m.b, m.g)} :
            net' = (net \ {m}) \cup reply
    /\ UNCHANGED <<telegram, node, meta, update, work, outcome>>
-----------------------------------------------------------------------------
(* A worker: take, start, the effect, complete; each of them is a step, and it may die between any two. *)
Put(d, after) == work' = (work \ {d}) \cup {after}
Owned(p, i, receipt) == {d \in work : Up(p) /\ d.i = i /\ d.owner = p /\ d.receipt = receipt}

(* What fails, for whatever reason, stops nothing that comes after it. *)
Passes(d) ==
    Permit("poison_passes", TRUE) \/ \A e \in work : e.at = d.at /\ e.i < d.i => e.receipt \in {"done", "discarded"}

Take(p, i) ==
    /\ Up(p)
    /\ \E d \in work :
        /\ d.i = i /\ d.at = Home(p) /\ d.receipt = "pending" /\ Passes(d)
        /\ Put(d, [d EXCEPT !.receipt = "queued", !.owner = p])
    /\ UNCHANGED <<telegram, node, net, meta, update, outcome, budget>>

Start(p, i) ==
    /\ \E d \in Owned(p, i, "queued") :
        Put(d, [d EXCEPT !.receipt = "started", !.tries = IF i \in Poison THEN @ + 1 ELSE @])
    /\ UNCHANGED <<telegram, node, net, meta, update, outcome, budget>>

(* Durable first: started, and then the effect. *)
Effect(p, i) ==
    /\ i \notin Poison
    /\ \E d \in Owned(p, i, "started") \cup Owned(p, i, "queued") :
        /\ ~d.did /\ Guard("started_first", d.receipt = "started")
        /\ Put(d, [d EXCEPT !.did = TRUE])
    /\ effects' = [effects EXCEPT ![i] = IF @ < 2 THEN @ + 1 ELSE @]
    /\ UNCHANGED <<telegram, node, net, meta, update, unwanted, harm, budget>>

Complete(p, i) ==
    /\ \E d \in Owned(p, i, "started") :
        /\ d.did
        /\ Put(d, [d EXCEPT !.receipt = "done", !.phase = "settled", !.owner = "none", !.did = FALSE])
    /\ UNCHANGED <<telegram, node, net, meta, update, outcome, budget>>

Fail(p, i) ==
    /\ i \in Poison
    /\ \E d \in Owned(p, i, "started") :
        Put(d, [d EXCEPT !.receipt = IF d.tries < Limit THEN "pending" ELSE "failed", !.owner = "none"])
    /\ UNCHANGED <<telegram, node, net, meta, update, outcome, budget>>

(* Proof: the owner is dead.  Unknown: what had begun is interrupted, for nobody knows what came of it. *)
Recover(q, i) ==
    /\ Up(q)
    /\ \E d \in work :
        /\ d.i = i /\ d.receipt \in {"queued", "started"} /\ d.owner # q
        /\ Guard("owner_proven_dead", node[d.owner].up = "dead")
        /\ Put(d, [d EXCEPT !.receipt = IF d.receipt = "queued" THEN "pending" ELSE "interrupted", !.owner = "none",
                            !.did = FALSE])
    /\ UNCHANGED <<telegram, node, net, meta, update, outcome, budget>>
=============================================================================
