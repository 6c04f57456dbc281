---------------------------- MODULE OwnerRegistry ---------------------------
(* What does an entry of the registry prove, and what happens to it without *)
(* anybody's asking?                                                        *)
(*                                                                          *)
(* For each key the registry has at most one entry, which says who owns it. *)
(* An entry is a lease: it may be replaced once its owner is proven dead,   *)
(* or has not renewed it in time.  Here are the state that LeaderElection   *)
(* is about, and its world: time, death, clocks, damage, and processes of   *)
(* the other system.  (locks.md 2.1, 4, 5.)                                 *)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Runtimes,   \* strings; several may live in one process
    Proc,       \* Proc[r]: the process of r; a restarted process has the pid it had before
    Keys,       \* keys of the registry, one for each profile
    Home,       \* Home[r]: the key that r starts with
    Causes,     \* the faults and the commands of operators that may happen
    Budget,     \* how many of them
    MaxEpoch,   \* the highest epoch that every peer reads exactly; the protocol does not come to it here
    Off         \* the guards and permits taken away; {} is the protocol

ASSUME Runtimes \cap {"none", "foreign", "nobody", "abandoned"} = {}   \* owner and guard tell them apart

VARIABLES
    entry,      \* entry[k]: what the registry says of k, and what time and death have done to it since
    readable,   \* FALSE: what stands there cannot be read or parsed
    highwater,  \* the highest epoch ever raised, in a file of its own
    guard,      \* who is inside the transaction: a runtime, or nobody / abandoned (it died there)
    node,       \* node[r]: the machine of r, and the registry as its adapter is about to write it (draft)
    flight,     \* flight[r]: the tenure under which an effect of r is on its way to the resource
    fence,      \* fence[k]: the tenure of the last effect that the resource of k took
    evicted,    \* those that were displaced in their time (by force, by reload) and do not know yet
    budget      \* faults and commands left

vars == <<entry, readable, highwater, guard, node, flight, fence, evicted, budget>>

Guard(name, holds)  == name \in Off \/ holds
Permit(name, holds) == name \notin Off /\ holds
Spend(cause) == cause \in Causes /\ budget > 0 /\ budget' = budget - 1

(* age: by the monotonic clock, which all of one boot share.  clock: how the wall-clock heartbeat looks now.     *)
(* life: alive / dead / reborn (another process runs under its pid).  Foreign entries have neither stamp nor birth. *)
Nobody == [owner |-> "none", epoch |-> 0, age |-> "fresh", clock |-> "right", life |-> "alive"]
New(owner, epoch) == [Nobody EXCEPT !.owner = owner, !.epoch = epoch]
Id(e)     == [owner |-> e.owner, epoch |-> e.epoch]
NoTenure  == [key |-> "none", epoch |-> 0]
NoDraft   == [k \in Keys |-> Id(Nobody)]
Asleep(r) == [phase |-> "off", generation |-> 0, key |-> Home[r], tenure |-> NoTenure, own |-> "fresh",
              mode |-> "none", shown |-> Id(Nobody), draft |-> NoDraft]

Seen(r)      == IF readable THEN entry[node[r].key] ELSE Nobody
Snapshot     == [k \in Keys |-> IF readable THEN Id(entry[k]) ELSE Id(Nobody)]
Alive(r)     == node[r].phase # "off"
Holding      == {"owner", "renewing", "deleting", "committing"}
Names(e, r)  == e.owner = r /\ e.epoch = node[r].tenure.epoch
Settled(r)   == node[r].phase \in {"idle", "owner", "doubtful"}

(* What an entry proves, seen from r (locks.md 5).  A death that is proven needs no waiting. *)
Stamped(e)  == e.owner \in Runtimes
Here(r, e)  == Stamped(e) /\ Proc[e.owner] = Proc[r]
Dead(e)     == e.life = "dead" \/ (Stamped(e) /\ e.life = "reborn")
Watched(e)  == ~Stamped(e) /\ e.clock = "future" /\ e.age = "passed"
Stale(r, e) ==
    /\ e.owner # "none"
    /\ \/ Dead(e)
       \/ /\ ~Here(r, e)
          /\ \/ Stamped(e) /\ e.age = "passed"
             \/ ~Stamped(e) /\ e.clock = "passed"
             \/ Watched(e)

Newer(r, e) == Here(r, e) /\ e.life = "alive" /\ node[r].generation > node[e.owner].generation

Free == guard \in {"nobody", "abandoned"}

Becomes(r, new) == node' = [node EXCEPT ![r] = new]
-----------------------------------------------------------------------------
(* A runtime starts, after the runtimes that its process already has.  Fresh: so it can be told who is the newer. *)
Start(r) ==
    LET mates == {m \in Runtimes : Proc[m] = Proc[r]}
        fits(n) == Guard("after_previous", \A m \in mates : n > node[m].generation)
    IN  /\ node[r].phase = "off"
        /\ Becomes(r, [node[r] EXCEPT !.phase = "idle",
               !.generation = CHOOSE n \in 1..Cardinality(Runtimes) : fits(n) /\ \A m \in 1..(n - 1) : ~fits(m)])
        /\ entry' = [k \in Keys |->
               IF /\ entry[k].owner \in mates /\ entry[k].life = "dead"
                  /\ \A m \in mates : ~Alive(m)
               THEN [entry[k] EXCEPT !.life = "reborn"] ELSE entry[k]]
        /\ UNCHANGED <<readable, highwater, guard, flight, fence, evicted, budget>>

(* All runtimes of a process die together, wherever they are; what they sent is still on its way. *)
Crash(c) ==
    LET gone == {m \in Runtimes : Proc[m] = c}
    IN  /\ \E m \in gone : Alive(m)
        /\ Spend("crash")
        /\ node' = [m \in Runtimes |-> IF m \in gone THEN Asleep(m) ELSE node[m]]
        /\ guard' = IF guard \in gone THEN "abandoned" ELSE guard
        /\ entry' = [k \in Keys |-> IF entry[k].owner \in gone THEN [entry[k] EXCEPT !.life = "dead"] ELSE entry[k]]
        /\ evicted' = evicted \ gone
        /\ UNCHANGED <<readable, highwater, flight, fence>>

Aged(e) == [e EXCEPT !.age = "passed", !.clock = IF @ = "future" THEN @ ELSE "passed"]
Kept(e) ==   \* somebody is there who would renew it
    \/ e.owner \in Runtimes /\ e.life = "alive" /\ node[e.owner].phase \in Holding /\ Names(e, e.owner)
    \/ e.owner = "foreign" /\ e.life = "alive"

Remembered(k) ==   \* the owner has the same stamp in its memory
    [r \in Runtimes |-> IF Names(entry[k], r) THEN [node[r] EXCEPT !.own = "passed"] ELSE node[r]]

(* An owner is paused, or cannot renew: its lease passes. *)
Pass(k) ==
    /\ entry[k].age = "fresh" /\ Kept(entry[k])
    /\ Spend("pause")
    /\ entry' = [entry EXCEPT ![k] = Aged(@)]
    /\ node' = Remembered(k)
    /\ UNCHANGED <<readable, highwater, guard, flight, fence, evicted>>

(* Nobody renews it: its time comes by itself. *)
Age(k) ==
    /\ entry[k].owner # "none" /\ entry[k].age = "fresh" /\ ~Kept(entry[k])
    /\ entry' = [entry EXCEPT ![k] = Aged(@)]
    /\ node' = Remembered(k)
    /\ UNCHANGED <<readable, highwater, guard, flight, fence, evicted, budget>>

(* The wall clock is set; heartbeats look old, or come from the future.  (Between the read and the rename of a   *)
(* transaction neither this nor damage to the file can change what was decided: left out.)                        *)
SetClock(looks) ==
    /\ Free
    /\ \E k \in Keys : entry[k].owner # "none" /\ entry[k].clock # looks
    /\ Spend("clock")
    /\ entry' = [k \in Keys |-> IF entry[k].owner = "none" THEN entry[k] ELSE [entry[k] EXCEPT !.clock = looks]]
    /\ UNCHANGED <<readable, highwater, guard, node, flight, fence, evicted>>

(* A process of the other system takes a free key; its epoch may be a number that our mark does not know. *)
ForeignTakes(k) ==
    /\ Free /\ readable /\ entry[k].owner = "none"
    /\ Spend("foreign")
    /\ entry' = [entry EXCEPT ![k] = New("foreign", highwater + 1)]
    /\ UNCHANGED <<readable, highwater, guard, node, flight, fence, evicted>>

(* It dies, and its pid is free, or another process's. *)
ForeignDies(k, life) ==
    /\ entry[k].owner = "foreign" /\ entry[k].life = "alive"
    /\ Spend("foreign")
    /\ entry' = [entry EXCEPT ![k].life = life]
    /\ UNCHANGED <<readable, highwater, guard, node, flight, fence, evicted>>

(* The file becomes unreadable, and a person mends it. *)
Tear ==
    /\ readable /\ Free
    /\ Spend("tear")
    /\ readable' = FALSE
    /\ UNCHANGED <<entry, highwater, guard, node, flight, fence, evicted>>
Mend ==
    /\ ~readable /\ readable' = TRUE
    /\ UNCHANGED <<entry, highwater, guard, node, flight, fence, evicted, budget>>
=============================================================================
