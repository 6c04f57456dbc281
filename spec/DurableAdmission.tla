--------------------------- MODULE DurableAdmission --------------------------
(* Can an update be lost or executed twice between Telegram and the         *)
(* instance that owns it?  Leaders in turn, of which one may not know yet   *)
(* that it leads no more; instances that die, are replaced, or are not      *)
(* there yet; one journal for all.  What belongs to the poll alone (cursor, *)
(* first start) is PollLoop's, what moves a receipt QueueHandoff's.         *)
(* (bus.md c, d, annex D; I13-I18, I22; V4, V5; L8, L9, L21.)               *)
EXTENDS DurableAdmissionInstance
-----------------------------------------------------------------------------
(* Fence: a winner raises the fence before anything else.  Who led before may not know. *)
Lead(p) ==
    /\ p \in Leaders /\ Up(p) /\ node[p].epoch # fence
    /\ Costs(IF \E q \in Processes : Current(q) THEN "depose" ELSE "none")
    /\ fence' = fence + 1
    /\ node' = [q \in Processes |-> IF q = p THEN [Idle EXCEPT !.epoch = fence', !.skips = ~opened]
                                    ELSE [node[q] EXCEPT !.reg = FALSE]]
    /\ net' = {m \in net : m.kind = "forward" \/ m.epoch # node[p].epoch}
    /\ UNCHANGED <<telegram, opened, offset, update, work, outcome>>

Notice(p) ==
    /\ Leads(p) /\ ~Current(p)
    /\ To(p, Idle)
    /\ net' = {m \in net : m.kind = "forward" \/ m.epoch # node[p].epoch}
    /\ UNCHANGED <<telegram, meta, update, work, outcome, budget>>

(* An instance is registered with whoever leads; c is there in the place of b. *)
Register(p) ==
    /\ Up(p) /\ ~node[p].reg /\ node[p].epoch = 0
    /\ \E l \in Processes : Current(l) /\ Home(l) # Home(p)
    /\ ~(p = "b" /\ "c" \in Processes /\ Up("c"))
    /\ node' = [q \in Processes |-> IF Home(q) = Home(p) THEN [node[q] EXCEPT !.reg = (q = p)] ELSE node[q]]
    /\ UNCHANGED <<telegram, net, meta, update, work, outcome, budget>>

Silent(p) ==
    /\ node[p].reg /\ Spend("silent")
    /\ To(p, [node[p] EXCEPT !.reg = FALSE])
    /\ UNCHANGED <<telegram, net, meta, update, work, outcome>>

(* Somebody starts another process in the place of one that died, or of one that lives. *)
Arrive(p) ==
    /\ node[p].up = "no"
    /\ Costs(IF \E q \in Processes : Home(q) = Home(p) /\ Up(q) THEN "replace" ELSE "none")
    /\ To(p, Idle)
    /\ UNCHANGED <<telegram, net, meta, update, work, outcome>>

(* What it was about to say may be on the way, or never have been said. *)
Crash(p) ==
    /\ Up(p) /\ Spend("crash")
    /\ To(p, [Idle EXCEPT !.up = "dead"])
    /\ net' \in {{m \in net : IF m.kind = "forward" THEN m.to # p ELSE m.epoch # node[p].epoch},
                 {m \in net : m.to # p /\ m.epoch # node[p].epoch}}
    /\ work' = {IF d.owner = p THEN [d EXCEPT !.did = FALSE] ELSE d : d \in work}
    /\ UNCHANGED <<telegram, meta, update, outcome>>

Lose ==
    /\ Spend("lose")
    /\ \E m \in net : net' = net \ {m}
    /\ UNCHANGED <<telegram, node, meta, update, work, outcome>>

Send ==
    /\ sent < Last /\ sent' = sent + 1
    /\ UNCHANGED <<confirmed, target, node, net, meta, update, work, outcome, budget>>

(* A thread is restored to another instance. *)
Move(i) ==
    /\ Spend("move")
    /\ target' = [target EXCEPT ![i] = IF @ = "A" THEN "B" ELSE "A"]
    /\ UNCHANGED <<sent, confirmed, node, net, meta, update, work, outcome>>
-----------------------------------------------------------------------------
(* Rows are trimmed, by number or age.  Late is nothing: a tombstone stands as long as its update may be forwarded. *)
Forget(i) ==
    /\ update[i].phase \in {"delivered", "skipped", "discarded"} /\ Spend("trim")
    /\ Fresh(i, "absent")
    /\ UNCHANGED <<telegram, node, net, meta, work, outcome>>

Trim(i) ==
    /\ Spend("trim")
    /\ \E d \in work : /\ d.i = i /\ d.phase \in {"settled", "discarded"}
                       /\ Guard("replays_end", ~Live(i))
                       /\ work' = work \ {d}
    /\ UNCHANGED <<telegram, node, net, meta, update, outcome>>

(* A person: does not want an update that no instance has; does not want a receipt; or wants it once more. *)
Discard(i) ==
    /\ Live(i) /\ NotAdmitted(i) /\ Spend("person")
    /\ Goes(i, "discarded")
    /\ unwanted' = unwanted \cup {i}
    /\ UNCHANGED <<telegram, node, net, meta, work, effects, harm>>

Waive(i) ==
    /\ Spend("person")
    /\ \E d \in work : /\ d.i = i /\ d.receipt \in {"pending", "interrupted", "failed"}
                       /\ Put(d, [d EXCEPT !.receipt = "discarded", !.phase = "discarded", !.tries = 0])
    /\ unwanted' = unwanted \cup {i}
    /\ UNCHANGED <<telegram, node, net, meta, update, effects, harm>>

Again(i) ==
    /\ Spend("person")
    /\ \E d \in work : /\ d.i = i /\ d.receipt \in {"interrupted", "failed"}
                       /\ Put(d, [d EXCEPT !.receipt = "pending", !.tries = 0])
    /\ effects' = [effects EXCEPT ![i] = 0]
    /\ UNCHANGED <<telegram, node, net, meta, update, unwanted, harm>>

(* Unknown: what was interrupted may have happened; nobody repeats it by himself. *)
Redo(i) ==
    /\ Guard("a_person_asks", FALSE)
    /\ \E d \in work : /\ d.i = i /\ d.receipt \in {"interrupted", "failed"}
                       /\ Put(d, [d EXCEPT !.receipt = "pending", !.tries = 0])
    /\ UNCHANGED <<telegram, node, net, meta, update, outcome, budget>>
-----------------------------------------------------------------------------
Init ==
    /\ sent = 0 /\ confirmed = 0 /\ net = {}
    /\ node = [p \in Processes |-> CASE p = "a" -> [Idle EXCEPT !.epoch = 1, !.skips = First]
                                     [] p = "c" -> [Idle EXCEPT !.up = "no"]
                                     [] OTHER -> Idle]
    /\ target = [i \in Updates |-> Target]
    /\ fence = 1 /\ opened = ~First /\ offset = IF "anew" \in Causes THEN Last + 1 ELSE 0
    /\ update = [i \in Updates |-> [phase |-> "absent", binding |-> "none", tries |-> 0]]
    /\ work = {} /\ effects = [i \in Updates |-> 0] /\ unwanted = {} /\ harm = {}
    /\ budget = Budget

Next ==
    \/ \E p \in Processes : Poll(p)
    \/ \E p \in Processes : Serve(p)
    \/ \E p \in Processes : Conflict(p)
    \/ \E p \in Processes : Journal(p)
    \/ \E p \in Processes : Renumber(p)
    \/ \E p \in Processes : JournalRefused(p)
    \/ \E p \in Processes : Open(p)
    \/ \E p \in Processes, i \in Updates : Forward(p, i)
    \/ \E p \in Processes, i \in Updates : Unserved(p, i)
    \/ \E p \in Processes, i \in Updates : Drop(p, i)
    \/ \E p \in Processes, i \in Updates : Keep(p, i)
    \/ \E q \in Processes, i \in Updates : HearForward(q, i)
    \/ \E q \in Processes, i \in Updates : Unheard(q, i)
    \/ \E q \in Processes, i \in Updates : Babble(q, i)
    \/ \E p \in Processes, i \in Updates : HearAck(p, i)
    \/ \E p \in Processes, i \in Updates : Unanswered(p, i)
    \/ \E i \in Updates : Retry(i)
    \/ \E p \in Processes, i \in Updates : Resume(p, i)
    \/ \E i \in Updates : Release(i)
    \/ \E p \in Processes, i \in Updates : Take(p, i)
    \/ \E p \in Processes, i \in Updates : Start(p, i)
    \/ \E p \in Processes, i \in Updates : Effect(p, i)
    \/ \E p \in Processes, i \in Updates : Complete(p, i)
    \/ \E p \in Processes, i \in Updates : Fail(p, i)
    \/ \E q \in Processes, i \in Updates : Recover(q, i)
    \/ \E p \in Processes : Lead(p)
    \/ \E p \in Processes : Notice(p)
    \/ \E p \in Processes : Register(p)
    \/ \E p \in Processes : Silent(p)
    \/ \E p \in Processes : Arrive(p)
    \/ \E p \in Processes : Crash(p)
    \/ Lose
    \/ Send
    \/ \E i \in Updates : Move(i)
    \/ \E i \in Updates : Forget(i)
    \/ \E i \in Updates : Trim(i)
    \/ \E i \in Updates : Discard(i)
    \/ \E i \in Updates : Waive(i)
    \/ \E i \in Updates : Again(i)
    \/ \E i \in Updates : Redo(i)

(* Fairness: who is up goes on with what it has in hand, a step of it at a time; what arrives is heard; somebody leads, *)
(* and who was displaced notices; an instance registers, and somebody starts another one where none is left.  Nobody    *)
(* has to command or to die, and no message that was lost has to arrive.                                                *)
Polls(p) == Poll(p) \/ Serve(p) \/ Journal(p) \/ Renumber(p) \/ JournalRefused(p) \/ Open(p)
Moves(p, i) == Forward(p, i) \/ Keep(p, i) \/ HearAck(p, i) \/ Unanswered(p, i) \/ Resume(p, i)
Works(p, i) == Take(p, i) \/ Start(p, i) \/ Effect(p, i) \/ Complete(p, i) \/ Fail(p, i)
Fairness ==
    /\ \A p \in Processes :
        /\ WF_vars(Polls(p)) /\ WF_vars(Lead(p)) /\ WF_vars(Notice(p)) /\ WF_vars(Register(p)) /\ WF_vars(Arrive(p))
        /\ \A i \in Updates :
            /\ WF_vars(Moves(p, i)) /\ WF_vars(Works(p, i)) /\ WF_vars(HearForward(p, i) \/ Unheard(p, i))
            /\ WF_vars(Recover(p, i))
    /\ \A i \in Updates : WF_vars(Retry(i)) /\ WF_vars(Release(i))

Spec == Init /\ [][Next]_vars /\ Fairness
-----------------------------------------------------------------------------
TypeOK ==
    /\ sent \in 0..Last /\ confirmed \in 0..Last /\ offset \in 0..(Last + 1)
    /\ opened \in BOOLEAN /\ fence \in 1..(Budget + 1)
    /\ \A p \in Processes :
        /\ node[p].up \in {"no", "yes", "dead"} /\ node[p].epoch \in 0..fence
        /\ node[p].poll \in {None, Newest} \cup 0..(Last + 1) /\ node[p].got \in 0..Last
        /\ node[p].anew \in BOOLEAN /\ node[p].sending \subseteq Updates
        /\ node[p].reg \in BOOLEAN /\ node[p].skips \in BOOLEAN
    /\ update \in [Updates -> [phase : {"absent", "journaled", "forwarding", "waiting", "delivered", "skipped",
                                        "discarded"},
                               binding : {"none", "A", "B"}, tries : 0..Patience]]
    /\ \A d \in work :
        /\ d.phase = (CASE d.receipt = "done" -> "settled" [] d.receipt = "discarded" -> "discarded"
                         [] OTHER -> "journaled")
        /\ d.receipt \in {"pending", "queued", "started", "interrupted", "failed", "done", "discarded"}
        /\ (d.owner \in Processes) = (d.receipt \in {"queued", "started"})
    /\ effects \in [Updates -> 0..2] /\ unwanted \subseteq Updates /\ budget \in 0..Budget

(* Telegram forgets only what has been journaled. *)
JournalBeforeConfirm_I18 == confirmed <= offset

(* Whatever was journaled is waited for, has an instance, was executed, or nobody wants it; and who is told that his    *)
(* update is safe, it is in the journal as he sent it.                                                                  *)
Held(i) == Live(i) \/ i \in unwanted \/ effects[i] > 0 \/ \E d \in work : d.i = i
Passed == IF offset > sent THEN 0 ELSE offset    \* an offset of before Telegram began anew is no id of now
NothingLost == "unsafe" \notin harm /\ \A i \in Updates : i <= Max(Passed, confirmed) => Held(i)

(* The leader lets go of an update only when an instance has it. *)
ExactReceipt_I13 ==
    [][\A i \in Updates : At(i, "forwarding") /\ update'[i].phase = "delivered" =>
          \E d \in work : d.i = i /\ d.b = update[i].binding /\ d.g = 0]_vars

(* An update is one delivery to a binding, whoever serves it. *)
StableDelivery_I14 == \A d, e \in work : d.i = e.i /\ d.b = e.b => d = e

(* No update is executed twice, unless a person has asked for that. *)
AtMostOnce_I15 == \A i \in Updates : effects[i] <= 1

(* What has been admitted is admitted again: a leader that asks is told so. *)
Admittable_I16 == "refused" \notin harm

(* An update is executed by an instance that serves its binding. *)
OwnBinding_I17 == \A d \in work : d.owner # "none" => Home(d.owner) = d.b

(* Not more is under way than there is room for. *)
Bounded_I23 == Cardinality({d \in work : d.phase = "journaled"}) <= Room

(* A leader that was displaced throws nothing away: what came after the first start is work. *)
StaleLeaderInert ==
    [][opened => \A i \in Updates : update'[i].phase = "skipped" => At(i, "skipped")]_vars

(* Nobody is told that work is free, or interrupted, which a living process has in hand. *)
RecoveryNeedsProof_I22 ==
    [][\A d \in work : d.owner # "none" /\ d.i \notin Poison /\ node'[d.owner].up = "yes" =>
          \A e \in work' : Same(e, d) => e.owner = d.owner \/ e.receipt = "done"]_vars

(* Every update is executed, or a person is shown that it was interrupted, has failed or is sent in vain, as long as    *)
(* somebody leads and its binding is not gone.                                                                          *)
Nobody(i) ==
    \/ \A p \in Leaders : ~Up(p)
    \/ Gone(target[i]) \/ \E d \in work : d.i = i /\ Gone(d.at)
Resolved(i) ==
    \/ effects[i] > 0 \/ i \in unwanted \/ Nobody(i)
    \/ \E d \in work : d.i = i /\ d.receipt \in {"interrupted", "failed"}
    \/ At(i, "waiting") /\ Aside(i)
EventuallyExecutedOrInterrupted_V4 == \A i \in Updates : (sent >= i) ~> Resolved(i)

(* Those that fail, and those that no instance can take, do not stop the others. *)
PoisonPasses_V5 == \A i \in Updates \ (Poison \cup Mute) : (sent >= i) ~> Resolved(i)
=============================================================================
