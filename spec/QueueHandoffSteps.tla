-------------------------- MODULE QueueHandoffSteps -------------------------
(* The steps of a handoff: a donor, the leader between, and a recipient.    *)
EXTENDS QueueHandoffRow
-----------------------------------------------------------------------------
(* A donor: the row first, and then the message.  Nobody knows of the offer until it is written down. *)
Decide(p, r) ==
    /\ At(p, "holding") /\ Here(r) /\ Spend(IF r = p THEN "self" ELSE "move")
    /\ Guard("leader_can_carry", node[p].by = 0 \/ "leader" \notin Old)
    /\ Put(p, [node[p] EXCEPT !.phase = "offering", !.h = New, !.to = r])
    /\ UNCHANGED <<row, up, net, ran, late>>

Offers(p, c) ==
    /\ row.state = "queued" /\ Owns(p, c.acq)
    /\ \/ Guard("to_another_process", Process(p) # Process(c.to)) /\ Guard("one_offer", row.offer = NoOffer)
       \/ Guard("same_offer", row.offer = [h |-> c.h, to |-> c.to])
Freezes(p, c) == IF Guard("to_another_process", Process(p) # Process(c.to)) /\ Guard("one_offer", row.offer = NoOffer)
                 THEN [row EXCEPT !.offer = [h |-> c.h, to |-> c.to]] ELSE row

Froze(p) ==
    /\ Has(p, "offering") /\ Offers(p, node[p])
    /\ row' = Freezes(p, node[p])
    /\ Turn(p, "awaiting")
    /\ net' = net \cup {Request(p, node[p])}
    /\ UNCHANGED <<up, ran, late, budget>>

FreezeRefused(p) ==
    /\ At(p, "offering") /\ ~Offers(p, node[p])
    /\ Turn(p, "looking")
    /\ UNCHANGED <<row, up, net, ran, late, budget>>

(* The donor drops its copy for an answer by which its recipient owns the item by its own handoff, and for no other. *)
Exact(m) == Guard("ack_is_exact", m.by = node[m.to].h /\ m.sender = node[m.to].to)
Hears(m) == m.kind = "ack" /\ At(m.to, "awaiting") /\ m.h = node[m.to].h
(* The call of a donor: what is on its way of it. *)
Call(p) == {m \in net : (m.kind \in {"ask", "offer"} /\ m.sender = p) \/ (m.kind = "ack" /\ m.to = p)}

Acked(p) ==
    /\ \E m \in net :
        /\ m.to = p /\ Hears(m) /\ Exact(m)
        /\ Put(m.to, Nothing)
        /\ net' = net \ Call(m.to)
    /\ UNCHANGED <<row, up, ran, late, budget>>

Denied(p) ==
    /\ \E m \in net :
        /\ m.to = p /\ Hears(m) /\ ~Exact(m)
        /\ Turn(m.to, "cancelling")
        /\ net' = net \ Call(m.to)
    /\ UNCHANGED <<row, up, ran, late, budget>>

(* Nobody waits for ever; a request that comes after that is a fault of time. *)
TimeOut(p) ==
    /\ At(p, "awaiting")
    /\ Turn(p, "cancelling")
    /\ \/ net' = net \ Call(p) /\ UNCHANGED budget
       \/ \E m \in Call(p) : m.kind = "offer" /\ Spend("late") /\ net' = (net \ Call(p)) \cup {m}
    /\ UNCHANGED <<row, up, ran, late>>

Cancels(p, acq, h) == row.state = "queued" /\ Owns(p, acq) /\ Guard("offer_still_open", row.offer.h = h)

Thaws(p) ==
    /\ Has(p, "cancelling") /\ Cancels(p, node[p].acq, node[p].h)
    /\ row' = Thaw(row)
    /\ Put(p, Copy("holding", node[p].acq, node[p].by))
    /\ UNCHANGED <<up, net, ran, late, budget>>

CancelRefused(p) ==
    /\ At(p, "cancelling") /\ ~Cancels(p, node[p].acq, node[p].h)
    /\ Permit("refused_cancel_looks", TRUE)
    /\ Turn(p, "looking")
    /\ UNCHANGED <<row, up, net, ran, late, budget>>

(* The row says whose it is: mine, and perhaps still offered, or begun (not by me, or I would know); or no longer. *)
Look(p) ==
    /\ At(p, "looking")
    /\ IF ~Guard("row_is_mine", row.owner.node = p /\ row.owner.acq = node[p].acq)
       THEN Put(p, Nothing) /\ UNCHANGED ran
       ELSE IF Guard("row_says_begun", row.state = "started") THEN Executes(p)
       ELSE /\ Put(p, IF Guard("row_says_unoffered", row.offer = NoOffer) THEN Copy("holding", node[p].acq, node[p].by)
                      ELSE [Copy("cancelling", node[p].acq, node[p].by) EXCEPT !.h = row.offer.h])
            /\ UNCHANGED ran
    /\ UNCHANGED <<row, up, net, late, budget>>

Unreadable(p) == At(p, "looking") /\ Spend("unreadable") /\ UNCHANGED <<row, node, up, net, ran, late>>
-----------------------------------------------------------------------------
(* The leader between: it remembers nothing of it. *)
Passes(m) ==
    /\ Guard("donor_is_live", m.d) /\ Guard("recipient_is_live", m.r)
    /\ Guard("both_can", {m.sender, m.to} \cap Unable = {})
    /\ Guard("second_move_known", m.by = 0 \/ m.to \notin Old)
Carries(m) == IF {m.to, "leader"} \cap Old = {} THEN m.by ELSE 0

(* Who does not know a member drops it. *)
Relay(r) ==
    /\ \E m \in net :
        /\ m.to = r /\ m.kind = "ask" /\ Passes(m) /\ Here(m.to)
        /\ net' = (net \ {m}) \cup {[m EXCEPT !.kind = "offer", !.by = Carries(m)]}
    /\ UNCHANGED <<row, node, up, ran, late, budget>>

RelayRefuses(r) ==
    /\ \E m \in net :
        /\ m.to = r /\ m.kind = "ask" /\ ~(Passes(m) /\ Here(m.to))
        /\ net' = (net \ {m}) \cup Answer(m, 0)
    /\ UNCHANGED <<row, node, up, ran, late, budget>>
-----------------------------------------------------------------------------
(* A recipient: everything that can be checked is checked before it accepts. *)
Stages(m) == /\ Guard("generation_is_mine", m.r)
             /\ Guard("has_a_worker", m.to \notin Idle /\ ~Has(m.to, "rebuilding"))
Bare(p) == node[p].phase \in {"none", "rebuilding"}
Came(m) == m.kind = "offer" /\ Here(m.to)

Stage(r) ==
    /\ \E m \in net :
        /\ m.to = r /\ Came(m) /\ Bare(m.to) /\ Stages(m)
        /\ Put(m.to, [Copy("staged", m.acq, m.by) EXCEPT !.h = m.h, !.to = m.sender])
        /\ net' = net \ {m}
    /\ UNCHANGED <<row, up, ran, late, budget>>

(* What it has already accepted it says again. *)
Live(p) == node[p].phase \in {"holding", "offering", "awaiting", "cancelling", "looking", "executing"}
SameHandoff(m) == Permit("live_answers_again", node[m.to].by = m.h)

Again(r) ==
    /\ \E m \in net :
        /\ m.to = r /\ Came(m) /\ Live(m.to) /\ SameHandoff(m)
        /\ net' = (net \ {m}) \cup Answer(m, m.h)
    /\ UNCHANGED <<row, node, up, ran, late, budget>>

Refuse(r) ==
    /\ \E m \in net :
        /\ m.to = r /\ Came(m)
        /\ \/ Bare(m.to) /\ ~Stages(m)
           \/ Live(m.to) /\ ~SameHandoff(m)
        /\ net' = (net \ {m}) \cup Answer(m, 0)
    /\ UNCHANGED <<row, node, up, ran, late, budget>>

(* The acceptance compares the whole offer; from here on the recipient owns the item.  Asked again, it says the same. *)
Fits(r) ==
    /\ row.state = "queued"
    /\ Guard("offer_is_that", row.offer.h = node[r].h)
    /\ Guard("recipient_is_me", row.offer.to = r)
    /\ Guard("donor_owns", row.owner = [node |-> node[r].to, acq |-> node[r].acq, by |-> node[r].by])
Before(r) == row.state = "queued" /\ Guard("accepted_before", row.owner.by = node[r].h /\ row.owner.node = r)
Accepts(r) == IF Fits(r) THEN [Thaw(row) EXCEPT !.owner = [node |-> r, acq |-> New, by |-> node[r].h]] ELSE row

Accepting(r) ==
    /\ Has(r, "staged") /\ (Fits(r) \/ Before(r))
    /\ row' = Accepts(r)
    /\ Put(r, [Copy("accepted", row'.owner.acq, node[r].h) EXCEPT !.to = node[r].to])
    /\ UNCHANGED <<up, net, ran, late, budget>>

(* Which request it answers. *)
Asked(r, h) == [Msg("offer", node[r].to, r, h, 0, 0) EXCEPT !.sender = node[r].to]

AcceptRefused(r) ==
    /\ At(r, "staged") /\ ~Fits(r) /\ ~Before(r)
    /\ Put(r, Nothing)
    /\ net' = net \cup Answer(Asked(r, node[r].h), 0)
    /\ UNCHANGED <<row, up, ran, late, budget>>

Publish(r) ==
    /\ At(r, "accepted")
    /\ Put(r, Copy("holding", node[r].acq, node[r].by))
    /\ net' = net \cup Answer(Asked(r, node[r].by), node[r].by)
    /\ UNCHANGED <<row, up, ran, late, budget>>

(* What has not begun here goes back, whatever the row was told and nobody else was. *)
Releases(p) == IF Owned /\ Owns(p, node[p].acq) THEN Free(row) ELSE row

(* A check of its own fails after it has accepted: it gives the row back, never its copy alone. *)
CheckFails(r) ==
    /\ At(r, "accepted") /\ Spend("check")
    /\ row' = IF Guard("released_in_journal", FALSE) THEN row ELSE Releases(r)
    /\ Put(r, Nothing)
    /\ net' = net \cup Answer(Asked(r, node[r].by), 0)
    /\ UNCHANGED <<up, ran, late>>
=============================================================================
