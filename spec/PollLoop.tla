------------------------------ MODULE PollLoop ------------------------------
(* Can an update fall between Telegram and the journal?                     *)
(*                                                                          *)
(* A request for what lies above the cursor makes Telegram forget what lies *)
(* below.  So a loop journals a batch, then moves the offset on disk, then  *)
(* its own cursor: confirmed <= offset <= journaled, whatever crashes.      *)
(* What was there before the first start is journaled as skipped, until     *)
(* one answer is empty; a durable mark in the journal says that this is     *)
(* over.  (locks.md 10, S35; the machine's half of K18; A64, A65, A67, A68.)*)
EXTENDS Integers, Sequences

CONSTANTS
    Nodes,      \* loops; two are a displaced poller and its successor, until the next check
    Last,       \* updates are numbered 1..Last
    Early,      \* how many of them are there before the first start
    Budget,     \* how many faults and operator commands may happen
    Off         \* the guards and permits taken away; {} is the protocol

ASSUME Early \in 0..Last

VARIABLES
    sent,       \* the newest update
    confirmed,  \* Telegram has forgotten everything up to here
    journal,    \* journal[i]: none, skipped, work
    opened,     \* the journal's mark: the first start is over
    offset,     \* the cursor on disk; -1 is none
    node,       \* node[p]: a loop, [phase, cursor, batch, skipping, conflicts]
    deaf,       \* the loops whose request will never be answered
    budget      \* faults and commands left

vars == <<sent, confirmed, journal, opened, offset, node, deaf, budget>>

Guard(name, holds)  == name \in Off \/ holds
Permit(name, holds) == name \notin Off /\ holds

None == -1
Max(a, b) == IF a > b THEN a ELSE b
Stopped == [phase |-> "stopped", cursor |-> None, batch |-> <<>>, skipping |-> FALSE, conflicts |-> 0]

At(p, phase) == node[p].phase = phase
Put(p, after) == node' = [node EXCEPT ![p] = after]
Retry(p) == Put(p, [node[p] EXCEPT !.phase = "retrying", !.batch = <<>>])

(* A request with this cursor is on its way, and Telegram may act upon it before anything else happens. *)
Request(cursor) == confirmed' = Max(confirmed, cursor)

(* What Telegram answers: the oldest update that it has and that lies above the cursor. *)
Oldest(p) == Max(0, Max(node[p].cursor, confirmed)) + 1
Pending(p) == Oldest(p) <= sent
-----------------------------------------------------------------------------
Start(p) ==
    /\ At(p, "stopped")
    /\ Put(p, [Stopped EXCEPT !.phase = "starting"])
    /\ UNCHANGED <<sent, confirmed, journal, opened, offset, deaf, budget>>

(* The first start skips what is there; every later one goes on from a cursor that it knows. *)
First == Guard("first_start", ~opened)
Known(p) == Permit("cursor_known", Max(offset, node[p].cursor) # None)

Load(p) ==
    /\ At(p, "starting")
    /\ First \/ Known(p)
    /\ LET cursor == Max(offset, node[p].cursor)
       IN  /\ Put(p, [node[p] EXCEPT !.phase = "long_poll", !.cursor = cursor, !.skipping = First])
           /\ Request(cursor)
    /\ UNCHANGED <<sent, journal, opened, offset, deaf, budget>>

LoadFails(p) ==
    /\ At(p, "starting")
    /\ ~First /\ ~Known(p)
    /\ Put(p, Stopped)
    /\ UNCHANGED <<sent, confirmed, journal, opened, offset, deaf, budget>>
-----------------------------------------------------------------------------
InOrder(p, id) == Guard("in_order", id > node[p].cursor)

(* An answer: the oldest update, or by a fault one that was answered before. *)
Answer(p) ==
    /\ At(p, "long_poll") /\ p \notin deaf
    /\ \E id \in 1..sent :
        /\ \/ id = Oldest(p) /\ UNCHANGED budget
           \/ id <= node[p].cursor /\ budget > 0 /\ budget' = budget - 1
        /\ InOrder(p, id)
        /\ Put(p, [node[p] EXCEPT !.phase = "persisting_journal", !.batch = <<id>>, !.conflicts = 0])
    /\ UNCHANGED <<sent, confirmed, journal, opened, offset, deaf>>

AnswerRefused(p) ==
    /\ At(p, "long_poll") /\ p \notin deaf
    /\ budget > 0 /\ \E id \in 1..sent : id <= node[p].cursor /\ ~InOrder(p, id)
    /\ Retry(p)
    /\ budget' = budget - 1
    /\ UNCHANGED <<sent, confirmed, journal, opened, offset, deaf>>

(* An empty answer ends the history of the first start; later it says no more than that the server is well. *)
Skips(p) == Permit("empty_ends_history", node[p].skipping)

Drain(p) ==
    /\ At(p, "long_poll") /\ p \notin deaf
    /\ Skips(p) /\ ~Pending(p)
    /\ Put(p, [node[p] EXCEPT !.phase = "persisting_offset", !.conflicts = 0])
    /\ UNCHANGED <<sent, confirmed, journal, opened, offset, deaf, budget>>

Nothing(p) ==
    /\ At(p, "long_poll") /\ p \notin deaf
    /\ ~Skips(p) /\ ~Pending(p) /\ node[p].conflicts > 0
    /\ Put(p, [node[p] EXCEPT !.conflicts = 0])
    /\ UNCHANGED <<sent, confirmed, journal, opened, offset, deaf, budget>>

(* The server goes deaf in the middle of a request; the request's own budget of time ends it. *)
Deafen(p) ==
    /\ At(p, "long_poll") /\ p \notin deaf /\ budget > 0
    /\ deaf' = deaf \cup {p}
    /\ budget' = budget - 1
    /\ UNCHANGED <<sent, confirmed, journal, opened, offset, node>>

TimeOut(p) ==
    /\ At(p, "long_poll") /\ p \in deaf
    /\ Permit("deaf_poll_ends", TRUE)
    /\ Retry(p)
    /\ deaf' = deaf \ {p}
    /\ UNCHANGED <<sent, confirmed, journal, opened, offset, budget>>

(* Somebody else polls: not an error, but a reason to wait. *)
Conflict(p) ==
    /\ At(p, "long_poll") /\ p \notin deaf /\ budget > 0
    /\ Put(p, [node[p] EXCEPT !.phase = "retrying", !.conflicts = IF @ < 3 THEN @ + 1 ELSE 3])
    /\ budget' = budget - 1
    /\ UNCHANGED <<sent, confirmed, journal, opened, offset, deaf>>

(* Everything on disk is read again: another loop may have moved it. *)
Wake(p) ==
    /\ At(p, "retrying")
    /\ Put(p, [node[p] EXCEPT !.phase = "starting"])
    /\ UNCHANGED <<sent, confirmed, journal, opened, offset, deaf, budget>>
-----------------------------------------------------------------------------
Drained(p) == Skips(p) /\ Guard("history_is_drained", node[p].batch = <<>>)
Entry(p) == IF node[p].skipping THEN "skipped" ELSE "work"
Recorded(p) == [i \in 1..Last |->
    IF \E k \in 1..Len(node[p].batch) : node[p].batch[k] = i /\ journal[i] = "none" THEN Entry(p) ELSE journal[i]]

(* Fence: one transaction looks at the mark and appends; what comes after the first start is never skipped. *)
StillFirst(p) == Guard("still_first_start", node[p].skipping => ~opened)

(* Durable first: the journal has the batch before the offset passes it. *)
Record(p) ==
    /\ At(p, "persisting_journal")
    /\ \E ok \in BOOLEAN :
        /\ ok \/ budget > 0
        /\ Guard("appended", ok)
        /\ ~Drained(p)
        /\ StillFirst(p)
        /\ Put(p, [node[p] EXCEPT !.phase = "persisting_offset"])
        /\ journal' = IF ok THEN Recorded(p) ELSE journal
        /\ budget' = IF ok THEN budget ELSE budget - 1
    /\ UNCHANGED <<sent, confirmed, opened, offset, deaf>>

(* The mark is set: from here on updates are work. *)
Open(p) ==
    /\ At(p, "persisting_journal")
    /\ \E ok \in BOOLEAN :
        /\ ok \/ budget > 0
        /\ Guard("appended", ok)
        /\ Drained(p)
        /\ Put(p, [node[p] EXCEPT !.phase = "long_poll", !.skipping = FALSE, !.batch = <<>>])
        /\ opened' = (opened \/ ok)
        /\ journal' = IF ok THEN Recorded(p) ELSE journal
        /\ budget' = IF ok THEN budget ELSE budget - 1
    /\ Request(node[p].cursor)
    /\ UNCHANGED <<sent, offset, deaf>>

RecordFails(p) ==
    /\ At(p, "persisting_journal")
    /\ \E ok \in BOOLEAN :
        /\ ok \/ budget > 0
        /\ ~(Guard("appended", ok) /\ (Drained(p) \/ StillFirst(p)))
        /\ budget' = IF ok THEN budget ELSE budget - 1
    /\ Retry(p)
    /\ UNCHANGED <<sent, confirmed, journal, opened, offset, deaf>>

(* The cursor that a batch, or an empty first answer, leads to. *)
Reached(p) == IF node[p].batch = <<>> THEN Max(node[p].cursor, 0) ELSE node[p].batch[Len(node[p].batch)]

(* Fence: another loop may have moved the offset further; the greater stands. *)
Merge(reached) == IF Guard("offset_only_grows", reached > offset) THEN reached ELSE offset

(* The loop's own cursor moves after the disk's; what was not persisted is as if it had not been polled. *)
Persist(p) ==
    /\ At(p, "persisting_offset")
    /\ \E ok \in BOOLEAN :
        /\ ok \/ budget > 0
        /\ Guard("persisted", ok)
        /\ IF Drained(p)
           THEN /\ Put(p, [node[p] EXCEPT !.phase = "persisting_journal", !.cursor = Reached(p)])
                /\ UNCHANGED confirmed
           ELSE /\ Put(p, [node[p] EXCEPT !.phase = "long_poll", !.cursor = Reached(p), !.batch = <<>>])
                /\ Request(Reached(p))
        /\ offset' = IF ok THEN Merge(Reached(p)) ELSE offset
        /\ budget' = IF ok THEN budget ELSE budget - 1
    /\ UNCHANGED <<sent, journal, opened, deaf>>

PersistFails(p) ==
    /\ At(p, "persisting_offset")
    /\ budget > 0 /\ ~Guard("persisted", FALSE)
    /\ Retry(p)
    /\ budget' = budget - 1
    /\ UNCHANGED <<sent, confirmed, journal, opened, offset, deaf>>
-----------------------------------------------------------------------------
(* Aborted where it waits; what is being written is written first. *)
Stop(p) ==
    /\ node[p].phase \in {"starting", "long_poll", "retrying"} /\ budget > 0
    /\ Put(p, Stopped)
    /\ deaf' = deaf \ {p}
    /\ budget' = budget - 1
    /\ UNCHANGED <<sent, confirmed, journal, opened, offset>>

Crash(p) ==
    /\ node[p].phase \in {"persisting_journal", "persisting_offset"} /\ budget > 0    \* elsewhere it equals Stop
    /\ Put(p, Stopped)
    /\ budget' = budget - 1
    /\ UNCHANGED <<sent, confirmed, journal, opened, offset, deaf>>

Send == sent < Last /\ sent' = sent + 1 /\ UNCHANGED <<confirmed, journal, opened, offset, node, deaf, budget>>

(* While nothing runs the config is deleted, or replaced by one without the offset. *)
LoseOffset ==
    /\ \A p \in Nodes : At(p, "stopped")
    /\ opened /\ offset # None /\ budget > 0
    /\ offset' = None
    /\ budget' = budget - 1
    /\ UNCHANGED <<sent, confirmed, journal, opened, node, deaf>>
-----------------------------------------------------------------------------
Init ==
    /\ sent = Early /\ confirmed = None
    /\ journal = [i \in 1..Last |-> "none"] /\ opened = FALSE /\ offset = None
    /\ node = [p \in Nodes |-> Stopped] /\ deaf = {}
    /\ budget = Budget

Next ==
    \/ \E p \in Nodes : Start(p)
    \/ \E p \in Nodes : Load(p)
    \/ \E p \in Nodes : LoadFails(p)
    \/ \E p \in Nodes : Answer(p)
    \/ \E p \in Nodes : AnswerRefused(p)
    \/ \E p \in Nodes : Drain(p)
    \/ \E p \in Nodes : Nothing(p)
    \/ \E p \in Nodes : Deafen(p)
    \/ \E p \in Nodes : TimeOut(p)
    \/ \E p \in Nodes : Conflict(p)
    \/ \E p \in Nodes : Wake(p)
    \/ \E p \in Nodes : Record(p)
    \/ \E p \in Nodes : Open(p)
    \/ \E p \in Nodes : RecordFails(p)
    \/ \E p \in Nodes : Persist(p)
    \/ \E p \in Nodes : PersistFails(p)
    \/ \E p \in Nodes : Stop(p)
    \/ \E p \in Nodes : Crash(p)
    \/ Send
    \/ LoseOffset

(* Fairness: somebody wants each loop to run, and what it began goes on; a poll is answered if there is an answer. *)
Fairness ==
    \A p \in Nodes :
        /\ WF_vars(Start(p))
        /\ WF_vars(Load(p) \/ LoadFails(p))
        /\ WF_vars(Answer(p) \/ Drain(p))
        /\ WF_vars(TimeOut(p))
        /\ WF_vars(Wake(p))
        /\ WF_vars(Record(p) \/ Open(p) \/ RecordFails(p))
        /\ WF_vars(Persist(p) \/ PersistFails(p))

Spec == Init /\ [][Next]_vars /\ Fairness
-----------------------------------------------------------------------------
TypeOK ==
    /\ sent \in 0..Last /\ confirmed \in None..Last /\ offset \in None..Last
    /\ journal \in [1..Last -> {"none", "skipped", "work"}] /\ opened \in BOOLEAN
    /\ node \in [Nodes -> [phase : {"stopped", "starting", "long_poll", "persisting_journal", "persisting_offset",
                                    "retrying"},
                           cursor : None..Last, batch : {<<>>} \cup {<<i>> : i \in 1..Last}, skipping : BOOLEAN,
                           conflicts : 0..3]]
    /\ deaf \subseteq Nodes /\ budget \in 0..Budget

Journaled(upto) == \A i \in 1..Last : i <= upto => journal[i] # "none"

(* No cursor, on disk or in a loop, has passed an update that is not in the journal, nor has Telegram forgotten one. *)
JournalBeforeOffset_S35 ==
    Journaled(offset) /\ Journaled(confirmed) /\ \A p \in Nodes : Journaled(node[p].cursor)

(* Telegram forgets only what the disk has passed: after a restart no gap lies between the two. *)
ConfirmOnlyPersisted_K18 == offset = None \/ confirmed <= offset

(* The offset on disk does not go back, nor does a loop's own. *)
CursorNeverDecreases_S35 ==
    [][ /\ offset' >= offset \/ offset' = None
        /\ \A p \in Nodes : node'[p].cursor >= node[p].cursor \/ node'[p].phase = "stopped" ]_vars

(* After the first start nothing is skipped. *)
NothingSkipped_S35 == [][opened => \A i \in 1..Last : journal'[i] = "skipped" => journal[i] = "skipped"]_vars

(* What was there before the first start is never executed. *)
HistoryIsNoWork == \A i \in 1..Early : journal[i] # "work"

(* Every update reaches the journal, and the first start comes to its end; a lost offset is for the operator. *)
Lost == opened /\ offset = None
EventuallyPolled == \A i \in 1..Last : (sent >= i) ~> (journal[i] # "none" \/ Lost)
EventuallyOpened == ~opened ~> opened
=============================================================================
