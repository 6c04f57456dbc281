---------------------------- MODULE QueueHandoff ----------------------------
(* Can a queued item have two executors, or none, while it moves?           *)
(*                                                                          *)
(* A donor offers its row to one recipient.  The recipient's acceptance is  *)
(* one transaction, the donor's cancelling another, and whichever comes     *)
(* first decides.  Messages are lost, repeated and late; donor, recipient   *)
(* and leader die or go on as somebody else between any two steps.          *)
(* (bus.md d, e; I21, I22, I25-I31, V6-V10; holes L1-L7.)                   *)
EXTENDS QueueHandoffSteps
-----------------------------------------------------------------------------
Start(p) == Here(p) /\ Begins(p)
Complete(p) == Here(p) /\ Ends(p)
Freeze(p) == Here(p) /\ Froze(p)
Cancel(p) == Here(p) /\ Thaws(p)
Accept(r) == Here(r) /\ Accepting(r)

(* A thread of an activation that is over goes on, or does not. *)
Straggle(p) == Over(p) /\ (Begins(p) \/ Ends(p) \/ Froze(p) \/ Thaws(p) \/ Accepting(p))

(* Unknown: the journal has done it, and whoever asked was not told. *)
Unknown(p) ==
    /\ Here(p) /\ Spend("unknown")
    /\ \/ Has(p, "none") /\ MayTake(p) /\ row' = Takes(p) /\ Put(p, [Nothing EXCEPT !.phase = "rebuilding"])
       \/ /\ \/ Has(p, "holding") /\ p \notin Idle /\ MayStart(p) /\ row' = Starts
             \/ Has(p, "executing") /\ MayEnd(p) /\ row' = Done
             \/ Has(p, "offering") /\ Offers(p, node[p]) /\ row' = Freezes(p, node[p])
             \/ Has(p, "cancelling") /\ Cancels(p, node[p].acq, node[p].h) /\ row' = Thaw(row)
             \/ Has(p, "staged") /\ Fits(p) /\ row' = Accepts(p)
          /\ row' # row
          /\ UNCHANGED node
    /\ UNCHANGED <<up, net, ran, late>>

(* A worker begins anew and has forgotten everything; a call of the journal that was under way is made all the same. *)
Underway(p) ==
    LET c == node[p] IN
    CASE c.phase = "offering" -> {Msg("freeze", p, c.to, c.h, c.acq, 0)}
      [] c.phase = "cancelling" -> {Msg("cancel", p, "none", c.h, c.acq, 0)}
      [] c.phase = "executing" -> {Msg("complete", p, "none", 0, c.acq, 0)}
      [] OTHER -> {}
Forget(p) ==
    /\ Here(p) /\ node[p].phase \notin {"none", "rebuilding"} /\ Spend("forget")
    /\ Put(p, [Nothing EXCEPT !.phase = "rebuilding"])
    /\ net' = (net \ Call(p)) \cup Underway(p)
    /\ UNCHANGED <<row, up, ran, late>>

LateCall(p) ==
    /\ \E m \in net :
        /\ m.sender = p /\ m.kind \in {"freeze", "cancel", "complete"}
        /\ row' = IF m.kind = "complete" THEN IF row.state = "started" /\ Owns(p, m.acq) THEN Done ELSE row
                  ELSE IF m.kind = "freeze" /\ Offers(m.sender, m) THEN Freezes(m.sender, m)
                  ELSE IF m.kind = "cancel" /\ Cancels(m.sender, m.acq, m.h) THEN Thaw(row) ELSE row
        /\ net' = net \ {m}
    /\ UNCHANGED <<node, up, ran, late, budget>>

(* A session ends: what is unstarted is given back, offered or not. *)
EndSession(p) ==
    /\ Here(p) /\ node[p].phase \in {"holding", "offering", "awaiting", "cancelling", "looking"} /\ Spend("session")
    /\ row' = Releases(p)
    /\ Put(p, Nothing)
    /\ net' = net \ Call(p)
    /\ UNCHANGED <<up, ran, late>>

(* Unknown: what was interrupted may have happened; only a person repeats it, or lets it be. *)
Retry ==
    /\ row.state \in {"interrupted", "failed"}
    /\ \/ Spend("person") /\ ran' = 0
       \/ Guard("a_person_asks", FALSE) /\ UNCHANGED <<budget, ran>>
    /\ row' = [Free(row) EXCEPT !.attempts = 0]
    /\ UNCHANGED <<node, up, net, late>>

Discard ==
    /\ row.state \in {"pending", "interrupted", "failed"}
    /\ \/ Spend("person")
       \/ Guard("a_person_asks", FALSE) /\ UNCHANGED budget
    /\ row' = [row EXCEPT !.state = "discarded"]
    /\ UNCHANGED <<node, up, net, ran, late>>

(* A clean-up that takes what somebody owns for what is over. *)
Sweep ==
    /\ row.state = "queued" /\ Guard("owned_is_kept", FALSE)
    /\ row' = Done
    /\ UNCHANGED <<node, up, net, ran, late, budget>>

(* A donor that does not wait for the answer. *)
DropEarly(p) ==
    /\ At(p, "awaiting") /\ Guard("kept_until_acknowledged", FALSE)
    /\ Put(p, Nothing)
    /\ UNCHANGED <<row, up, net, ran, late, budget>>
-----------------------------------------------------------------------------
Crash(p) ==
    /\ Here(p) /\ Spend("crash")
    /\ LET dead == {q \in Nodes : Process(q) = Process(p)} IN
       /\ up' = up \ dead
       /\ node' = [q \in Nodes |-> IF q \in dead THEN Nothing ELSE node[q]]
       /\ net' = {m \in net : ~(m.to \in dead /\ m.kind \in {"offer", "ack"})
                              /\ ~(m.sender \in dead /\ m.kind \in {"freeze", "cancel", "complete"})}
    /\ UNCHANGED <<row, ran, late>>

(* The process goes on as another activation, with an empty memory. *)
Reload ==
    /\ "a" \in up /\ "a2" \in Nodes \ up /\ Spend("reload")
    /\ up' = up \cup {"a2"}
    /\ net' = {m \in net : ~(m.to = "a" /\ m.kind \in {"offer", "ack"})}
    /\ UNCHANGED <<row, node, ran, late>>

Lose ==
    /\ \E m \in net :
        /\ m.kind \in {"ask", "offer", "ack"} /\ Spend("lose")
        /\ net' = net \ {m}
    /\ UNCHANGED <<row, node, up, ran, late>>

(* An offer arrives at somebody else. *)
Stray(r) ==
    /\ Here(r) /\ Spend("astray")
    /\ \E m \in net :
        /\ m.kind = "offer" /\ r \notin {m.sender, m.to}
        /\ net' = (net \ {m}) \cup {[m EXCEPT !.to = r]}
    /\ UNCHANGED <<row, node, up, ran, late>>

(* The same offer under a new request. *)
Repeat(p) ==
    /\ At(p, "awaiting") /\ Spend("repeat") /\ Request(p, node[p]) \notin net
    /\ net' = net \cup {Request(p, node[p])}
    /\ UNCHANGED <<row, node, up, ran, late>>

(* One of the two has another registration, or the leader is another, which knows neither. *)
Marked(of(_)) == net' = {IF m.kind \in {"ask", "offer"} THEN of(m) ELSE m : m \in net} /\ net' # net
Reregister(p) ==
    /\ Here(p) /\ Spend("reregister")
    /\ Marked(LAMBDA m : [m EXCEPT !.d = @ /\ m.sender # p, !.r = @ /\ m.to # p])
    /\ UNCHANGED <<row, node, up, ran, late>>
NewLeader ==
    /\ Spend("leader")
    /\ Marked(LAMBDA m : IF m.kind = "ask" THEN [m EXCEPT !.d = FALSE, !.r = FALSE] ELSE m)
    /\ UNCHANGED <<row, node, up, ran, late>>
-----------------------------------------------------------------------------
Init ==
    /\ row = [state |-> "pending", owner |-> Nobody, offer |-> NoOffer, fallen |-> "none", attempts |-> 0]
    /\ node = [p \in Nodes |-> Nothing]
    /\ up = Nodes \ {"a2"} /\ net = {} /\ ran = 0 /\ late = 0 /\ budget = Budget

Next ==
    \/ \E p \in Nodes : Take(p)
    \/ \E p \in Nodes : Rebuild(p)
    \/ \E p \in Nodes : Start(p)
    \/ \E p \in Nodes : StartRefused(p)
    \/ \E p \in Nodes : Complete(p)
    \/ \E p \in Nodes : CompleteRefused(p)
    \/ \E p \in Nodes : Fail(p)
    \/ \E p \in Nodes : Doubt(p)
    \/ \E p \in Nodes : Recover(p)
    \/ \E p \in Nodes : Reclaim(p)
    \/ \E p, r \in Nodes : Decide(p, r)
    \/ \E p \in Nodes : Freeze(p)
    \/ \E p \in Nodes : FreezeRefused(p)
    \/ \E p \in Nodes : Acked(p)
    \/ \E p \in Nodes : Denied(p)
    \/ \E p \in Nodes : TimeOut(p)
    \/ \E p \in Nodes : Cancel(p)
    \/ \E p \in Nodes : CancelRefused(p)
    \/ \E p \in Nodes : Look(p)
    \/ \E p \in Nodes : Unreadable(p)
    \/ \E r \in Nodes : Relay(r)
    \/ \E r \in Nodes : RelayRefuses(r)
    \/ \E r \in Nodes : Stage(r)
    \/ \E r \in Nodes : Again(r)
    \/ \E r \in Nodes : Refuse(r)
    \/ \E r \in Nodes : Accept(r)
    \/ \E r \in Nodes : AcceptRefused(r)
    \/ \E r \in Nodes : Publish(r)
    \/ \E r \in Nodes : CheckFails(r)
    \/ \E p \in Nodes : Straggle(p)
    \/ \E p \in Nodes : Unknown(p)
    \/ \E p \in Nodes : Forget(p)
    \/ \E p \in Nodes : LateCall(p)
    \/ \E p \in Nodes : EndSession(p)
    \/ Retry
    \/ Discard
    \/ Sweep
    \/ \E p \in Nodes : DropEarly(p)
    \/ \E p \in Nodes : Crash(p)
    \/ Reload
    \/ Lose
    \/ \E r \in Nodes : Stray(r)
    \/ \E p \in Nodes : Repeat(p)
    \/ \E p \in Nodes : Reregister(p)
    \/ NewLeader

(* Fairness: who is there goes on, and looks after the dead and its own past.  No message has to arrive (a donor's    *)
(* patience ends), nobody has to move, to die or to come back; of an activation that is over nothing has to go on;    *)
(* and a worker that can fail may always fail.  Weak fairness is enough, since each of these stays possible until it  *)
(* is done or something else has been.                                                                                *)
Fairness ==
    \A p \in Nodes :
        /\ WF_vars(Take(p)) /\ WF_vars(Rebuild(p))
        /\ WF_vars(Start(p) \/ StartRefused(p)) /\ WF_vars(Complete(p) \/ CompleteRefused(p) \/ Fail(p))
        /\ WF_vars(Recover(p)) /\ WF_vars(Reclaim(p))
        /\ WF_vars(Freeze(p) \/ FreezeRefused(p)) /\ WF_vars(TimeOut(p))
        /\ WF_vars(Cancel(p) \/ CancelRefused(p)) /\ WF_vars(Look(p))
        /\ WF_vars(Accept(p) \/ AcceptRefused(p)) /\ WF_vars(Publish(p))

Spec == Init /\ [][Next]_vars /\ Fairness
-----------------------------------------------------------------------------
Mine(p) == row.owner.node = p /\ row.owner.acq = node[p].acq
Phases == {"none", "rebuilding", "holding", "offering", "awaiting", "cancelling", "looking", "executing", "staged",
           "accepted"}

TypeOK ==
    /\ row.state \in {"pending", "queued", "started", "interrupted", "failed", "done", "discarded"}
    /\ row.owner.node \in Nodes \cup {"none"} /\ (row.owner = Nobody) = ~Owned
    /\ row.offer.to \in Nodes \cup {"none"} /\ row.fallen \in Nodes \cup {"none"} /\ row.attempts \in 0..Limit
    /\ \A p \in Nodes : node[p].phase \in Phases /\ (node[p].phase \in {"none", "rebuilding"} <=> node[p].acq = 0)
    /\ up \subseteq Nodes /\ ran \in 0..2 /\ late \in 0..12 /\ budget \in 0..Budget
    /\ \A m \in net : m.kind \in {"ask", "offer", "ack", "freeze", "cancel", "complete"}

(* It has its effect once, unless a person wants it again. *)
AtMostOnce == ran <= 1

(* Who executes is who owns the row, so there are never two. *)
OneExecutor_I25 == \A p \in Nodes : At(p, "executing") => (row.state = "started" /\ Mine(p)) \/ row.state = "done"
(* Never are there two who may begin, as far as each of them knows. *)
OneExecutor_I25_knows == \A p \in Nodes : At(p, "holding") /\ Owned /\ node[p].acq = row.owner.acq => Mine(p)
(* What tells a donor's copy from its recipient's is the process. *)
OneExecutor_I25_apart == row.offer # NoOffer => Process(row.offer.to) # Process(row.owner.node)

(* What a node owns that is there it has in its memory, or it is about to look. *)
Holds(p) == \/ Has(p, "rebuilding") \/ (Has(p, "staged") /\ node[p].h = row.owner.by)
            \/ (node[p].phase \notin {"none", "rebuilding", "staged"} /\ Mine(p))
WorkIsHeld_I26 == Owned /\ Here(row.owner.node) => Holds(row.owner.node)

(* Accepted is the offer that is open, by the one it is for, from the one who owns the item: else a copy is executed *)
(* that nobody offered, or that its donor executes as well.                                                         *)
Accepted(r) == Has(r, "staged") /\ node'[r].phase = "accepted" /\ row' # row
AcceptIsExact_I27 == [][\A r \in Nodes : Accepted(r) => row.offer.h = node[r].h]_vars
AcceptIsExact_I27_recipient == [][\A r \in Nodes : Accepted(r) => row.offer.to = r]_vars
AcceptIsExact_I27_donor ==
    [][\A r \in Nodes : Accepted(r) => row.owner = [node |-> node[r].to, acq |-> node[r].acq, by |-> node[r].by]]_vars

(* What is offered is not executed, and not offered to another; who waits for an answer waits for the open offer. *)
FrozenWhileOffered_I28 == row.offer # NoOffer => row.state = "queued"
FrozenWhileOffered_I28_other == [][row.offer # NoOffer => row.offer' \in {row.offer, NoOffer}]_vars
FrozenWhileOffered_I28_awaited == \A p \in Nodes : At(p, "awaiting") /\ Mine(p) => row.offer.h = node[p].h

(* Who has accepted an offer never says no to it. *)
AcceptIdempotent_I29 ==
    [][\A m \in net' \ net : m.kind = "ack" /\ m.by = 0 /\ (\A q \in net \ net' : q.kind # "ask") =>
          ~(Live(m.sender)' /\ node'[m.sender].by = m.h)]_vars

(* A donor drops its copy when the row is no longer its own. *)
ExactAck_I30 ==
    [][\A p \in Nodes : At(p, "awaiting") /\ node'[p].phase = "none" /\ p \in up' =>
          ~(row'.owner.node = p /\ row'.owner.acq = node[p].acq)]_vars

(* An offer goes between registrations that are current, of two that know handoffs. *)
LiveGenerations_I31 ==
    [][\A m \in net' \ net : m.kind = "offer" /\ (\A q \in net \ net' : q.kind = "ask") =>
          m.d /\ m.r /\ {m.sender, m.to} \cap Unable = {}]_vars
LiveGenerations_I31_mine ==
    [][\A r \in Nodes : Bare(r) /\ node'[r].phase = "staged" =>
          \E m \in net \ net' : m.kind = "offer" /\ m.to = r /\ m.r]_vars

(* Nobody loses what he owns while he lives, but by what he does himself. *)
RecoveryNeedsProof_I22 ==
    [][Owned /\ Here(row.owner.node) /\ row'.state \in {"pending", "interrupted"} =>
          node'[row.owner.node] # node[row.owner.node]]_vars

(* What has begun is over when its executor says so. *)
OwnerSettles_I21 ==
    [][row.state = "started" /\ row'.state \in {"done", "pending", "failed"} =>
          LET p == row.owner.node IN
          \/ Mine(p) /\ (node'[p] = Nothing \/ budget' # budget)
          \/ \E m \in net \ net' : m.kind = "complete" /\ m.sender = p /\ m.acq = row.owner.acq]_vars

(* Done is what has had its effect. *)
OwnerSettles_I21_done == row.state = "done" => ran > 0

(* Work is taken by who serves its binding, by who was to get it, or by the leader when nobody is left. *)
OwnBinding_I17 ==
    [][row.state = "pending" /\ row'.state = "queued" =>
          LET p == row'.owner.node IN Serves(p) \/ Left \/ row.fallen = p]_vars

(* What has come by a handoff goes on by one: an exact offer is not declined. *)
MovesOn_L6 ==
    [][\A r \in Nodes : At(r, "staged") /\ node'[r].phase = "none" /\ r \in up' =>
          ~(row.state = "queued" /\ row.offer = [h |-> node[r].h, to |-> r] /\ row.owner.acq = node[r].acq)]_vars

Settled == row.state \in {"done", "interrupted", "failed", "discarded"}
Alone == up \subseteq Idle                      \* nobody is left who could do anything
(* An offer is accepted, withdrawn, or falls: by TimeOut with Cancel, or Recover or Reclaim where its donor is gone. *)
OfferResolves_V8 == \A h \in 1..6 : row.offer.h = h ~> (row.offer.h # h \/ Alone)
Stale(p) == Here(p) /\ node[p].phase \in {"holding", "offering", "awaiting", "cancelling", "looking"} /\ ~Mine(p)
(* Nobody keeps a copy that is not his: by TimeOut, Cancel and Look, or what the row says when he would begin. *)
DonorDrops_V9 == \A p \in Nodes : Stale(p) ~> ~Stale(p)
(* The item is executed in the end, or a person is shown why not: by all of them together. *)
EventuallyExecutedOrInterrupted_V10 == TRUE ~> (Settled \/ Alone)
(* What the dead own is pending again, offered or not: by Recover of somebody who lives. *)
OfDead == Owned /\ row.owner.node \notin up
DeadIsRecovered_V6 == OfDead ~> (~OfDead \/ Alone)
(* And so is what an activation owns that is over, of a process that lives: by Reclaim of its successor. *)
OfPast == Owned /\ Over(row.owner.node)
ReloadIsRecovered_V7 == OfPast ~> ~OfPast
=============================================================================
