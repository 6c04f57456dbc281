--------------------------- MODULE QueueHandoffRow --------------------------
(* The journal's row of a queued item, and what a worker does with it.      *)
(* QueueHandoffSteps has the steps of a handoff, QueueHandoff what befalls  *)
(* them, and what holds.                                                    *)
(*                                                                          *)
(* Who may execute the item is what one row of the journal says: its owner. *)
(* Whatever a process has in its memory is a copy, and no authority.  Each  *)
(* operation of the journal is one transaction, hence one step.             *)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Nodes,      \* activations that may hold the item: "a" serves its binding, "a2" goes on when a has reloaded
    Causes,     \* which faults and commands there are
    Budget,     \* how many of them together
    Limit,      \* at how many failed attempts nobody tries again by himself
    Idle,       \* nodes that have no worker
    Unable,     \* nodes that do not know handoffs
    Old,        \* nodes that know handoffs, but not that of an item that has come by one (queue-handoff-v2)
    Off         \* the guards and permits taken away; {} is the protocol

VARIABLES
    row,        \* the receipt in the journal
    node,       \* node[p]: the copy in the memory of p
    up,         \* the nodes that live
    net,        \* requests and answers on their way, and journal calls of a worker that has forgotten them
    ran,        \* effects that have begun since the item came, or since a person asked for it again
    late,       \* the acquisition of a dead owner that somebody else has seen dead as well, and comes to recover; or 0
    budget

vars == <<row, node, up, net, ran, late, budget>>

Guard(name, holds)  == name \in Off \/ holds
Permit(name, holds) == name \notin Off /\ holds
Spend(cause) == cause \in Causes /\ budget > 0 /\ budget' = budget - 1

Process(p) == IF p = "a2" THEN "a" ELSE p
Over(p) == p = "a" /\ "a2" \in up               \* its process goes on as another activation; a thread may be left of it
Here(p) == p \in up /\ ~Over(p)

Nobody == [node |-> "none", acq |-> 0, by |-> 0]    \* by: the handoff by which it came, or 0
NoOffer == [h |-> 0, to |-> "none"]
Nothing == [phase |-> "none", acq |-> 0, by |-> 0, h |-> 0, to |-> "none"]
Copy(phase, acq, by) == [Nothing EXCEPT !.phase = phase, !.acq = acq, !.by = by]

(* Identities are compared for equality alone: the least one that nobody refers to is a new one. *)
Used == {row.owner.acq, row.owner.by, row.offer.h, late}
        \cup UNION {{node[p].acq, node[p].by, node[p].h} : p \in Nodes} \cup UNION {{m.h, m.acq, m.by} : m \in net}
New == CHOOSE n \in 1..12 : n \notin Used /\ \A m \in 1..12 : m < n => m \in Used

Has(p, phase) == node[p].phase = phase
At(p, phase) == Here(p) /\ Has(p, phase)
Put(p, copy) == node' = [node EXCEPT ![p] = copy]
Turn(p, phase) == Put(p, [node[p] EXCEPT !.phase = phase])

(* d, r: the registrations of donor and recipient under which it was sent are current. *)
Msg(kind, from, to, h, acq, by) ==
    [kind |-> kind, sender |-> from, to |-> to, h |-> h, acq |-> acq, by |-> by, d |-> TRUE, r |-> TRUE]
Request(p, c) == Msg("ask", p, c.to, c.h, c.acq, c.by)
(* An answer names the handoff by which who answers owns the item, a refusal none.  Nobody waits: nobody is told. *)
Answer(m, by) == IF At(m.sender, "awaiting") /\ node[m.sender].h = m.h
                 THEN {Msg("ack", m.to, m.sender, m.h, 0, by)} ELSE {}
-----------------------------------------------------------------------------
(* The row.  What is done with it names the activation and the acquisition under which that was decided. *)
Owns(p, acq) == /\ Guard("process_owns", row.owner.node = p)
                /\ Guard("acquisition_is_current", row.owner.acq = acq)
Free(r) == [r EXCEPT !.state = "pending", !.owner = Nobody, !.offer = NoOffer, !.fallen = "none"]
Cut(r) == [Free(r) EXCEPT !.state = "interrupted"]
Thaw(r) == [r EXCEPT !.offer = NoOffer]
Owned == row.state \in {"queued", "started"}

(* By which right one takes pending work: one serves its binding, or is the leader when nobody is left who could. *)
Serves(p) == Process(p) = "a" /\ ~Over(p)
Left == "a" \notin up

MayTake(p) == row.state = "pending" /\ Guard("may_take", Serves(p) \/ Left \/ row.fallen = p)
Takes(p) == [row EXCEPT !.state = "queued", !.owner = [node |-> p, acq |-> New, by |-> 0], !.fallen = "none"]

Take(p) ==
    /\ At(p, "none") /\ MayTake(p)
    /\ row' = Takes(p)
    /\ Put(p, Copy("holding", New, 0))
    /\ UNCHANGED <<up, net, ran, late, budget>>

(* A worker begins: what its own activation owns is in its queue; an open offer it withdraws first.  What had begun  *)
(* nobody knows of.                                                                                                  *)
Rebuild(p) ==
    /\ At(p, "rebuilding")
    /\ Put(p, IF row.state = "queued" /\ Guard("taker_has_it", row.owner.node = p)
              THEN [Copy(IF row.offer = NoOffer THEN "holding" ELSE "cancelling", row.owner.acq, row.owner.by)
                       EXCEPT !.h = row.offer.h]
              ELSE Nothing)
    /\ row' = IF row.state = "started" /\ row.owner.node = p THEN Cut(row) ELSE row
    /\ UNCHANGED <<up, net, ran, late, budget>>

(* Durable first: that it has begun is in the journal before anything happens outside.  Any copy may try. *)
MayStart(p) == row.state = "queued" /\ Owns(p, node[p].acq) /\ Guard("offered_is_frozen", row.offer = NoOffer)
Starts == [row EXCEPT !.state = "started", !.attempts = IF @ < Limit THEN @ + 1 ELSE @]
Executes(p) == /\ Put(p, Copy("executing", node[p].acq, node[p].by))
               /\ ran' = IF ran < 2 THEN ran + 1 ELSE 2

Begins(p) ==
    /\ p \notin Idle /\ node[p].phase \in {"staged", "holding", "offering", "awaiting", "cancelling", "looking"}
    /\ MayStart(p)
    /\ row' = Starts
    /\ Executes(p)
    /\ UNCHANGED <<up, net, late, budget>>

(* Why it may not begin is in the row. *)
StartRefused(p) ==
    /\ At(p, "holding") /\ p \notin Idle /\ ~MayStart(p)
    /\ Turn(p, "looking")
    /\ UNCHANGED <<row, up, net, ran, late, budget>>

MayEnd(p) == row.state = "started" /\ Owns(p, node[p].acq)
Done == [Free(row) EXCEPT !.state = "done"]

Ends(p) ==
    /\ Has(p, "executing") /\ MayEnd(p)
    /\ row' = Done
    /\ Put(p, Nothing)
    /\ UNCHANGED <<up, net, ran, late, budget>>

CompleteRefused(p) ==
    /\ At(p, "executing") /\ ~MayEnd(p)
    /\ Put(p, Nothing)
    /\ UNCHANGED <<row, up, net, ran, late, budget>>

(* It has failed, and certainly nothing has come of it. *)
Fail(p) ==
    /\ "poison" \in Causes
    /\ At(p, "executing") /\ MayEnd(p)
    /\ row' = [Free(row) EXCEPT !.state = IF Guard("attempts_left", row.attempts < Limit) THEN "pending" ELSE "failed"]
    /\ Put(p, Nothing)
    /\ ran' = ran - 1
    /\ UNCHANGED <<up, net, late, budget>>

(* Unknown: its owner does not know what has come of it. *)
Doubt(p) ==
    /\ At(p, "executing") /\ MayEnd(p) /\ Spend("doubt")
    /\ row' = Cut(row)
    /\ Put(p, Nothing)
    /\ UNCHANGED <<up, net, ran, late>>

(* Proof: the owner's process is dead; that is looked at inside the transaction.  Whoever is silent is not. *)
Recover(p) ==
    /\ Here(p) /\ Owned
    /\ \E acq \in {row.owner.acq, late} \ {0} :
        /\ Guard("owner_is_expected", row.owner.acq = acq)
        /\ Guard("owner_proven_dead", acq = late \/ row.owner.node \notin up)
        /\ late' = acq
    /\ \/ row.state = "started" \/ Guard("offered_is_frozen", row.offer = NoOffer)
       \/ Permit("offer_of_the_dead_falls", TRUE)
    /\ row' = IF row.state = "started" THEN Cut(row)
              ELSE IF Guard("offered_is_frozen", row.offer = NoOffer) THEN Free(row)
              ELSE [Free(row) EXCEPT !.fallen = row.offer.to]
    /\ UNCHANGED <<node, up, net, ran, budget>>

(* Proof: an earlier activation of this very process is over; nobody has to die for that. *)
Reclaim(p) ==
    /\ Here(p) /\ Owned
    /\ Guard("earlier_activation", Process(row.owner.node) = Process(p) /\ row.owner.node # p)
    /\ Permit("own_past_is_over", TRUE)
    /\ row' = IF row.state = "started" THEN Cut(row) ELSE Free(row)
    /\ UNCHANGED <<node, up, net, ran, late, budget>>
=============================================================================
