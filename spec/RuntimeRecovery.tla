-------------------------- MODULE RuntimeRecovery --------------------------
(* Who may move damaged files away after an unclean shutdown?               *)
(*                                                                          *)
(* A start that throws looks once for damage, and heals it under two guards *)
(* (one among recoverers, one among everybody who writes the registry), with*)
(* a look under each.  Proof: nothing is moved while a live owner holds the *)
(* lease.  (locks.md 8; S36 and V13 of PollingOwnership's row in DESIGN 9.) *)
(*                                                                          *)
(* Damage to a guard AND to every trace of the one inside it is left out:   *)
(* then nothing can tell a live holder from a dead one, and no law helps.   *)
EXTENDS RecoverySteps
-----------------------------------------------------------------------------
(* The owner: it writes the registry inside the ownership guard only, and cannot write into a damaged one. *)
Begin ==
    /\ owner \in {"out", "owning"}
    /\ Passable
    /\ owner = "out" => ~(Alive /\ registry.fresh)
    /\ guard' = "o"
    /\ owner' = IF owner = "out" THEN "acquiring" ELSE "refreshing"
    /\ UNCHANGED <<registry, state, recovery, node, budget>>

Commit ==
    /\ owner \in {"acquiring", "refreshing"}
    /\ LET writes == registry.kind # "damaged" /\ (owner = "acquiring" \/ registry.owner = "o")
       IN  /\ registry' = IF writes THEN Entry("o") ELSE registry
           /\ owner' = IF writes THEN "owning" ELSE "out"
    /\ guard' = Left("o", guard)
    /\ UNCHANGED <<state, recovery, node, budget>>

Withdraw ==
    /\ owner = "owning"
    /\ Passable
    /\ owner' = "out" /\ guard' = "nobody"
    /\ registry' = IF registry.owner = "o" THEN [Missing EXCEPT !.kind = "valid"] ELSE registry
    /\ UNCHANGED <<state, recovery, node, budget>>
-----------------------------------------------------------------------------
(* A process dies wherever it is, with every runtime in it. *)
Crash(p) ==
    /\ node[p] # Idle /\ budget > 0
    /\ LET dead == {p} \cup IF p \in Housemates THEN {"o"} ELSE {}
       IN  /\ registry' = IF registry.owner \in dead THEN Entry("ghost") ELSE registry
           /\ guard' = IF guard \in dead THEN "abandoned" ELSE guard
           /\ recovery' = IF recovery = p THEN "abandoned" ELSE recovery
           /\ owner' = IF "o" \in dead THEN "out" ELSE owner
    /\ node' = [node EXCEPT ![p] = Idle]
    /\ budget' = budget - 1
    /\ UNCHANGED state

(* The dead owner's pid goes to a process that lives for ever; the heartbeat ends all the same. *)
ReusePid ==
    /\ registry.owner = "ghost" /\ budget > 0
    /\ registry' = [registry EXCEPT !.owner = "stranger"]
    /\ budget' = budget - 1
    /\ UNCHANGED <<state, guard, recovery, owner, node>>

Expire ==
    /\ registry.owner = "stranger" /\ registry.fresh
    /\ registry' = [registry EXCEPT !.fresh = FALSE]
    /\ UNCHANGED <<state, guard, recovery, owner, node, budget>>

DamageRegistry ==
    /\ registry.kind # "damaged" /\ owner \notin {"acquiring", "refreshing"} /\ budget > 0
    /\ registry' = Torn
    /\ budget' = budget - 1
    /\ UNCHANGED <<state, guard, recovery, owner, node>>

DamageState ==
    /\ state # "damaged" /\ budget > 0
    /\ state' = "damaged"
    /\ budget' = budget - 1
    /\ UNCHANGED <<registry, guard, recovery, owner, node>>

(* Litter at a free guard, or in the guard of an owner that has its entry. *)
DamageGuard ==
    /\ guard = "nobody" \/ (owner = "refreshing" /\ guard = "o" /\ registry.owner = "o")
    /\ budget > 0
    /\ guard' = "damaged"
    /\ budget' = budget - 1
    /\ UNCHANGED <<registry, state, recovery, owner, node>>
-----------------------------------------------------------------------------
(* After an unclean shutdown: any file may be damaged, a guard abandoned, an entry left. *)
Init ==
    /\ registry \in {Missing, Torn, Entry("ghost")}
    /\ state \in {"good", "damaged"}
    /\ guard \in {"nobody", "abandoned", "damaged"}
    /\ recovery = "nobody"
    /\ owner = "out"
    /\ node = [p \in Recoverers |-> Idle]
    /\ budget = Budget

Next ==
    \/ \E p \in Recoverers : Connect(p)
    \/ \E p \in Recoverers : Start(p)
    \/ \E p \in Recoverers : StartRefused(p)
    \/ \E p \in Recoverers : StartFails(p)
    \/ \E p \in Recoverers : GiveUp(p)
    \/ \E p \in Recoverers : Look(p)
    \/ \E p \in Recoverers : LookBlocked(p)
    \/ \E p \in Recoverers : Suspend(p)
    \/ \E p \in Recoverers : SuspendFails(p)
    \/ \E p \in Recoverers : Release(p)
    \/ \E p \in Recoverers : ReleaseFails(p)
    \/ \E p \in Recoverers : Enter(p)
    \/ \E p \in Recoverers : Inspect(p)
    \/ \E p \in Recoverers : InspectBlocked(p)
    \/ \E p \in Recoverers : MoveGuard(p)
    \/ \E p \in Recoverers : Secure(p)
    \/ \E p \in Recoverers : SecureFails(p)
    \/ \E p \in Recoverers : Confirm(p)
    \/ \E p \in Recoverers : ConfirmBlocked(p)
    \/ \E p \in Recoverers : MoveRegistry(p)
    \/ \E p \in Recoverers : MoveState(p)
    \/ \E p \in Recoverers : Fail(p)
    \/ \E p \in Recoverers : Finish(p)
    \/ \E p \in Recoverers : Crash(p)
    \/ Begin \/ Commit \/ Withdraw
    \/ ReusePid \/ Expire
    \/ DamageRegistry \/ DamageState \/ DamageGuard

(* Fairness: operators try again, what was begun goes on, holders leave or die, and time passes.  Strong where somebody
   else may be inside a guard again and again: each leaves it, and the door is tried again. *)
Fairness ==
    /\ \A p \in Recoverers :
        /\ WF_vars(Connect(p))
        /\ SF_vars(Start(p) \/ StartRefused(p) \/ StartFails(p) \/ GiveUp(p))
        /\ WF_vars(Look(p) \/ LookBlocked(p))
        /\ WF_vars(Suspend(p) \/ SuspendFails(p))
        /\ SF_vars(Release(p) \/ ReleaseFails(p))
        /\ SF_vars(Enter(p))
        /\ WF_vars(Inspect(p) \/ InspectBlocked(p))
        /\ SF_vars(MoveGuard(p) \/ Secure(p) \/ SecureFails(p))
        /\ WF_vars(Confirm(p) \/ ConfirmBlocked(p))
        /\ WF_vars(MoveRegistry(p) \/ MoveState(p) \/ Finish(p))
    /\ WF_vars(Commit)
    /\ WF_vars(Expire)

Spec == Init /\ [][Next]_vars /\ Fairness
-----------------------------------------------------------------------------
TypeOK ==
    /\ registry.kind \in {"valid", "damaged", "missing"}
    /\ registry.owner \in Recoverers \cup {"o", "none", "ghost", "stranger"}
    /\ registry.fresh \in BOOLEAN
    /\ state \in {"good", "damaged", "missing"}
    /\ guard \in Recoverers \cup {"o", "nobody", "abandoned", "damaged"}
    /\ recovery \in Recoverers \cup {"nobody", "abandoned"}
    /\ owner \in {"out", "acquiring", "owning", "refreshing"}
    /\ node \in [Recoverers -> [phase : {"idle", "starting", "looking", "suspending", "releasing", "entering",
                                         "inspecting", "clearing", "confirming", "moving", "connected", "blocked"},
                                polling : BOOLEAN, again : BOOLEAN, seen : SUBSET {"guard", "registry", "state"}]]
    /\ budget \in 0..Budget

MovedRegistry == registry.kind # "missing" /\ registry'.kind = "missing"
MovedState == state # "missing" /\ state' = "missing"
MovedGuard == guard = "damaged" /\ guard' # "damaged"

(* Nothing is moved away from under an owner that lives and holds the lease. *)
QuarantineOnlyUnowned_S36 == [][MovedRegistry \/ MovedState \/ MovedGuard => ~Owned]_vars

(* What was healed is not moved again: only damage goes into quarantine. *)
QuarantineOnce_S36 ==
    [][(MovedRegistry => registry.kind = "damaged") /\ (MovedState => state = "damaged")]_vars

(* Nobody is robbed of the guard it is inside: one writer of the registry at a time. *)
OneMutator_S36 ==
    /\ \A p \in Recoverers : node[p].phase \in {"confirming", "moving"} => guard = p
    /\ owner = "acquiring" => guard = "o"
    /\ owner = "refreshing" => guard \in {"o", "damaged"}

(* Who resets the files has no poller left that the reset would cut loose from its lease. *)
MoverIsQuiet_S36 ==
    \A p \in Recoverers : node[p].phase \in {"clearing", "confirming", "moving"} => ~node[p].polling

(* Damage is healed without a person at the files, unless an owner lives. *)
EventuallyHealed_V13 == Seen # {} ~> (Seen = {} \/ Owned)

(* Connect heals once and then says so: each operator gets an answer. *)
Answered(p) == node[p].phase \in {"idle", "connected", "blocked"}
ConnectAnswers_V13 == \A p \in Recoverers : ~Answered(p) ~> Answered(p)
=============================================================================
