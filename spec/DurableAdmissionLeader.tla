----------------------- MODULE DurableAdmissionLeader -----------------------
(* What a leader does with an update, a transaction of the journal at a     *)
(* time.  DurableAdmissionInstance has what its instance does,              *)
(* DurableAdmission the world and what holds.                               *)
EXTENDS Integers, FiniteSets

CONSTANTS
    Processes,  \* of {"a", "b", "c"}; a leads first, c may come in the place of b
    Leaders,    \* those of them that may lead
    Last,       \* updates are numbered 1..Last
    First,      \* whether the first start is not over
    Target,     \* the binding that they are for
    Poison,     \* updates whose execution fails, certainly without effect
    Room,       \* how many deliveries may be under way
    Causes,     \* which faults and commands there are
    Budget,     \* how many of them together
    Off         \* the guards and permits taken away; {} is the protocol

VARIABLES
    sent,       \* the newest update that came to Telegram
    confirmed,  \* Telegram has forgotten everything up to here
    node,       \* node[p]: a process, with what it remembers
    net,        \* forwards and their answers on the way
    target,     \* target[i]: the binding that i belongs to now
    fence,      \* the journal: the highest epoch,
    opened,     \*   whether the first start is over,
    offset,     \*   the highest update that it has passed,
    update,     \*   update[i]: the leader's row,
    work,       \*   the deliveries, each with its receipt
    effects,    \* effects[i]: how often i was executed since a person last asked for it; two is as bad as three
    unwanted,   \* the updates that are history, or that a person has discarded
    harm,       \* what happened that must not
    budget      \* faults and commands left

vars == <<sent, confirmed, node, net, target, fence, opened, offset, update, work, effects, unwanted, harm, budget>>
telegram == <<sent, confirmed, target>>
meta == <<fence, opened, offset>>
outcome == <<effects, unwanted, harm>>

Guard(name, holds)  == name \in Off \/ holds
Permit(name, holds) == name \notin Off /\ holds
Spend(cause) == cause \in Causes /\ budget > 0 /\ budget' = budget - 1
Costs(cause) == IF cause = "none" THEN UNCHANGED budget ELSE Spend(cause)

Updates == 1..Last
None == -1
Newest == -2                                    \* a negative offset
Limit == 2                                      \* attempts that may fail
Patience == 3                                   \* so often an update is sent before those behind it go on without it
Mute == IF "mute" \in Causes THEN {1} ELSE {}     \* no answer comes, whoever is asked
Max(m, n) == IF m > n THEN m ELSE n
Home(p) == IF p = "a" THEN "A" ELSE "B"

Up(p) == node[p].up = "yes"
Leads(p) == Up(p) /\ node[p].epoch > 0          \* as it believes
Current(p) == Leads(p) /\ node[p].epoch = fence
To(p, after) == node' = [node EXCEPT ![p] = after]
Idle == [up |-> "yes", epoch |-> 0, reg |-> FALSE, poll |-> None, got |-> 0, anew |-> FALSE,
         skips |-> FALSE, sending |-> {}]

At(i, phase) == update[i].phase = phase
Live(i) == update[i].phase \in {"journaled", "forwarding", "waiting"}
Set(i, phase, binding) == update' = [update EXCEPT ![i] = [@ EXCEPT !.phase = phase, !.binding = binding]]
Goes(i, phase) == Set(i, phase, update[i].binding)
Fresh(i, phase) == update' = [update EXCEPT ![i] = [phase |-> phase, binding |-> "none", tries |-> 0]]

(* Fence: a leader's decision counts under the highest epoch. *)
EpochCurrent(p) == Guard("epoch_current", node[p].epoch = fence)
-----------------------------------------------------------------------------
(* Durable first: a negative offset would make Telegram forget all but the newest update. *)
Negative(p, o) == node[p].got = 0 /\ o = Newest /\ Guard("never_negative", FALSE)

(* Durable first: what a poll lets Telegram forget has been journaled.  A leader that was displaced reads the same     *)
(* rows, so that its poll confirms nothing else.                                                                       *)
Poll(p) ==
    /\ Leads(p) /\ node[p].poll = None
    /\ \E o \in {offset, node[p].got, Newest} :
        /\ \/ node[p].got = 0 /\ o = offset
           \/ node[p].got > offset /\ o = node[p].got /\ Guard("journal_first", FALSE)
           \/ Negative(p, o)
        /\ To(p, [node[p] EXCEPT !.poll = o])
    /\ UNCHANGED <<telegram, net, meta, update, work, outcome, budget>>

(* Telegram has begun to number from a lower id on, and this is above all that it has: nothing is forgotten for it. *)
Ahead(p) == node[p].poll > sent

(* It reaches Telegram, late or not, which forgets, and answers what is next, or by a fault what it answered before.   *)
Serve(p) ==
    /\ Up(p) /\ node[p].poll # None
    /\ LET upto == Max(confirmed, IF Ahead(p) THEN 0 ELSE IF node[p].poll = Newest THEN sent - 1 ELSE node[p].poll)
       IN  /\ confirmed' = upto
           /\ \/ \E i \in Updates :
                    /\ i <= sent
                    /\ IF i = upto + 1 THEN UNCHANGED budget ELSE i <= upto /\ Spend("old")
                    /\ To(p, [node[p] EXCEPT !.poll = None, !.got = i, !.anew = Ahead(p) /\ i = upto + 1])
              \/ upto >= sent /\ upto # confirmed /\ UNCHANGED <<node, budget>>
    /\ UNCHANGED <<sent, target, net, meta, update, work, outcome>>

(* Two polls at once: one of them is ended, and that is all. *)
Conflict(p) ==
    /\ Up(p) /\ node[p].poll # None
    /\ \E q \in Processes \ {p} : node[q].poll # None
    /\ To(p, [node[p] EXCEPT !.poll = None])
    /\ UNCHANGED <<telegram, net, meta, update, work, outcome, budget>>

(* Late is nothing: what the offset has passed was journaled once, also when its row has been forgotten. *)
Admissible(p) ==
    LET i == node[p].got
    IN  At(i, "absent") /\ EpochCurrent(p) /\ Guard("above_offset", i > offset)

Journal(p) ==
    /\ Leads(p) /\ node[p].got # 0 /\ Admissible(p)
    /\ LET i == node[p].got
       IN  /\ Set(i, IF node[p].skips THEN "skipped" ELSE "journaled", "none")
           /\ offset' = Max(offset, i)
           /\ unwanted' = IF node[p].skips THEN unwanted \cup {i} ELSE unwanted
    /\ To(p, [node[p] EXCEPT !.got = 0, !.anew = FALSE])
    /\ UNCHANGED <<telegram, net, fence, opened, work, effects, harm, budget>>

(* Proof: what lies below the offset is new only if Telegram answers it again and again, though asked above that. *)
Numbered(p) ==
    LET i == node[p].got
    IN  At(i, "absent") /\ i <= offset /\ EpochCurrent(p) /\ Guard("asked_again", node[p].anew)

Renumber(p) ==
    /\ Leads(p) /\ node[p].got # 0 /\ Numbered(p)
    /\ offset' = node[p].got - 1
    /\ UNCHANGED <<telegram, node, net, fence, opened, update, work, outcome, budget>>

JournalRefused(p) ==
    /\ Leads(p) /\ node[p].got # 0 /\ ~Admissible(p) /\ ~Numbered(p)
    /\ To(p, [node[p] EXCEPT !.got = 0, !.anew = FALSE])
    /\ UNCHANGED <<telegram, net, meta, update, work, outcome, budget>>

(* The first start is over (PollLoop says when). *)
Open(p) ==
    /\ Current(p) /\ node[p].skips /\ node[p].got = 0 /\ offset = sent
    /\ opened' = TRUE
    /\ To(p, [node[p] EXCEPT !.skips = FALSE])
    /\ UNCHANGED <<telegram, net, fence, offset, update, work, outcome, budget>>
-----------------------------------------------------------------------------
(* Who is registered for a binding.  A leader that was displaced has its routes still. *)
Routed(p, b) == {q \in Processes \ {p} : Home(q) = b /\ Up(q) /\ (Current(p) => node[q].reg)}
(* For whom it is: the owner is looked up at each attempt. *)
Wanted(i) == {target[i], update[i].binding} \ {"none"}
For(i) == IF update[i].binding # "none" THEN update[i].binding ELSE target[i]
(* Proof: an update that was offered to one binding goes to no other while the first may have it. *)
Sticks(i, b) == Guard("binding_sticks", update[i].binding \in {"none", b})
Ready(p, i) == Leads(p) /\ At(i, "journaled") /\ EpochCurrent(p)

(* In the order of their ids.  Unknown: nobody can tell an instance that is away from an update that no instance can    *)
(* take; so one that was sent in vain again and again stops nothing that comes after it.                                *)
Aside(i) == update[i].tries >= Patience
InTurn(i, b) ==
    \A j \in Updates : j < i /\ Live(j) /\ For(j) = b => Permit("aside_passes", Aside(j))

(* A forward to q, or its answer. *)
Message(kind, q, epoch, i, b, g) ==
    [kind |-> kind, to |-> q, epoch |-> epoch, i |-> i, b |-> b, g |-> g, body |-> 1, pos |-> 0, ok |-> FALSE]
(* What may go wrong with it: another id (g), another body, another position in the batch, another way. *)
Sent(p, i, b) ==
    LET Plain(q) == Message("forward", q, node[p].epoch, i, b, 0)
    IN  UNION {{<<"none", Plain(q)>>, <<"odd", [Plain(q) EXCEPT !.g = 1]>>, <<"forged", [Plain(q) EXCEPT !.body = 2]>>,
                <<"moved", [Plain(q) EXCEPT !.pos = 1]>>} : q \in Routed(p, b)}
        \cup (IF Routed(p, b) = {} THEN {}
              ELSE {<<"astray", Plain(q)>> : q \in {r \in Processes : Up(r) /\ Home(r) # b}})

(* Counted where it matters. *)
Sends(i) == IF i \in Mute /\ ~Aside(i) THEN update[i].tries + 1 ELSE update[i].tries

Forward(p, i) ==
    /\ Ready(p, i)
    /\ \E b \in Wanted(i) \ {Home(p)} : \E way \in Sent(p, i, b) :
        /\ InTurn(i, b) /\ Sticks(i, b) /\ Costs(way[1])
        /\ update' = [update EXCEPT ![i] = [phase |-> "forwarding", binding |-> b, tries |-> Sends(i)]]
        /\ net' = net \cup {way[2]}
    /\ To(p, [node[p] EXCEPT !.sending = @ \cup {i}])
    /\ UNCHANGED <<telegram, meta, work, outcome>>

(* Nobody is there now. *)
Absent(p, i) == Ready(p, i) /\ For(i) # Home(p) /\ Routed(p, For(i)) = {}

Unserved(p, i) ==
    /\ Absent(p, i)
    /\ Goes(i, "waiting")
    /\ UNCHANGED <<telegram, node, net, meta, work, outcome, budget>>

(* Proof: that nobody serves a binding now says nothing of later; the update waits (L21). *)
Drop(p, i) ==
    /\ Absent(p, i) /\ Guard("waits_for_instance", FALSE)
    /\ Goes(i, "delivered")
    /\ UNCHANGED <<telegram, node, net, meta, work, outcome, budget>>

(* Proof, Fence: only the exact receipt delivers it (I13). *)
Exact(i, m) ==
    /\ Guard("says_yes", m.ok)
    /\ Guard("names_a_receipt", m.b # "none")
    /\ Guard("same_receipt", m.b = "none" \/ (m.b = update[i].binding /\ m.g = 0))
Over(p, i) == To(p, [node[p] EXCEPT !.sending = @ \ {i}])

HearAck(p, i) ==
    /\ Leads(p) /\ i \in node[p].sending
    /\ \E m \in net :
        /\ m.kind = "ack" /\ m.epoch = node[p].epoch /\ m.i = i
        /\ net' = net \ {m}
        /\ IF ~At(i, "forwarding") \/ ~EpochCurrent(p) THEN UNCHANGED update
           ELSE Goes(i, IF Exact(i, m) THEN "delivered" ELSE "waiting")
    /\ Over(p, i)
    /\ UNCHANGED <<telegram, meta, work, outcome, budget>>

(* No answer: because none comes, or it comes too late. *)
Underway(p, i) == {m \in net : m.epoch = node[p].epoch /\ m.i = i}
Unanswered(p, i) ==
    /\ Leads(p) /\ i \in node[p].sending
    /\ Costs(IF Underway(p, i) = {} THEN "none" ELSE "late")
    /\ net' = net \ {m \in Underway(p, i) : m.kind = "ack"}
    /\ IF ~At(i, "forwarding") \/ ~EpochCurrent(p) THEN UNCHANGED update ELSE Goes(i, "waiting")
    /\ Over(p, i)
    /\ UNCHANGED <<telegram, meta, work, outcome>>

(* Unknown: a failed attempt decides nothing. *)
Retry(i) ==
    /\ At(i, "waiting") /\ Permit("retries_go_on", TRUE)
    /\ Goes(i, "journaled")
    /\ UNCHANGED <<telegram, node, net, meta, work, outcome, budget>>

(* Late is nothing: an attempt ends with the leader that made it. *)
Resume(p, i) ==
    /\ Leads(p) /\ At(i, "forwarding") /\ i \notin node[p].sending
    /\ EpochCurrent(p) /\ Permit("attempts_end", TRUE)
    /\ Goes(i, "journaled")
    /\ UNCHANGED <<telegram, node, net, meta, work, outcome, budget>>

(* Whom it is bound to has it. *)
Admitted(i) == \E d \in work : d.i = i /\ d.b = update[i].binding

(* Fence: whether an instance has it is looked up in the transaction that takes it from there. *)
NotAdmitted(i) == Guard("not_admitted", ~Admitted(i))
(* Proof: that a binding is silent does not mean that it is gone. *)
Gone(b) == \A p \in Processes : Home(p) = b => node[p].up = "dead"

Release(i) ==
    /\ At(i, "journaled") \/ At(i, "waiting")
    /\ update[i].binding # "none"
    /\ Guard("binding_gone", Gone(update[i].binding)) /\ NotAdmitted(i)
    /\ Fresh(i, "journaled")
    /\ UNCHANGED <<telegram, node, net, meta, work, outcome, budget>>
=============================================================================
