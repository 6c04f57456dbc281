-------------------------- MODULE FileTransaction --------------------------
(* How a guarded file keeps the promises of Transaction, with nothing but   *)
(* mkdir, rename and rmdir: a directory at the guard's path, published by   *)
(* rename with exactly one owner file in it, moved away to be released, and *)
(* taken from a dead holder by renaming its owner file, by name, to a claim *)
(* marker first.  Every file-system action of locks.md 3.1 is a step here   *)
(* and a crash may fall between any two.                                    *)
EXTENDS GuardDirectory
-----------------------------------------------------------------------------
(* Faults.  A process dies wherever its threads are; its pid is given to a new process. *)
Crash(p) ==
    /\ proc[p].up /\ Fault("crash")
    /\ proc' = [proc EXCEPT ![p].up = FALSE]
    /\ node' = [t \in Threads |-> IF Pid[t] = p THEN Idle ELSE node[t]]
    /\ UNCHANGED <<guard, neighbour, stranger>>

Reuse(p) ==
    /\ ~proc[p].up /\ Fault("reuse")
    /\ proc' = [proc EXCEPT ![p] = [up |-> TRUE, birth |-> proc[p].birth + 1]]
    /\ UNCHANGED <<guard, node, neighbour, stranger>>

(* An empty directory, or something unreadable whose holder is inside, comes to stand there. *)
Drop ==
    /\ guard.kind = "absent" /\ Fault("litter")
    /\ guard' = Litter("empty")
    /\ UNCHANGED <<proc, node, neighbour, stranger>>

Intrude ==
    /\ guard.kind = "absent" /\ Fault("stranger")
    /\ guard' = Litter("alien") /\ stranger' = "inside"
    /\ UNCHANGED <<proc, node, neighbour>>

StrangerLeaves ==
    /\ stranger = "inside" /\ stranger' = "out"
    /\ guard' = IF guard.kind = "alien" THEN Nothing ELSE guard
    /\ UNCHANGED <<proc, node, neighbour, budget>>

(* A person clears an empty directory away. *)
Quarantine == guard.kind = "empty" /\ guard' = Nothing /\ UNCHANGED <<node, world>>

(* A person removes the guard of a live holder. *)
Tamper ==
    /\ \E t \in Threads : node[t].phase = "inside" /\ node[t].id = guard.id
    /\ Fault("tamper")
    /\ guard' = Nothing
    /\ UNCHANGED <<proc, node, neighbour, stranger>>
-----------------------------------------------------------------------------
Init ==
    /\ guard = Nothing
    /\ proc = [p \in Pids |-> [up |-> TRUE, birth |-> 1]]
    /\ node = [t \in Threads |-> Idle]
    /\ neighbour \in Neighbours
    /\ stranger = "out"
    /\ budget = Budget

Next ==
    \/ \E t \in Threads : EnsureParent(t)
    \/ \E t \in Threads : Stage(t)
    \/ \E t \in Threads : StageFails(t)
    \/ \E t \in Threads : Look(t)
    \/ \E t \in Threads : Publish(t)
    \/ \E t \in Threads : PublishRefused(t)
    \/ \E t \in Threads : PublishFails(t)
    \/ \E t \in Threads : Observe(t)
    \/ \E t \in Threads : List(t)
    \/ \E t \in Threads : JudgeOwner(t)
    \/ \E t \in Threads : JudgeMarker(t)
    \/ \E t \in Threads : Claim(t)
    \/ \E t \in Threads : ClaimMissed(t)
    \/ \E t \in Threads : ClaimFails(t)
    \/ \E t \in Threads : MoveUnclaimed(t)
    \/ \E t \in Threads : Move(t)
    \/ \E t \in Threads : MoveFails(t)
    \/ \E t \in Threads : RollBack(t)
    \/ \E t \in Threads : RollBackFails(t)
    \/ \E t \in Threads : Abort(t)
    \/ \E t \in Threads : DeleteStale(t)
    \/ \E t \in Threads : Tidy(t)
    \/ \E t \in Threads : TidyFails(t)
    \/ \E t \in Threads : Wake(t)
    \/ \E t \in Threads : GiveUp(t)
    \/ \E t \in Threads : Leave(t)
    \/ \E t \in Threads : Nest(t)
    \/ \E t \in Threads : Verify(t)
    \/ \E t \in Threads : MoveAway(t)
    \/ \E t \in Threads : ReleaseFails(t)
    \/ \E t \in Threads : DeleteReleased(t)
    \/ \E t \in Threads : EmptyInPlace(t)
    \/ \E t \in Threads : DeleteInPlace(t)
    \/ \E p \in Pids : Crash(p)
    \/ \E p \in Pids : Reuse(p)
    \/ Drop
    \/ Intrude
    \/ StrangerLeaves
    \/ Quarantine
    \/ Tamper

(* Fairness: a thread of a live process goes on, so holders finish or die; nobody has to want, to give up or to fail. *)
Progress(t) ==
    \/ Stage(t) \/ Look(t) \/ Publish(t) \/ PublishRefused(t) \/ Observe(t) \/ List(t) \/ JudgeOwner(t) \/ JudgeMarker(t)
    \/ Claim(t) \/ ClaimMissed(t) \/ Move(t) \/ RollBack(t) \/ DeleteStale(t) \/ Tidy(t) \/ Wake(t)
    \/ Leave(t) \/ Verify(t) \/ MoveAway(t) \/ DeleteReleased(t)

Spec == Init /\ [][Next]_vars /\ \A t \in Threads : WF_vars(Progress(t))
-----------------------------------------------------------------------------
TypeOK ==
    /\ guard.kind \in {"absent", "owner", "marker", "empty", "alien"}
    /\ \A t \in Threads : node[t].phase \in {"idle", "deleting_released"} \cup Inside \cup Waiting
    /\ neighbour \in {"none", "dead", "live"}
    /\ budget \in 0..Budget

In(t)  == Up(t) /\ node[t].phase \in Inside
Wants  == \E t \in Threads : Up(t) /\ node[t].phase \in Waiting

(* S1: at most one is inside.  S2: nobody is who saw something stand there.  *)
(* S9: nobody is beside a holder whose guard cannot be read.                 *)
OneInside_S1 == \A t, u \in Threads : In(t) /\ In(u) => t = u
OneInside_S2 == \A t \in Threads : In(t) => ~node[t].saw
OneInside_S9 == stranger = "inside" => \A t \in Threads : ~In(t)
OneInside == OneInside_S1 /\ OneInside_S2 /\ OneInside_S9

(* S3: the guard of whoever is inside stands until it is released.  S4: no marker is put on it.  S5: nobody is  *)
(* about to rename it.  S6: who moves the path moves its own claim.  S7: one at a time.  R8: nor is a live   *)
(* neighbour touched.                                                                                        *)
LiveHolderKept_S3 == \A t \in Threads : In(t) => guard.kind = "owner" /\ guard.id = node[t].id
LiveHolderKept_S4 == guard.kind = "marker" => \A t \in Threads : In(t) => guard.id # node[t].id
LiveHolderKept_S5 == \A t, u \in Threads :
    node[t].phase = "claiming" /\ In(u) => guard.kind # "owner" \/ guard.id # node[t].name
LiveHolderKept_S6 == \A t \in Threads : node[t].phase = "moving" => guard.kind = "marker" /\ guard.claim = node[t].claim
LiveHolderKept_S7 == \A t, u \in Threads : {node[t].phase, node[u].phase} \subseteq {"moving", "rolling_back"} => t = u
LiveHolderKept_R8 == [][neighbour = "live" => neighbour' = "live"]_vars
LiveHolderKept ==
    /\ LiveHolderKept_S3 /\ LiveHolderKept_S4 /\ LiveHolderKept_S5 /\ LiveHolderKept_S6 /\ LiveHolderKept_S7

(* S8: a release takes only its own guard away. *)
ReleaseOnlyOwn_S8 ==
    [][\A t \in Threads : node[t].phase = "releasing" /\ guard' # guard /\ node'[t] # node[t] => guard.id = node[t].id]_vars

(* S10: no live process leaves a guard behind that none of its threads holds. *)
NothingLeaked_S10 ==
    guard.kind = "owner" /\ guard.pid \notin Foreign /\ proc[guard.pid].up /\ proc[guard.pid].birth = guard.birth
        => \E t \in Threads : Pid[t] = guard.pid /\ node[t].id = guard.id

(* R8: nor does a dead neighbour outlive a recovery. *)
NothingLeaked_R8 == \A t \in Threads : node[t].phase = "inside" /\ node[t].recovered => neighbour # "dead"

(* V1: if somebody wants to enter, somebody gets in, or nobody wants any more, or the path is damaged.     *)
(* V2: a dead recoverer blocks nobody.  V3: nor does a reclaim that failed block its own process.          *)
Stranded(p) == guard.kind = "marker" /\ guard.claimant = p /\ proc[p].up /\ guard.claim \notin Running(p)
                /\ \E t \in Threads : Pid[t] = p /\ node[t].phase \in Waiting

EventuallyFree_V1 == Wants ~> (\/ ~Wants \/ guard.kind \in {"empty", "alien"} \/ \E t \in Threads : In(t))
EventuallyFree_V2 == (Wants /\ guard.kind = "marker") ~> (~Wants \/ guard.kind # "marker")
EventuallyFree_V3 == \A p \in Pids : Stranded(p) ~> ~Stranded(p)

(* What Transaction sees: a thread inside is the holder, anything else that stands there is abandoned or damaged. *)
HolderImage ==
    IF \E t \in Threads : In(t) THEN CHOOSE t \in Threads : In(t)
    ELSE CASE guard.kind \in {"absent", "empty"} -> "nobody"
           [] guard.kind = "alien" -> "damaged"
           [] OTHER -> "abandoned"
PhaseImage == [t \in Threads |->
    IF ~Up(t) THEN "out" ELSE IF node[t].phase \in Inside THEN "inside" ELSE IF node[t].phase \in Waiting THEN "waiting" ELSE "out"]

(* Every step of this module is a step of Transaction, or none. *)
T == INSTANCE Transaction WITH Threads <- Threads, Off <- {}, holder <- HolderImage, phase <- PhaseImage
RefinesTransaction == T!Spec
=============================================================================
