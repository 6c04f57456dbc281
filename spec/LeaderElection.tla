--------------------------- MODULE LeaderElection ---------------------------
(* Who owns the lease, and can a displaced owner do harm?                   *)
(*                                                                          *)
(* Runtimes of processes that come and go share a registry: for each key    *)
(* at most one entry, which says who owns it.  An entry is a lease: it may  *)
(* be replaced once its owner is proven dead or has not renewed it in time. *)
(* Every operation on the registry runs inside one file transaction         *)
(* (Transaction!OneInside); it decides on what it reads there, and writes   *)
(* the whole file.  (locks.md 4-7 and 14.2-3; S11-S24 and V9 of 15-16.)     *)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Runtimes,   \* strings; several may live in one process
    Proc,       \* Proc[r]: the process of r; a restarted process has the pid it had before
    Keys,       \* keys of the registry, one for each profile
    Home,       \* Home[r]: the key that r starts with
    Causes,     \* the faults and the commands of operators that may happen
    Budget,     \* how many of them
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
-----------------------------------------------------------------------------
(* Into the transaction and out of it.  One that died inside is reclaimed by the next. *)
Begin(r) ==
    /\ Alive(r) /\ Free
    /\ guard' = r
    /\ UNCHANGED <<entry, readable, highwater, node, flight, fence, evicted, budget>>

Leave(r) ==
    /\ guard = r /\ Settled(r)
    /\ guard' = "nobody"
    /\ UNCHANGED <<entry, readable, highwater, node, flight, fence, evicted, budget>>

(* Fence, Proof: every operation reads inside the transaction, and an unreadable registry is not an empty one. *)
Reads(r) == Guard("inside", guard = r) /\ Guard("strict_read", readable)

Decides(r, phase, mode, draft) ==
    /\ Becomes(r, [node[r] EXCEPT !.phase = phase, !.mode = mode, !.draft = draft])
    /\ UNCHANGED <<entry, readable, highwater, guard, flight, fence, evicted>>

(* Proof: ordinary acquisition takes what nobody owns, or what is over. *)
Acquire(r) ==
    LET e == Seen(r) IN
    /\ node[r].phase = "idle" /\ Reads(r)
    /\ \/ Guard("nobody_owns", e.owner = "none")
       \/ Permit("death_is_proof", Dead(e))
       \/ /\ Guard("not_of_my_process", ~Here(r, e))
          /\ \/ /\ Permit("expiry_frees", TRUE)
                /\ \/ Guard("lease_has_passed", Stamped(e) /\ e.age = "passed")
                   \/ /\ Guard("only_without_stamp", ~Stamped(e))
                      /\ Guard("heartbeat_has_passed", e.clock = "passed")
             \/ Permit("watched_unchanged", Watched(e))
    /\ Decides(r, "minting", "plain", Snapshot)
    /\ UNCHANGED budget

(* Proof: an election takes what nobody owns, or exactly the owner that was seen, if it is still over. *)
Elect(r) ==
    LET e == Seen(r) IN
    /\ node[r].phase = "idle" /\ Reads(r)
    /\ \/ Guard("nobody_owns", e.owner = "none")
       \/ /\ Guard("saw_somebody", node[r].shown.owner # "none")
          /\ Guard("still_the_one_seen", node[r].shown \in {Id(e), Id(Nobody)})
          /\ Guard("still_over", Stale(r, e))
    /\ Decides(r, "minting", "election", Snapshot)
    /\ UNCHANGED budget

(* Proof: an operator takes over from the very owner that was shown. *)
Force(r) ==
    LET e == Seen(r) IN
    /\ node[r].phase = "idle" /\ Reads(r)
    /\ Guard("not_of_my_process", ~Here(r, e))
    /\ Guard("owner_was_shown", e.owner # "none" /\ node[r].shown = Id(e))
    /\ Spend("force")
    /\ Decides(r, "minting", "forced", Snapshot)

(* Fresh: a newer runtime of the same process takes over by itself (reload). *)
Supersede(r) ==
    LET e == Seen(r) IN
    /\ node[r].phase = "idle" /\ Reads(r)
    /\ Permit("reload_takes_over", TRUE)
    /\ Guard("newer_generation", Newer(r, e))
    /\ Decides(r, "minting", "superseding", Snapshot)
    /\ UNCHANGED budget

(* Fresh: an epoch above the mark and above what stands there; the least one will do. *)
Minted(r) ==
    LET fits(n) == /\ Guard("above_high_water", n > highwater)
                   /\ Guard("above_entry", n > Seen(r).epoch)
        top == highwater + Seen(r).epoch + 1
    IN  CHOOSE n \in 1..top : fits(n) /\ \A m \in 1..(n - 1) : ~fits(m)

Places(r, n) == Becomes(r, [node[r] EXCEPT !.phase = "placing", !.tenure = [key |-> node[r].key, epoch |-> n],
                                           !.draft[node[r].key] = [owner |-> r, epoch |-> n]])
Gives(r, new) == Becomes(r, [new EXCEPT !.mode = "none", !.shown = Id(Nobody), !.draft = NoDraft])
Forgets(r, phase) == Gives(r, [node[r] EXCEPT !.phase = phase, !.tenure = NoTenure, !.own = "fresh"])

(* The mark is raised, durably, before the entry is written. *)
Raise(r) ==
    /\ guard = r /\ node[r].phase = "minting"
    /\ highwater' = Minted(r)
    /\ Places(r, Minted(r))
    /\ UNCHANGED <<entry, readable, guard, flight, fence, evicted, budget>>

(* Durable first: without the mark there is no entry. *)
FailRaise(r) ==
    /\ guard = r /\ node[r].phase = "minting"
    /\ Spend("write")
    /\ IF Guard("mark_is_durable", FALSE) THEN Places(r, Minted(r)) ELSE Forgets(r, "idle")
    /\ UNCHANGED <<entry, readable, highwater, guard, flight, fence, evicted>>

(* What the file says once the write of r is done: the whole draft; nothing happened to what it leaves alone. *)
Written(r) ==
    LET d == node[r].draft IN
    [k \in Keys |-> IF k # node[r].key /\ d[k] = Id(entry[k]) THEN entry[k] ELSE New(d[k].owner, d[k].epoch)]

(* Who loses a lease that had time left, to whom r hands it. *)
Lands(r) ==
    LET e == entry[node[r].key]
        lost == IF e.owner \in Runtimes \ {r} /\ Kept(e) /\ e.age = "fresh" THEN {e.owner} ELSE {}
    IN  entry' = Written(r) /\ readable' = TRUE /\ evicted' = (evicted \cup lost) \ {r}

Succeeds(r) ==
    IF node[r].phase = "deleting" THEN Forgets(r, "idle")
    ELSE Gives(r, [node[r] EXCEPT !.phase = "owner", !.own = "fresh"])

Writes(r) == guard = r /\ node[r].phase \in {"placing", "renewing", "deleting"}

(* The write is done. *)
Write(r) ==
    /\ Writes(r)
    /\ Lands(r)
    /\ Succeeds(r)
    /\ UNCHANGED <<highwater, guard, flight, fence, budget>>

(* Durable first: memory follows the file.  A write that failed leaves it as it was. *)
FailWrite(r) ==
    /\ Writes(r)
    /\ Spend("write")
    /\ CASE Guard("write_succeeded", FALSE) -> Succeeds(r)
         [] node[r].phase = "placing" -> Forgets(r, "idle")
         [] OTHER -> Gives(r, [node[r] EXCEPT !.phase = "owner"])
    /\ UNCHANGED <<entry, readable, highwater, guard, flight, fence, evicted>>

(* Unknown: nobody can say whether it was written.  Neither success nor failure. *)
LoseWrite(r, landed) ==
    /\ Writes(r)
    /\ Spend("write")
    /\ IF landed THEN Lands(r) ELSE UNCHANGED <<entry, readable, evicted>>
    /\ CASE Guard("write_succeeded", FALSE) -> Succeeds(r)
         [] node[r].phase = "renewing" -> Gives(r, [node[r] EXCEPT !.phase = "owner"])
         [] Guard("surely_failed", FALSE) ->
              IF node[r].phase = "placing" THEN Forgets(r, "idle") ELSE Gives(r, [node[r] EXCEPT !.phase = "owner"])
         [] OTHER -> Gives(r, [node[r] EXCEPT !.phase = "doubtful"])
    /\ UNCHANGED <<highwater, guard, flight, fence>>

(* A write in place: readers may find half of it. *)
Truncate(r) ==
    /\ Guard("replaced_by_rename", FALSE)
    /\ Writes(r) /\ readable
    /\ readable' = FALSE
    /\ UNCHANGED <<entry, highwater, guard, node, flight, fence, evicted, budget>>

(* The doubt is resolved by reading again. *)
Resolve(r) ==
    /\ node[r].phase = "doubtful" /\ Reads(r)
    /\ IF Guard("entry_landed", Names(Seen(r), r))
       THEN Becomes(r, [node[r] EXCEPT !.phase = "owner"])
       ELSE Forgets(r, "idle")
    /\ UNCHANGED <<entry, readable, highwater, guard, flight, fence, evicted, budget>>
-----------------------------------------------------------------------------
MyKey(r) == Guard("same_key", node[r].tenure.key = node[r].key)

Refresh(r) ==
    /\ node[r].phase = "owner" /\ Reads(r) /\ MyKey(r)
    /\ Guard("mine_to_refresh", Names(Seen(r), r))
    /\ Decides(r, "renewing", "none", [Snapshot EXCEPT ![node[r].key] = [owner |-> r, epoch |-> node[r].tenure.epoch]])
    /\ UNCHANGED budget

(* The owner learns inside the transaction that it is one no more. *)
Displaced(r) ==
    /\ node[r].phase = "owner" /\ Reads(r) /\ MyKey(r)
    /\ ~Guard("mine_to_refresh", Names(Seen(r), r))
    /\ Forgets(r, "idle")
    /\ evicted' = evicted \ {r}
    /\ UNCHANGED <<entry, readable, highwater, guard, flight, fence, budget>>

Release(r) ==
    /\ node[r].phase = "owner" /\ Reads(r) /\ MyKey(r)
    /\ Guard("mine_to_release", Names(Seen(r), r))
    /\ Spend("release")
    /\ Decides(r, "deleting", "none", [Snapshot EXCEPT ![node[r].key] = Id(Nobody)])

(* Fence: an effect on a resource that cannot compare runs inside the transaction. *)
Commit(r) ==
    /\ node[r].phase = "owner" /\ MyKey(r)
    /\ Guard("commit_inside", guard = r) /\ Guard("strict_read", readable)
    /\ Guard("mine_to_commit", Names(Seen(r), r))
    /\ Becomes(r, [node[r] EXCEPT !.phase = "committing"])
    /\ UNCHANGED <<entry, readable, highwater, guard, flight, fence, evicted, budget>>

Land(r) ==
    /\ node[r].phase = "committing"
    /\ fence' = [fence EXCEPT ![node[r].tenure.key] = node[r].tenure.epoch]
    /\ Becomes(r, [node[r] EXCEPT !.phase = "owner"])
    /\ UNCHANGED <<entry, readable, highwater, guard, flight, evicted, budget>>

(* Fence: outside the transaction an owner goes by its memory, and by its own clock. *)
Send(r) ==
    /\ node[r].phase = "owner" /\ flight[r] = NoTenure
    /\ Guard("own_lease_holds", node[r].own = "fresh")
    /\ flight' = [flight EXCEPT ![r] = node[r].tenure]
    /\ UNCHANGED <<entry, readable, highwater, guard, node, fence, evicted, budget>>

(* Fence: the resource compares when the effect arrives. *)
Admitted(r) == Guard("not_below_fence", flight[r].epoch >= fence[flight[r].key])
Arrive(r) ==
    /\ flight[r] # NoTenure
    /\ fence' = IF Admitted(r) THEN [fence EXCEPT ![flight[r].key] = flight[r].epoch] ELSE fence
    /\ flight' = [flight EXCEPT ![r] = NoTenure]
    /\ UNCHANGED <<entry, readable, highwater, guard, node, evicted, budget>>

(* A plain read: who owns it?  An owner that finds another there is one no more. *)
Look(r) ==
    LET e == Seen(r) IN
    /\ node[r].phase \in {"idle", "owner"}
    /\ Guard("strict_read", readable)
    /\ CASE node[r].phase = "idle" -> node[r].shown # Id(e) /\ Becomes(r, [node[r] EXCEPT !.shown = Id(e)])
         [] OTHER -> /\ MyKey(r) /\ ~Guard("mine_to_own", Names(e, r))
                     /\ Forgets(r, "idle")
    /\ evicted' = evicted \ {r}
    /\ UNCHANGED <<entry, readable, highwater, guard, flight, fence, budget>>

(* An operator switches the active profile. *)
Switch(r, k) ==
    /\ node[r].phase \in {"idle", "owner"} /\ guard # r /\ node[r].key # k
    /\ Spend("switch")
    /\ Becomes(r, [node[r] EXCEPT !.key = k, !.shown = Id(Nobody)])
    /\ UNCHANGED <<entry, readable, highwater, guard, flight, fence, evicted>>
-----------------------------------------------------------------------------
Init ==
    /\ entry = [k \in Keys |-> Nobody]
    /\ readable = TRUE
    /\ highwater = 0
    /\ guard = "nobody"
    /\ node = [r \in Runtimes |-> Asleep(r)]
    /\ flight = [r \in Runtimes |-> NoTenure]
    /\ fence = [k \in Keys |-> 0]
    /\ evicted = {}
    /\ budget = Budget

Next ==
    \/ \E r \in Runtimes : Start(r)
    \/ \E c \in {Proc[r] : r \in Runtimes} : Crash(c)
    \/ \E k \in Keys : Pass(k)
    \/ \E k \in Keys : Age(k)
    \/ \E looks \in {"passed", "future"} : SetClock(looks)
    \/ \E k \in Keys : ForeignTakes(k)
    \/ \E k \in Keys, life \in {"dead", "reborn"} : ForeignDies(k, life)
    \/ Tear
    \/ Mend
    \/ \E r \in Runtimes : Begin(r)
    \/ \E r \in Runtimes : Leave(r)
    \/ \E r \in Runtimes : Acquire(r)
    \/ \E r \in Runtimes : Elect(r)
    \/ \E r \in Runtimes : Force(r)
    \/ \E r \in Runtimes : Supersede(r)
    \/ \E r \in Runtimes : Raise(r)
    \/ \E r \in Runtimes : FailRaise(r)
    \/ \E r \in Runtimes : Write(r)
    \/ \E r \in Runtimes : FailWrite(r)
    \/ \E r \in Runtimes, landed \in BOOLEAN : LoseWrite(r, landed)
    \/ \E r \in Runtimes : Truncate(r)
    \/ \E r \in Runtimes : Resolve(r)
    \/ \E r \in Runtimes : Refresh(r)
    \/ \E r \in Runtimes : Displaced(r)
    \/ \E r \in Runtimes : Release(r)
    \/ \E r \in Runtimes : Commit(r)
    \/ \E r \in Runtimes : Land(r)
    \/ \E r \in Runtimes : Send(r)
    \/ \E r \in Runtimes : Arrive(r)
    \/ \E r \in Runtimes : Look(r)
    \/ \E r \in Runtimes, k \in Keys : Switch(r, k)

(* Whoever is inside finishes or dies; who wants in gets in, and does what it came for; an owner looks now and then; *)
(* time passes, and a person mends the file. *)
Fairness ==
    /\ \A k \in Keys : WF_vars(Age(k))
    /\ WF_vars(Mend)
    /\ \A r \in Runtimes :
           /\ WF_vars(Raise(r) \/ Write(r) \/ Land(r))
           /\ WF_vars(Look(r))
           /\ SF_vars(Leave(r))
           /\ SF_vars(Begin(r))
           /\ SF_vars(Acquire(r))
           /\ SF_vars(Supersede(r))
           /\ SF_vars(Resolve(r))

Spec == Init /\ [][Next]_vars /\ Fairness
-----------------------------------------------------------------------------
EpochLimit == 2 * (Budget + Cardinality(Runtimes)) + 1

TypeOK ==
    /\ \A k \in Keys : /\ entry[k].owner \in Runtimes \cup {"none", "foreign"}
                       /\ entry[k].epoch \in 0..EpochLimit
                       /\ entry[k].age \in {"fresh", "passed"}
                       /\ entry[k].clock \in {"right", "passed", "future"}
                       /\ entry[k].life \in {"alive", "dead", "reborn"}
    /\ readable \in BOOLEAN
    /\ highwater \in 0..EpochLimit
    /\ guard \in Runtimes \cup {"nobody", "abandoned"}
    /\ \A r \in Runtimes : /\ node[r].phase \in {"off", "idle", "doubtful", "minting", "placing"} \cup Holding
                           /\ node[r].generation \in 0..Cardinality(Runtimes)
                           /\ node[r].key \in Keys
                           /\ node[r].own \in {"fresh", "passed"}
                           /\ node[r].mode \in {"none", "plain", "election", "forced", "superseding"}
    /\ fence \in [Keys -> 0..EpochLimit]
    /\ evicted \subseteq Runtimes
    /\ budget \in 0..Budget

(* The step makes r the owner of its key. *)
Wins(r) ==
    /\ node[r].phase = "placing"
    /\ Id(entry[node[r].key]) # [owner |-> r, epoch |-> node[r].tenure.epoch]
    /\ Id(entry'[node[r].key]) = [owner |-> r, epoch |-> node[r].tenure.epoch]
Replaced(r) == entry[node[r].key]

(* A writer changes the owner of its own key only: no key is lost. *)
OneOwner_S11 == [][\A k \in Keys : Id(entry'[k]) # Id(entry[k]) =>
                       \A r \in Runtimes : node'[r].phase # node[r].phase => node[r].key = k]_vars
(* No participant makes the registry unreadable, not for a moment. *)
OneOwner_S13 == [][readable /\ ~readable' => budget' < budget]_vars
(* At most one runtime answers "I own it". *)
OneOwner_S14 == \A k \in Keys :
    Cardinality({r \in Runtimes : /\ node[r].phase \in Holding /\ node[r].tenure.key = k
                                  /\ Guard("mine_to_own", Names(entry[k], r))}) <= 1
(* Within a process the lease moves only to a newer runtime. *)
OneOwner_S18 == [][\A r \in Runtimes : Wins(r) /\ Here(r, Replaced(r)) /\ ~Dead(Replaced(r)) =>
                       node[r].generation > node[Replaced(r).owner].generation]_vars
(* A refresh never changes who owns. *)
OneOwner_S21 == [][\A r \in Runtimes : node[r].phase = "renewing" /\ node'[r].phase = "owner" =>
                       Id(entry'[node[r].key]) = Id(entry[node[r].key])]_vars
(* A runtime that lives forgets its tenure only when it has lost it, or let it go. *)
OneOwner_S22 == [][\A r \in Runtimes : node[r].phase \in Holding /\ node'[r].phase = "idle" =>
                       ~Names(entry'[node[r].tenure.key], r)]_vars
(* An entry vanishes only because its owner lets go. *)
OneOwner_S23 == [][\A k \in Keys : entry[k].owner # "none" /\ entry'[k].owner = "none" =>
                       \E r \in Runtimes : node[r].phase = "deleting" /\ Names(entry[k], r)]_vars
OneOwner == /\ OneOwner_S11 /\ OneOwner_S13 /\ []OneOwner_S14 /\ OneOwner_S18 /\ OneOwner_S21
            /\ OneOwner_S22 /\ OneOwner_S23

(* No two runtimes of a process have the same generation. *)
FreshEpoch_S19 == \A r, m \in Runtimes :
    r # m /\ Alive(r) /\ Alive(m) /\ Proc[r] = Proc[m] => node[r].generation # node[m].generation
(* A tenure's epoch is above all that the resource has seen, and nobody else's. *)
FreshEpoch_S20 == [][\A r \in Runtimes : Wins(r) =>
    /\ \A k \in Keys : node[r].tenure.epoch > fence[k] /\ node[r].tenure.epoch # entry[k].epoch
    /\ \A m \in Runtimes : flight[m].epoch # node[r].tenure.epoch
    /\ \A m \in Runtimes \ {r} : node[m].tenure.epoch # node[r].tenure.epoch]_vars
FreshEpoch == []FreshEpoch_S19 /\ FreshEpoch_S20

(* An effect of an older tenure never lands after one of a newer. *)
NoStaleEffect_A14 == [][\A k \in Keys : fence'[k] >= fence[k]]_vars
(* An effect that runs inside the transaction lands before any other owns. *)
NoStaleEffect_S24 == [][\A r \in Runtimes : node[r].phase = "committing" /\ node'[r].phase = "owner" =>
                            Names(entry[node[r].tenure.key], r)]_vars
(* Whoever lost its lease because the time was over sends nothing any more, also if it does not know. *)
NoStaleEffect_K11 == [][\A r \in Runtimes : flight[r] = NoTenure /\ flight'[r] # NoTenure =>
                            r \in evicted \/ Names(entry[flight'[r].key], r)]_vars
NoStaleEffect == NoStaleEffect_A14 /\ NoStaleEffect_S24 /\ NoStaleEffect_K11

(* What cannot be read is not overwritten. *)
ReplaceOnlyObserved_S12 == [][\A k \in Keys : Id(entry'[k]) # Id(entry[k]) => readable]_vars
(* A live lease of another process is replaced only by force, over the very owner that was shown. *)
ReplaceOnlyObserved_S15 == [][\A r \in Runtimes :
    Wins(r) /\ Replaced(r).owner # "none" /\ ~Here(r, Replaced(r)) /\ ~Stale(r, Replaced(r)) =>
        node[r].mode = "forced" /\ node[r].shown = Id(Replaced(r))]_vars
(* An election replaces only whom it saw, and only when that lease is over. *)
ReplaceOnlyObserved_S16 == [][\A r \in Runtimes :
    Wins(r) /\ node[r].mode = "election" /\ Replaced(r).owner # "none" /\ node[r].shown.owner # "none" =>
        node[r].shown = Id(Replaced(r)) /\ Stale(r, Replaced(r))]_vars
(* To have seen nobody is no leave to replace a newcomer. *)
ReplaceOnlyObserved_S17 == [][\A r \in Runtimes :
    Wins(r) /\ node[r].mode = "election" /\ node[r].shown.owner = "none" => Replaced(r).owner = "none"]_vars
ReplaceOnlyObserved == /\ ReplaceOnlyObserved_S12 /\ ReplaceOnlyObserved_S15
                       /\ ReplaceOnlyObserved_S16 /\ ReplaceOnlyObserved_S17

(* A lease that nobody keeps in time, while there is a living runtime that may have it. *)
Deserted(k) ==
    /\ ~(Kept(entry[k]) /\ entry[k].age = "fresh")
    /\ \E r \in Runtimes :
          /\ Alive(r) /\ node[r].key = k /\ node[r].tenure.key \in {k, "none"}
          /\ \/ entry[k].owner = "none"
             \/ Dead(entry[k])
             \/ entry[k].owner = r /\ node[r].phase \notin Holding
             \/ ~Here(r, entry[k])
EventuallyOwned_V4 == \A k \in Keys : Deserted(k) ~> ~Deserted(k)

(* The newest runtime of a process gets the lease that an older one holds. *)
Outlived(k) == \E r \in Runtimes : node[r].key = k /\ node[r].phase = "idle" /\ Newer(r, entry[k])
EventuallyOwned_V9 == \A k \in Keys : Outlived(k) ~> ~Outlived(k)
EventuallyOwned == EventuallyOwned_V4 /\ EventuallyOwned_V9
=============================================================================
