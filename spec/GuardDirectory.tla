------------------------ MODULE GuardDirectory ------------------------
(* One thread and one guarded path: the calls of locks.md 3.1, one action   *)
(* each, with the failures they may meet.  A phase names the call that the  *)
(* thread is about to make.  FileTransaction puts threads, processes and    *)
(* faults around it, and says what must hold.                               *)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Threads,        \* strings
    Pid,            \* Pid[t]: the pid of the process in which thread t runs
    Foreign,        \* pids of processes of the other system: they neither write nor compare births
    Faults,         \* the kinds of fault that may happen
    Neighbours,     \* what may stand at the old recovery guard's path: none, dead, live
    Budget,         \* how many faults in all
    Off             \* the guards and permits taken away; {} is the protocol

Pids == {Pid[t] : t \in Threads}

VARIABLES
    guard,          \* what stands at the guard's path
    proc,           \* proc[p]: the process that has pid p now: is it up, and its birth
    node,           \* node[t]: the phase names the call that thread t is about to make
    neighbour,      \* the recovery guard of older versions beside it
    stranger,       \* is somebody inside whose guard nobody can read?
    budget          \* faults left

vars == <<guard, proc, node, neighbour, stranger, budget>>
world == <<proc, neighbour, stranger, budget>>

Guard(name, holds)  == name \in Off \/ holds
Permit(name, holds) == name \notin Off /\ holds

(* One shape for all that may stand at the path.  An owner file and a claim *)
(* marker both carry the owner's payload (id, pid, birth); a marker names   *)
(* its claim, its claimant, and since when that process is there (birth).   *)
Nothing == [kind |-> "absent", id |-> 0, pid |-> "none", birth |-> 0, claim |-> 0, claimant |-> "none", since |-> 0]
Litter(kind) == [Nothing EXCEPT !.kind = kind]

(* id: my generation; saw: did I see something at the path when I looked;   *)
(* payload, name: what I read of an abandoned guard; claim: my marker;      *)
(* recovered: I took a dead guard away on my way in.                        *)
Idle == [phase |-> "idle", id |-> 0, saw |-> FALSE, payload |-> 0, name |-> 0, claim |-> 0, recovered |-> FALSE]
At(phase) == [Idle EXCEPT !.phase = phase]

Inside  == {"tidying", "inside", "verifying", "releasing"}
Waiting == {"staging", "checking", "publishing", "observing", "listing", "judging_owner", "judging_marker",
            "claiming", "moving", "rolling_back", "deleting_stale", "pausing"}

Up(t)       == proc[Pid[t]].up
Birth(p)    == IF p \in Foreign THEN 0 ELSE proc[p].birth
Running(p)  == {node[t].claim : t \in {u \in Threads : Pid[u] = p}} \ {0}
Used        == {guard.id, guard.claim} \cup UNION {{node[t].id, node[t].payload, node[t].name, node[t].claim} : t \in Threads}
Fresh       == CHOOSE i \in 1..(4 * Cardinality(Threads) + 3) : i \notin Used /\ \A j \in 1..(i - 1) : j \in Used

(* Proof: the process that wrote (pid, birth) is gone, as seen by thread t. *)
Another(t, pid, birth) ==
    Permit("another_birth", /\ proc[pid].up /\ birth # 0 /\ Pid[t] \notin Foreign /\ birth # proc[pid].birth)

Fault(kind) == kind \in Faults /\ budget > 0 /\ budget' = budget - 1
Go(t, from, to) == Up(t) /\ node[t].phase = from /\ node' = [node EXCEPT ![t] = to]
-----------------------------------------------------------------------------
(* Step S0: the parent directory is there; the thread wants to enter. *)
EnsureParent(t) == Go(t, "idle", At("staging")) /\ UNCHANGED <<guard, world>>

(* Step S1: a sibling directory with my owner file in it.  Fresh: its generation was never seen. *)
Stage(t) ==
    /\ node[t].phase = "staging"
    /\ \E id \in {Fresh, 1} :
          /\ Guard("generation_is_fresh", id = Fresh)  \* A generation is never used twice.
          /\ Go(t, "staging", [node[t] EXCEPT !.phase = "checking", !.id = id])
    /\ UNCHANGED <<guard, world>>

StageFails(t) ==
    /\ Go(t, "staging", Idle) /\ Fault("stage")
    /\ UNCHANGED <<guard, proc, neighbour, stranger>>

(* Step S2: look first, since rename would silently replace an empty directory. *)
Look(t) ==
    LET free == Guard("path_is_free", guard.kind = "absent") IN
    /\ Go(t, "checking",
          IF free THEN [node[t] EXCEPT !.phase = "publishing", !.saw = guard.kind # "absent"] ELSE At("observing"))
    /\ UNCHANGED <<guard, world>>

(* Step S3: rename the staged directory to the path; an occupied path refuses. *)
Publish(t) ==
    /\ Guard("rename_refuses_occupied", guard.kind \in {"absent", "empty"})  \* A rename onto an occupied path fails.
    /\ Go(t, "publishing",
          [node[t] EXCEPT !.phase = IF Guard("took_nothing_over", ~node[t].recovered) THEN "inside" ELSE "tidying"])
    /\ guard' = [Nothing EXCEPT !.kind = "owner", !.id = node[t].id, !.pid = Pid[t], !.birth = Birth(Pid[t])]
    /\ UNCHANGED world

PublishRefused(t) ==
    /\ ~Guard("rename_refuses_occupied", guard.kind \in {"absent", "empty"})
    /\ Go(t, "publishing", At("observing"))
    /\ UNCHANGED <<guard, world>>

PublishFails(t) ==
    /\ Go(t, "publishing", At("observing")) /\ Fault("rename")
    /\ UNCHANGED <<guard, proc, neighbour, stranger>>

(* Step R1: a readable payload whose process is proven dead, else nothing is abandoned. *)
Observe(t) ==
    LET readable == Guard("payload_verifiable", guard.kind \in {"owner", "marker"})
        gone == \/ Guard("holder_is_gone", guard.pid = "none" \/ ~proc[guard.pid].up)
                \/ guard.pid # "none" /\ Another(t, guard.pid, guard.birth)
    IN  /\ Go(t, "observing", IF readable /\ gone THEN [At("listing") EXCEPT !.payload = guard.id] ELSE At("pausing"))
        /\ UNCHANGED <<guard, world>>

(* Step R2: the name of the one entry. *)
List(t) ==
    /\ Go(t, "listing",
          CASE guard.kind \in {"owner", "alien"} -> [node[t] EXCEPT !.phase = "judging_owner", !.name = guard.id]
            [] guard.kind = "marker" -> [node[t] EXCEPT !.phase = "judging_marker", !.name = guard.claim]
            [] OTHER -> At("pausing"))
    /\ UNCHANGED <<guard, world>>

(* Step R3: an owner name must be the payload's; a marker's claimant must be dead, *)
(* or be this very process with no such reclaim running.                      *)
JudgeOwner(t) ==
    LET same == Guard("name_matches_payload", node[t].name = node[t].payload) IN
    /\ Go(t, "judging_owner", IF same THEN [node[t] EXCEPT !.phase = "claiming"] ELSE At("pausing"))
    /\ UNCHANGED <<guard, world>>

JudgeMarker(t) ==
    LET there == guard.kind = "marker" /\ guard.claim = node[t].name
        gone  == \/ Guard("claimant_is_gone", ~proc[guard.claimant].up)
                 \/ Another(t, guard.claimant, guard.since)
        mine  == /\ Permit("own_claims_are_resumed", TRUE)
                 /\ Guard("claimant_is_me", guard.claimant = Pid[t] /\ guard.since \in {0, Birth(Pid[t])})
                 /\ Guard("claim_not_running", guard.claim \notin Running(Pid[t]))
        taken == there /\ (Permit("dead_claims_are_taken_over", gone) \/ mine)
    IN  /\ Go(t, "judging_marker", IF taken THEN [node[t] EXCEPT !.phase = "claiming"] ELSE At("pausing"))
        /\ UNCHANGED <<guard, world>>

(* Step R4: rename that entry, by its name, to my marker.  The path stays occupied. *)
Named(t) == \/ guard.kind \in {"owner", "alien"} /\ Guard("claim_by_name", guard.id = node[t].name)
            \/ guard.kind = "marker" /\ Guard("claim_by_name", guard.claim = node[t].name)  \* What is renamed is the entry of that very name.

Claim(t) ==
    /\ node[t].phase = "claiming" /\ Named(t)
    /\ Go(t, "claiming", [node[t] EXCEPT !.phase = "moving", !.name = 0, !.claim = Fresh])
    /\ guard' = [guard EXCEPT !.kind = "marker", !.claim = Fresh, !.claimant = Pid[t], !.since = Birth(Pid[t])]
    /\ UNCHANGED world

ClaimMissed(t) == ~Named(t) /\ Go(t, "claiming", At("pausing")) /\ UNCHANGED <<guard, world>>

ClaimFails(t) ==
    /\ Go(t, "claiming", At("pausing")) /\ Fault("rename")
    /\ UNCHANGED <<guard, proc, neighbour, stranger>>

(* Mutant of R4-R5: the abandoned guard is moved away without a claim. *)
MoveUnclaimed(t) ==
    /\ Guard("claim_precedes_move", FALSE)  \* A dead guard is claimed before it is moved.
    /\ Go(t, "claiming", At("deleting_stale"))
    /\ guard' = Nothing
    /\ UNCHANGED world

(* Step R5: rename the path away.  It goes by path, so only a running claim may do it. *)
Move(t) == Go(t, "moving", At("deleting_stale")) /\ guard' = Nothing /\ UNCHANGED world

MoveFails(t) ==
    /\ Go(t, "moving", [node[t] EXCEPT !.phase = "rolling_back"]) /\ Fault("rename")
    /\ UNCHANGED <<guard, proc, neighbour, stranger>>

(* ... and when it cannot be moved: back to an owner name, again and again if need be, so that others can try. *)
RollBack(t) ==
    /\ Permit("claim_rolls_back", TRUE)  \* A claim that cannot move the guard gives it back.
    /\ Go(t, "rolling_back", At("pausing"))
    /\ guard' = [guard EXCEPT !.kind = "owner", !.claim = 0, !.claimant = "none", !.since = 0]
    /\ UNCHANGED world

RollBackFails(t) ==
    /\ Go(t, "rolling_back", node[t]) /\ Fault("rename")
    /\ UNCHANGED <<guard, proc, neighbour, stranger>>

(* An exception ends the reclaim but not the process: the marker stays, and no thread runs it. *)
Abort(t) ==
    /\ Go(t, "moving", Idle) /\ Fault("abort")
    /\ UNCHANGED <<guard, proc, neighbour, stranger>>

(* Step R6, R7: delete it, best effort, and publish like anybody else. *)
DeleteStale(t) ==
    /\ Go(t, "deleting_stale", [At("staging") EXCEPT !.recovered = TRUE])
    /\ UNCHANGED <<guard, world>>

(* Step R8: an abandoned neighbour goes, a live one stays; a guard won here is released when that fails. *)
Tidy(t) ==
    /\ Go(t, "tidying", [node[t] EXCEPT !.phase = "inside"])
    /\ neighbour' = IF Guard("neighbour_is_gone", neighbour # "live") THEN "none" ELSE neighbour
    /\ UNCHANGED <<guard, proc, stranger, budget>>

(* Refusal is inert: whoever fails here lets the guard go that it has just won. *)
TidyFails(t) ==
    /\ Go(t, "tidying", IF Guard("failed_tidy_leaks", FALSE) THEN Idle ELSE [node[t] EXCEPT !.phase = "verifying"])  \* A guard won is released when tidying fails.
    /\ Fault("tidy")
    /\ UNCHANGED <<guard, proc, neighbour, stranger>>

(* The thread comes back from its sleep, or has slept often enough. *)
Wake(t)   == Permit("contention_is_retried", TRUE) /\ Go(t, "pausing", At("staging")) /\ UNCHANGED <<guard, world>>
GiveUp(t) == Go(t, "pausing", Idle) /\ UNCHANGED <<guard, world>>

(* The operation is over. *)
Leave(t) == Go(t, "inside", [node[t] EXCEPT !.phase = "verifying"]) /\ UNCHANGED <<guard, world>>

(* Mutant: the thread begins again on the path it is inside of. *)
Nest(t) ==
    /\ Guard("no_nesting", FALSE)  \* A thread that is inside does not begin again.
    /\ Go(t, "inside", At("staging")) /\ UNCHANGED <<guard, world>>

(* Step X1: re-read: only what I published do I release; gone is fine, different is an error. *)
Verify(t) ==
    LET mine == Guard("still_mine", guard.kind = "owner" /\ guard.id = node[t].id) IN
    /\ Go(t, "verifying", IF mine THEN [node[t] EXCEPT !.phase = "releasing"] ELSE Idle)
    /\ UNCHANGED <<guard, world>>

(* Step X2: rename the path away, again and again if need be; X3: delete it. *)
MoveAway(t) == Go(t, "releasing", At("deleting_released")) /\ guard' = Nothing /\ UNCHANGED world

(* Unknown: a release that failed is tried again, for nobody else may end it. *)
ReleaseFails(t) ==
    /\ Go(t, "releasing", IF Permit("release_is_retried", TRUE) THEN node[t] ELSE Idle)  \* A release that failed is tried again.
    /\ Fault("rename")
    /\ UNCHANGED <<guard, proc, neighbour, stranger>>

DeleteReleased(t) == Go(t, "deleting_released", Idle) /\ UNCHANGED <<guard, world>>

(* Mutant of X2: delete in place, first my owner file, then whatever is there. *)
EmptyInPlace(t) ==
    /\ Guard("moved_away_first", FALSE)  \* A guard is renamed away before it is deleted.
    /\ Go(t, "releasing", At("deleting_released")) /\ guard' = Litter("empty") /\ UNCHANGED world
DeleteInPlace(t) ==
    /\ Guard("moved_away_first", FALSE)
    /\ Go(t, "deleting_released", Idle) /\ guard' = Nothing /\ UNCHANGED world
=============================================================================
