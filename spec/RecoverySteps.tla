--------------------------- MODULE RecoverySteps ---------------------------
(* What a recoverer does, step by step: it looks, stops its own poller, lets *)
(* its lease go, takes the two guards, looks again under each, and moves     *)
(* what is damaged.  RuntimeRecovery has the world around it.                *)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Recoverers,     \* the runtimes that connect; strings
    Housemates,     \* those of them in whose process the owner runs
    Broken,         \* start fails for a reason that recovery never touches (config, token)
    Budget,         \* how many faults may happen after the unclean shutdown
    Off             \* the guards and permits taken away; {} is the protocol

ASSUME Recoverers \cap {"o", "none", "ghost", "stranger", "nobody", "abandoned", "damaged"} = {}
ASSUME Housemates \subseteq Recoverers

VARIABLES
    registry,   \* the owner registry: [kind, owner, fresh]
    state,      \* the thread state file: good, damaged, missing
    guard,      \* the ownership guard: who is inside, or nobody / abandoned / damaged
    recovery,   \* the runtime-recovery guard, likewise (a damaged one is a person's matter)
    owner,      \* the owner that comes and goes: out, acquiring, owning, refreshing
    node,       \* node[p]: a recoverer, [phase, polling, again, seen]
    budget      \* faults left

vars == <<registry, state, guard, recovery, owner, node, budget>>

Guard(name, holds)  == name \in Off \/ holds
Permit(name, holds) == name \notin Off /\ holds

Entry(n) == [kind |-> "valid", owner |-> n, fresh |-> TRUE]
Missing  == [kind |-> "missing", owner |-> "none", fresh |-> FALSE]
Torn     == [Missing EXCEPT !.kind = "damaged"]

(* The probe sees a pid: a stranger that got the pid of a dead owner is as alive as an owner. *)
Alive == registry.owner \notin {"none", "ghost"}
Mine(p) == registry.owner = p \/ (registry.owner = "o" /\ p \in Housemates)

(* What is true, whatever can be seen: somebody lives who holds the lease. *)
Owned == registry.owner \in Recoverers \cup {"o"}

Seen == (IF guard = "damaged" THEN {"guard"} ELSE {})
        \cup (IF registry.kind = "damaged" THEN {"registry"} ELSE {})
        \cup (IF state = "damaged" THEN {"state"} ELSE {})

Passable == guard \in {"nobody", "abandoned"}
Left(n, holder) == IF holder = n THEN "nobody" ELSE holder    \* a guard, left by n if n holds it
At(p, phase) == node[p].phase = phase
Go(p, phase) == node' = [node EXCEPT ![p].phase = phase]

Idle == [phase |-> "idle", polling |-> FALSE, again |-> FALSE, seen |-> {}]
-----------------------------------------------------------------------------
(* The operator asks for a connection, as often as it takes. *)
Connect(p) ==
    /\ node[p].phase \in {"idle", "connected", "blocked"}
    /\ node' = [node EXCEPT ![p].phase = "starting", ![p].again = FALSE]
    /\ UNCHANGED <<registry, state, guard, recovery, owner, budget>>

(* Another owner lives: no failure, and nothing to heal. *)
Elsewhere(p) == Alive /\ registry.fresh /\ ~Mine(p)

Start(p) ==
    /\ At(p, "starting")
    /\ Passable /\ Seen = {} /\ ~Elsewhere(p) /\ ~Broken
    /\ node' = [node EXCEPT ![p] = [Idle EXCEPT !.phase = "connected", !.polling = TRUE]]
    /\ registry' = Entry(p) /\ state' = "good" /\ guard' = "nobody"
    /\ owner' = IF registry.owner = "o" THEN "out" ELSE owner    \* a housemate that is superseded stops first
    /\ UNCHANGED <<recovery, budget>>

StartRefused(p) ==
    /\ At(p, "starting")
    /\ Passable /\ Elsewhere(p)
    /\ Go(p, "idle")
    /\ UNCHANGED <<registry, state, guard, recovery, owner, budget>>

Throws(p) ==
    /\ At(p, "starting")
    /\ \/ Seen \cap {"guard", "registry"} # {}
       \/ Passable /\ ~Elsewhere(p) /\ (state = "damaged" \/ Broken)

(* Connect heals once; a start that throws after that is for the operator. *)
StartFails(p) ==
    /\ Throws(p)
    /\ Guard("first_failure", ~node[p].again)
    /\ Go(p, "looking")
    /\ UNCHANGED <<registry, state, guard, recovery, owner, budget>>

GiveUp(p) ==
    /\ Throws(p)
    /\ ~Guard("first_failure", ~node[p].again)
    /\ Go(p, "blocked")
    /\ UNCHANGED <<registry, state, guard, recovery, owner, budget>>
-----------------------------------------------------------------------------
(* Proof: the entry's process is dead, or its heartbeat is over whoever has the pid now. *)
Unowned == Guard("owner_is_gone", ~Alive) \/ Permit("lease_is_over", ~registry.fresh)

(* The first look, before anything of this process is touched. *)
Look(p) ==
    /\ At(p, "looking")
    /\ Unowned
    /\ Go(p, "suspending")
    /\ UNCHANGED <<registry, state, guard, recovery, owner, budget>>

LookBlocked(p) ==
    /\ At(p, "looking")
    /\ ~Unowned
    /\ Go(p, "blocked")
    /\ UNCHANGED <<registry, state, guard, recovery, owner, budget>>

(* Its own poller stops first: nothing is reset under a poller that runs. *)
Suspend(p) ==
    /\ At(p, "suspending")
    /\ \E stopped \in BOOLEAN :
        /\ stopped \/ (node[p].polling /\ budget > 0)
        /\ Guard("polling_stopped", stopped)
        /\ node' = [node EXCEPT ![p].phase = "releasing", ![p].polling = @ /\ ~stopped]
        /\ budget' = IF stopped THEN budget ELSE budget - 1
    /\ UNCHANGED <<registry, state, guard, recovery, owner>>

SuspendFails(p) ==
    /\ At(p, "suspending")
    /\ node[p].polling /\ budget > 0
    /\ ~Guard("polling_stopped", FALSE)
    /\ Go(p, "blocked")
    /\ budget' = budget - 1
    /\ UNCHANGED <<registry, state, guard, recovery, owner>>

(* It lets its own lease go; that cannot work on the very registry that is damaged, and does not have to. *)
Release(p) ==
    /\ At(p, "releasing")
    /\ Passable /\ registry.kind # "damaged"
    /\ Permit("lease_let_go", TRUE)
    /\ Go(p, "entering")
    /\ registry' = IF registry.owner = p THEN [Missing EXCEPT !.kind = "valid"] ELSE registry
    /\ UNCHANGED <<state, guard, recovery, owner, budget>>

ReleaseFails(p) ==
    /\ At(p, "releasing")
    /\ Seen \cap {"guard", "registry"} # {}
    /\ Permit("release_failure_is_logged", TRUE)
    /\ Go(p, "entering")
    /\ UNCHANGED <<registry, state, guard, recovery, owner, budget>>
-----------------------------------------------------------------------------
(* One recoverer at a time; the death of one does not keep out the next. *)
Enter(p) ==
    /\ At(p, "entering")
    /\ Guard("recovery_is_free", recovery = "nobody") \/ Permit("recoverer_is_dead", recovery = "abandoned")
    /\ Go(p, "inspecting")
    /\ recovery' = p
    /\ UNCHANGED <<registry, state, guard, owner, budget>>

(* The look under the recovery guard: what it saw of the ownership guard stays true until it acts on it. *)
Inspect(p) ==
    /\ At(p, "inspecting")
    /\ Unowned
    /\ node' = [node EXCEPT ![p].phase = "clearing", ![p].seen = Seen \cap {"guard"}]
    /\ UNCHANGED <<registry, state, guard, recovery, owner, budget>>

InspectBlocked(p) ==
    /\ At(p, "inspecting")
    /\ ~Unowned
    /\ Go(p, "blocked")
    /\ recovery' = Left(p, recovery)
    /\ UNCHANGED <<registry, state, guard, owner, budget>>

(* The rename takes whatever stands there by now. *)
MoveGuard(p) ==
    /\ At(p, "clearing")
    /\ Guard("guard_was_damaged", "guard" \in node[p].seen)
    /\ guard # "nobody"
    /\ guard' = "nobody"
    /\ node' = [node EXCEPT ![p].seen = {}]
    /\ UNCHANGED <<registry, state, recovery, owner, budget>>

Secure(p) ==
    /\ At(p, "clearing")
    /\ Guard("guard_is_free", guard = "nobody") \/ Permit("holder_is_dead", guard = "abandoned")
    /\ node' = [node EXCEPT ![p].phase = "confirming", ![p].seen = {}]
    /\ guard' = p
    /\ UNCHANGED <<registry, state, recovery, owner, budget>>

(* What came to stand there after the look keeps it out: the operator connects again, and the next look sees it. *)
SecureFails(p) ==
    /\ At(p, "clearing")
    /\ guard = "damaged"
    /\ Guard("nothing_to_clear", "guard" \notin node[p].seen)
    /\ node' = [node EXCEPT ![p].phase = "blocked", ![p].seen = {}]
    /\ recovery' = Left(p, recovery)
    /\ UNCHANGED <<registry, state, guard, owner, budget>>

(* The look under the ownership guard: an owner may have come since.  The own pid is passed over as the guard's
   holder, and only there: an entry of this process is an owner like any other. *)
StillUnowned(p) ==
    /\ Permit("own_guard_is_no_owner", guard = p)
    /\ \/ Guard("no_foreign_owner", ~Alive \/ Mine(p)) /\ Guard("no_own_owner", ~Mine(p))
       \/ Permit("lease_is_over", ~registry.fresh)

Confirm(p) ==
    /\ At(p, "confirming")
    /\ StillUnowned(p)
    /\ node' = [node EXCEPT ![p].phase = "moving", ![p].seen = Seen \cap {"registry", "state"}]
    /\ UNCHANGED <<registry, state, guard, recovery, owner, budget>>

ConfirmBlocked(p) ==
    /\ At(p, "confirming")
    /\ ~StillUnowned(p)
    /\ Go(p, "blocked")
    /\ guard' = Left(p, guard) /\ recovery' = Left(p, recovery)
    /\ UNCHANGED <<registry, state, owner, budget>>

MoveRegistry(p) ==
    /\ At(p, "moving")
    /\ Guard("registry_was_damaged", "registry" \in node[p].seen)
    /\ registry.kind # "missing"
    /\ registry' = Missing
    /\ node' = [node EXCEPT ![p].seen = @ \ {"registry"}]
    /\ UNCHANGED <<state, guard, recovery, owner, budget>>

MoveState(p) ==
    /\ At(p, "moving")
    /\ Guard("state_was_damaged", "state" \in node[p].seen)
    /\ state # "missing"
    /\ state' = "missing"
    /\ node' = [node EXCEPT ![p].seen = @ \ {"state"}]
    /\ UNCHANGED <<registry, guard, recovery, owner, budget>>

(* An error on the way (a rename that fails, a guard nobody leaves) ends it; what was moved stays moved. *)
Fail(p) ==
    /\ node[p].phase \in {"entering", "clearing", "moving"}
    /\ budget > 0
    /\ node' = [node EXCEPT ![p].phase = "blocked", ![p].seen = {}]
    /\ guard' = Left(p, guard) /\ recovery' = Left(p, recovery)
    /\ budget' = budget - 1
    /\ UNCHANGED <<registry, state, owner>>

(* Both guards are left, and the start is tried once more. *)
Finish(p) ==
    /\ At(p, "moving")
    /\ Guard("all_is_moved", node[p].seen = {})
    /\ node' = [node EXCEPT ![p].phase = "starting", ![p].again = TRUE, ![p].seen = {}]
    /\ guard' = Left(p, guard) /\ recovery' = Left(p, recovery)
    /\ UNCHANGED <<registry, state, owner, budget>>
=============================================================================
