--------------------------- MODULE FencedCommit ----------------------------
(* Can a command take effect for a tenure that is over?                     *)
(*                                                                          *)
(* A committer has the epoch that its caller was told.  It takes a lock     *)
(* that its command will inherit, enters the guard of the registry, looks,  *)
(* runs the command if the epoch is that of a live lease, and leaves when   *)
(* nothing of the command is left: nobody can replace the owner while it    *)
(* runs.  A committer may be killed anywhere: the kernel takes its command  *)
(* with it, but not what that has started; which keeps the lock, and so     *)
(* holds up later commands, though no owner.                                *)
(* (DESIGN 2, Fence; 9, LeaderElection; locks.md 7.2, S24.)                 *)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Committers, \* strings: processes that run one commit after another
    Budget,     \* how many faults and operator commands may happen
    Off         \* the guards and permits taken away; {} is the protocol

ASSUME Committers \cap {"nobody", "other", "abandoned"} = {}   \* guard tells them apart

VARIABLES
    entry,      \* what the registry says of the key: [epoch, state]; the newest epoch also when nobody owns
    readable,   \* FALSE: what stands there cannot be read or parsed
    told,       \* somebody was told that nobody leads, and acts on it
    guard,      \* who is inside: a committer, other (an owner; it may be stopped there), nobody, abandoned
    node,       \* node[p]: the machine of p
    command,    \* command[p]: what p has started, [state, epoch]; deaf: it ignores SIGTERM
    stray,      \* something that a command had started has outlived the committer
    budget      \* faults and commands left

vars == <<entry, readable, told, guard, node, command, stray, budget>>

Guard(name, holds)  == name \in Off \/ holds
Permit(name, holds) == name \notin Off /\ holds
Spend == budget > 0 /\ budget' = budget - 1

Idle == [phase |-> "idle", token |-> 0, outcome |-> "none"]
None == [state |-> "none", epoch |-> 0]

At(p, phase) == node[p].phase = phase
Move(p, phase) == node' = [node EXCEPT ![p].phase = phase]
Alive(p) == command[p].state # "none"
Gone(p) == [command EXCEPT ![p] = None]
Free == guard \in {"nobody", "abandoned"}      \* that its holder has died is proven: FileTransaction
Left(p) == IF guard = p THEN "nobody" ELSE guard
-----------------------------------------------------------------------------
(* What a read of the registry says of an epoch. *)
Read == Guard("strict_read", readable)
Current(token) == Guard("epoch_is_current", readable /\ entry.state # "none" /\ entry.epoch = token)
Live == Guard("lease_is_live", readable /\ entry.state = "fresh")

Asked(p, phase, token) == At(p, "idle") /\ node' = [node EXCEPT ![p] = [Idle EXCEPT !.phase = phase, !.token = token]]

(* Somebody asks for a commit under an epoch that it was told once.  A plain read comes first: for a tenure that is   *)
(* over, and beside a registry that is damaged, nothing is opened, and nobody has to wait.                            *)
Ask(p) ==
    /\ \E token \in 1..entry.epoch : Asked(p, "waiting", token) /\ Read /\ Current(token) /\ Live
    /\ UNCHANGED <<entry, readable, told, guard, command, stray, budget>>

AskStale(p) ==
    /\ \E token \in 1..entry.epoch : Asked(p, "stale", token) /\ Read /\ ~(Current(token) /\ Live)
    /\ UNCHANGED <<entry, readable, told, guard, command, stray, budget>>

AskInVain(p) ==
    /\ \E token \in 1..entry.epoch : Asked(p, "failed", token)
    /\ ~Read
    /\ UNCHANGED <<entry, readable, told, guard, command, stray, budget>>

(* Fence: what a command has started has inherited the lock.  A committer has it from here to its end. *)
LockIsFree(p) ==
    /\ \A q \in Committers \ {p} : node[q].phase \notin {"entering", "running", "ending"}
    /\ Guard("lock_is_inherited", ~stray /\ \A q \in Committers : ~Alive(q))

(* Fence: nothing of an earlier command is left.  Before the guard, so that nobody waits for a stray inside it. *)
Lock(p) ==
    /\ At(p, "waiting")
    /\ Guard("previous_command_is_over", LockIsFree(p))
    /\ Move(p, "entering")
    /\ UNCHANGED <<entry, readable, told, guard, command, stray, budget>>

(* The lock or the guard stayed taken for too long. *)
GiveUp(p) ==
    /\ At(p, "waiting") \/ (At(p, "entering") /\ guard # p)
    /\ Permit("patience_ends", TRUE)
    /\ Move(p, "failed")
    /\ UNCHANGED <<entry, readable, told, guard, command, stray, budget>>

Enter(p) ==
    /\ At(p, "entering") /\ Free
    /\ guard' = p
    /\ UNCHANGED <<entry, readable, told, node, command, stray, budget>>
-----------------------------------------------------------------------------
(* The read inside the guard decides. *)
Looks(p) == At(p, "entering") /\ Guard("inside", guard = p)

Run(p) ==
    /\ Looks(p) /\ Read /\ Current(node[p].token) /\ Live
    /\ Move(p, "running")
    /\ command' = [command EXCEPT ![p] = [state |-> "running", epoch |-> node[p].token]]
    /\ UNCHANGED <<entry, readable, told, guard, stray, budget>>

FindStale(p) ==
    /\ Looks(p) /\ Read /\ ~(Current(node[p].token) /\ Live)
    /\ Move(p, "stale")
    /\ guard' = Left(p)
    /\ UNCHANGED <<entry, readable, told, command, stray, budget>>

(* What cannot be read says neither that the epoch is current nor that it is not. *)
FindNothing(p) ==
    /\ Looks(p) /\ ~Read
    /\ Move(p, "failed")
    /\ guard' = Left(p)
    /\ UNCHANGED <<entry, readable, told, command, stray, budget>>
-----------------------------------------------------------------------------
Ending(p, outcome) == node' = [node EXCEPT ![p].phase = "ending", ![p].outcome = outcome]

(* The command ends by itself; what it has started may go on. *)
End(p) ==
    /\ At(p, "running")
    /\ command' \in {command, Gone(p)}
    /\ Ending(p, "ended")
    /\ UNCHANGED <<entry, readable, told, guard, stray, budget>>

(* Its time is up: others wait. *)
TimeUp(p) ==
    /\ At(p, "running")
    /\ Permit("bounded", TRUE)
    /\ Ending(p, "timed_out")
    /\ UNCHANGED <<entry, readable, told, guard, command, stray, budget>>

(* Somebody asks the committer to end. *)
Interrupt(p) ==
    /\ At(p, "running") /\ Spend
    /\ Ending(p, "interrupted")
    /\ UNCHANGED <<entry, readable, told, guard, command, stray>>

Cancel(p) ==
    /\ node[p].phase \in {"waiting", "entering"} /\ Spend
    /\ Move(p, "failed")
    /\ guard' = Left(p)
    /\ UNCHANGED <<entry, readable, told, command, stray>>

(* What is left of the command was sent SIGTERM, and obeys. *)
Obey(p) ==
    /\ At(p, "ending") /\ command[p].state = "running"
    /\ command' = Gone(p)
    /\ UNCHANGED <<entry, readable, told, guard, node, stray, budget>>

(* The grace is over: SIGKILL. *)
Kill(p) ==
    /\ At(p, "ending") /\ Alive(p)
    /\ Permit("kill_follows", TRUE)
    /\ command' = Gone(p)
    /\ UNCHANGED <<entry, readable, told, guard, node, stray, budget>>

(* Fence: the guard is left when nothing of the command is left. *)
Leave(p) ==
    /\ At(p, "ending")
    /\ Guard("ended_before_leaving", ~Alive(p))
    /\ Move(p, "done")
    /\ guard' = Left(p)
    /\ UNCHANGED <<entry, readable, told, command, stray, budget>>

(* The caller has its answer, and the next one comes. *)
Forget(p) ==
    /\ node[p].phase \in {"done", "stale", "failed"}
    /\ node' = [node EXCEPT ![p] = Idle]
    /\ UNCHANGED <<entry, readable, told, guard, command, stray, budget>>
-----------------------------------------------------------------------------
Harden(p) ==
    /\ command[p].state = "running" /\ At(p, "running") /\ Spend
    /\ command' = [command EXCEPT ![p].state = "deaf"]
    /\ UNCHANGED <<entry, readable, told, guard, node, stray>>

(* Fence: the kernel kills a command with its committer.  What the command has started may go on. *)
Crash(p) ==
    /\ node[p].phase \in {"waiting", "entering", "running", "ending"} /\ Spend
    /\ \E lives, leaves \in BOOLEAN :
        /\ lives => Alive(p) /\ Guard("dies_with_committer", FALSE)
        /\ leaves => Alive(p) /\ ~lives
        /\ command' = IF lives THEN command ELSE Gone(p)
        /\ stray' = (stray \/ leaves)
    /\ node' = [node EXCEPT ![p] = Idle]
    /\ guard' = IF guard = p THEN "abandoned" ELSE guard
    /\ UNCHANGED <<entry, readable, told>>

(* It may never. *)
StrayEnds ==
    /\ stray
    /\ stray' = FALSE
    /\ UNCHANGED <<entry, readable, told, guard, node, command, budget>>
-----------------------------------------------------------------------------
(* Owners write the registry inside the guard, one at a time. *)
Come ==
    /\ Free
    /\ guard' = "other"
    /\ UNCHANGED <<entry, readable, told, node, command, stray, budget>>

Go ==
    /\ guard = "other"
    /\ guard' = "nobody"
    /\ UNCHANGED <<entry, readable, told, node, command, stray, budget>>

Writes(after) ==
    /\ guard = "other" /\ readable
    /\ entry' = after /\ told' = (told /\ after.state = "none")
    /\ guard' = "nobody"

(* A new tenure, after the old one or by force. *)
Take ==
    /\ Writes([epoch |-> entry.epoch + 1, state |-> "fresh"]) /\ Spend
    /\ UNCHANGED <<readable, node, command, stray>>

(* A lease that has passed can be renewed as long as nobody has replaced it. *)
Renew ==
    /\ entry.state = "passed" /\ Writes([entry EXCEPT !.state = "fresh"])
    /\ UNCHANGED <<readable, node, command, stray, budget>>

Release ==
    /\ entry.state \in {"fresh", "passed"} /\ Writes([entry EXCEPT !.state = "none"])
    /\ UNCHANGED <<readable, node, command, stray, budget>>

Pass ==
    /\ entry.state = "fresh"
    /\ entry' = [entry EXCEPT !.state = "passed"]
    /\ UNCHANGED <<readable, told, guard, node, command, stray, budget>>

Die ==
    /\ entry.state \in {"fresh", "passed"} /\ Spend
    /\ entry' = [entry EXCEPT !.state = "dead"]
    /\ UNCHANGED <<readable, told, guard, node, command, stray>>

(* Somebody looks from outside: nobody leads. *)
Tell ==
    /\ entry.state # "fresh" /\ ~told
    /\ told' = TRUE
    /\ UNCHANGED <<entry, readable, guard, node, command, stray, budget>>

Tear ==
    /\ readable /\ Spend
    /\ readable' = FALSE
    /\ UNCHANGED <<entry, told, guard, node, command, stray>>

Mend ==
    /\ ~readable
    /\ readable' = TRUE
    /\ UNCHANGED <<entry, told, guard, node, command, stray, budget>>
-----------------------------------------------------------------------------
Init ==
    /\ entry = [epoch |-> 1, state |-> "fresh"]
    /\ readable = TRUE /\ told = FALSE
    /\ guard = "nobody"
    /\ node = [p \in Committers |-> Idle]
    /\ command = [p \in Committers |-> None] /\ stray = FALSE
    /\ budget = Budget

Next ==
    \/ \E p \in Committers : Ask(p)
    \/ \E p \in Committers : AskStale(p)
    \/ \E p \in Committers : AskInVain(p)
    \/ \E p \in Committers : Lock(p)
    \/ \E p \in Committers : GiveUp(p)
    \/ \E p \in Committers : Enter(p)
    \/ \E p \in Committers : Run(p)
    \/ \E p \in Committers : FindStale(p)
    \/ \E p \in Committers : FindNothing(p)
    \/ \E p \in Committers : End(p)
    \/ \E p \in Committers : TimeUp(p)
    \/ \E p \in Committers : Interrupt(p)
    \/ \E p \in Committers : Cancel(p)
    \/ \E p \in Committers : Obey(p)
    \/ \E p \in Committers : Kill(p)
    \/ \E p \in Committers : Leave(p)
    \/ \E p \in Committers : Forget(p)
    \/ \E p \in Committers : Harden(p)
    \/ \E p \in Committers : Crash(p)
    \/ StrayEnds
    \/ Come \/ Go \/ Take \/ Renew \/ Release
    \/ Pass \/ Die \/ Tell \/ Tear \/ Mend

(* Fairness: a committer goes on, and time passes; no command ends by itself, no stray ends, no owner has to leave. *)
Fairness ==
    \A p \in Committers :
        /\ WF_vars(Lock(p) \/ GiveUp(p))
        /\ WF_vars(Run(p) \/ FindStale(p) \/ FindNothing(p))
        /\ WF_vars(TimeUp(p))
        /\ WF_vars(Kill(p))
        /\ WF_vars(Leave(p))

Spec == Init /\ [][Next]_vars /\ Fairness
-----------------------------------------------------------------------------
TypeOK ==
    /\ entry.epoch \in 1..(1 + Budget) /\ entry.state \in {"fresh", "passed", "dead", "none"}
    /\ readable \in BOOLEAN /\ told \in BOOLEAN /\ stray \in BOOLEAN
    /\ guard \in Committers \cup {"nobody", "other", "abandoned"}
    /\ node \in [Committers -> [phase : {"idle", "waiting", "entering", "running", "ending", "done", "stale", "failed"},
                                token : 0..(1 + Budget), outcome : {"none", "ended", "timed_out", "interrupted"}]]
    /\ command \in [Committers -> [state : {"none", "running", "deaf"}, epoch : 0..(1 + Budget)]]
    /\ budget \in 0..Budget

(* While a command runs, its tenure owns: it was not replaced, and has not let go. *)
NoStaleCommand_S24 ==
    \A p \in Committers : Alive(p) => entry.state # "none" /\ entry.epoch = command[p].epoch

(* No two commands, nor a command and what is left of another, run at once: their effects do not interleave. *)
OneCommandAtATime == Cardinality({p \in Committers : Alive(p)}) + (IF stray THEN 1 ELSE 0) <= 1

(* Once somebody was told that a tenure is over, nothing begins in its name. *)
NothingAfterTheEnd_K11 == [][\A p \in Committers : ~Alive(p) /\ command'[p].state # "none" => ~told]_vars

(* A caller hears that its tenure is over only when it is: it gives up its work for that. *)
StaleIsProven ==
    [][\A p \in Committers : ~At(p, "stale") /\ node'[p].phase = "stale" =>
           ~(entry.state = "fresh" /\ entry.epoch = node[p].token)]_vars

(* No command keeps the guard for ever, whatever it does. *)
OthersGetIn == \A p \in Committers : (guard = p) ~> (guard # p)

(* Every commit gets its answer. *)
Open(p) == node[p].phase \in {"waiting", "entering", "running", "ending"}
CommitAnswers == \A p \in Committers : Open(p) ~> ~Open(p)
=============================================================================
