---------------------------- MODULE Transaction ----------------------------
(* What a guarded file promises, whatever it is made of.                    *)
(*                                                                          *)
(* May two threads be inside one guarded file at once?  Can a dead one      *)
(* block it for ever?  FileTransaction says how; it is checked to refine    *)
(* this module.  (locks.md 3 and 14.1; the properties of DESIGN 9.)         *)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Threads,    \* the threads that may enter; strings
    Off         \* the guards and permits taken away; {} is the protocol

ASSUME Threads \cap {"nobody", "abandoned", "damaged"} = {}   \* holder tells them apart

VARIABLES
    holder,     \* who is inside: a thread, or nobody / abandoned (it died there) / damaged (nobody can tell)
    phase       \* phase[t]: out, waiting, inside

vars == <<holder, phase>>

Guard(name, holds)  == name \in Off \/ holds
Permit(name, holds) == name \notin Off /\ holds

Blocked == holder = "abandoned" /\ \E t \in Threads : phase[t] = "waiting"
-----------------------------------------------------------------------------
(* A thread asks to enter. *)
Want(t) ==
    /\ phase[t] = "out"
    /\ phase' = [phase EXCEPT ![t] = "waiting"]
    /\ UNCHANGED holder

(* Fence: it enters only a free file. *)
Enter(t) ==
    /\ phase[t] = "waiting"
    /\ Guard("nobody_inside", holder = "nobody")
    /\ phase' = [phase EXCEPT ![t] = "inside"]
    /\ holder' = t

(* It gives up before it was inside. *)
Withdraw(t) ==
    /\ phase[t] = "waiting"
    /\ phase' = [phase EXCEPT ![t] = "out"]
    /\ UNCHANGED holder

Leave(t) ==
    /\ phase[t] = "inside"
    /\ phase' = [phase EXCEPT ![t] = "out"]
    /\ holder' = "nobody"

(* The threads of one process die together, wherever each of them is. *)
Die(ts) ==
    /\ \A t \in ts : phase[t] # "out"
    /\ phase' = [t \in Threads |-> IF t \in ts THEN "out" ELSE phase[t]]
    /\ holder' = IF holder \in ts THEN "abandoned" ELSE holder

(* Proof: what frees a held file is the death of its holder, and somebody who needs it. *)
Free ==
    /\ Permit("death_frees", \E t \in Threads : phase[t] = "waiting")
    /\ Guard("holder_is_gone", holder = "abandoned")
    /\ holder # "nobody"
    /\ holder' = "nobody"
    /\ UNCHANGED phase

(* Something unverifiable comes to stand there, and a person removes it. *)
Damage == holder = "nobody" /\ holder' = "damaged" /\ UNCHANGED phase
Repair == holder = "damaged" /\ holder' = "nobody" /\ UNCHANGED phase
-----------------------------------------------------------------------------
Init ==
    /\ holder = "nobody"
    /\ phase = [t \in Threads |-> "out"]

Next ==
    \/ \E t \in Threads : Want(t)
    \/ \E t \in Threads : Enter(t)
    \/ \E t \in Threads : Withdraw(t)
    \/ \E t \in Threads : Leave(t)
    \/ \E ts \in SUBSET Threads \ {{}} : Die(ts)
    \/ Free
    \/ Damage
    \/ Repair

(* Fairness: holders finish or die, and a death that blocks somebody is acted upon. *)
Fairness == WF_vars(Free) /\ \A t \in Threads : WF_vars(Leave(t))

Spec == Init /\ [][Next]_vars /\ Fairness
-----------------------------------------------------------------------------
TypeOK ==
    /\ holder \in Threads \cup {"nobody", "abandoned", "damaged"}
    /\ phase \in [Threads -> {"out", "waiting", "inside"}]

(* At most one is inside. *)
OneInside == Cardinality({t \in Threads : phase[t] = "inside"}) <= 1

(* Whoever is inside and alive holds the file, until it leaves. *)
LiveHolderKept == \A t \in Threads : phase[t] = "inside" => holder = t

(* A dead holder does not block for ever those who wait. *)
EventuallyFree == Blocked ~> ~Blocked
=============================================================================
