--------------------------- MODULE LeaderElection ---------------------------
(* Who owns the lease, and can a displaced owner do harm?                   *)
(*                                                                          *)
(* Runtimes of processes that come and go share a registry.  The state and  *)
(* the world are in OwnerRegistry, what a runtime does in                   *)
(* RegistryOperations; here is what must hold.                              *)
(* (locks.md 4-7, 9.4 and 14.2-3; S11-S24, S33 and V9 of 15-16.)            *)
EXTENDS RegistryOperations

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
    \/ \E r \in Runtimes : Resume(r)
    \/ \E r \in Runtimes : Mint(r)
    \/ \E r \in Runtimes : Abandon(r)
    \/ \E r \in Runtimes : Raise(r)
    \/ \E r \in Runtimes, landed \in BOOLEAN : FailRaise(r, landed)
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

(* Whoever is inside finishes or dies; who wants in gets in, and does what it came for; an owner looks now and *)
(* then; time passes, and a person mends the file.                                                             *)
Fairness ==
    /\ \A k \in Keys : WF_vars(Age(k))
    /\ WF_vars(Mend)
    /\ \A r \in Runtimes :
           /\ WF_vars(Mint(r) \/ Raise(r) \/ Write(r) \/ Land(r))
           /\ WF_vars(Look(r))
           /\ SF_vars(Leave(r))
           /\ SF_vars(Begin(r))
           /\ SF_vars(Acquire(r))
           /\ SF_vars(Supersede(r))
           /\ SF_vars(Resolve(r))

Spec == Init /\ [][Next]_vars /\ Fairness
-----------------------------------------------------------------------------
TypeOK ==
    /\ \A k \in Keys : /\ entry[k].owner \in Runtimes \cup {"none", "foreign"}
                       /\ entry[k].epoch \in 0..MaxEpoch
                       /\ entry[k].age \in {"fresh", "passed"}
                       /\ entry[k].clock \in {"right", "passed", "future"}
                       /\ entry[k].life \in {"alive", "dead", "reborn"}
    /\ readable \in BOOLEAN
    /\ highwater \in 0..(MaxEpoch - 1)
    /\ guard \in Runtimes \cup {"nobody", "abandoned"}
    /\ \A r \in Runtimes : /\ node[r].phase \in {"off", "idle", "doubtful", "minting", "raising", "placing"} \cup Holding
                           /\ node[r].generation \in 0..Cardinality(Runtimes)
                           /\ node[r].key \in Keys
                           /\ node[r].own \in {"fresh", "passed"}
                           /\ node[r].mode \in {"none", "plain", "election", "forced", "superseding", "resume"}
    /\ fence \in [Keys -> 0..MaxEpoch]
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
(* A resume creates no entry where there is none, and replaces nobody but the owner that it saw. *)
ReplaceOnlyObserved_S33 == [][\A r \in Runtimes :
    Wins(r) /\ node[r].mode = "resume" => Replaced(r).owner # "none" /\ node[r].shown = Id(Replaced(r))]_vars
ReplaceOnlyObserved == /\ ReplaceOnlyObserved_S12 /\ ReplaceOnlyObserved_S15 /\ ReplaceOnlyObserved_S16
                       /\ ReplaceOnlyObserved_S17 /\ ReplaceOnlyObserved_S33

(* A lease that nobody keeps in time does not stay so while a living runtime may have it. *)
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
