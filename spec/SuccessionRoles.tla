-------------------------- MODULE SuccessionRoles --------------------------
(* One process's side of succession: it follows, re-registers, waits,       *)
(* defers, stands for election, starts to lead; and what answers its calls. *)
(* Succession has the world around it and what holds.                       *)
EXTENDS Naturals

CONSTANTS
    Followers, \* a subset of {"a", "b", "z"}: a and b have the slots A and B, z has none
    Joining,   \* those of them that have not joined yet
    Causes,    \* which faults and commands there are; strings
    Budget,    \* how many of them together
    Off        \* the guards and permits taken away; {} is the protocol

ASSUME Followers \subseteq {"a", "b", "z"} /\ Joining \subseteq Followers

VARIABLES
    node,      \* node[p]: the machine of p: phase, and what it remembers (bound: whose thread it carries)
    call,      \* call[p]: the call that p waits for: kind, to (a leader, or who was observed), live: for a session
    late,      \* late[p]: the leader of a registration that was given up, and whose answer is still to come
    timer,     \* timer[p]: off, armed, due
    record,    \* record[p]: the profile under which the record of p's thread stands: follower or leader
    route,     \* route[p]: the owner of the entry has p in its registry
    proc,      \* proc[x]: up, hung, dead
    entry,     \* the registry's entry: owner (it stands for the exact entry), passed: not refreshed for too long
    serving,   \* the owner's endpoint is there
    readable,  \* the registry can be read
    budget

vars == <<node, call, late, timer, record, route, proc, entry, serving, readable, budget>>
outside == <<late, route, proc, entry, serving, readable, budget>>

Guard(name, holds)  == name \in Off \/ holds
Permit(name, holds) == name \notin Off /\ holds
Spend(cause) == cause \in Causes /\ budget > 0 /\ budget' = budget - 1

NoCall == [kind |-> "none", to |-> "none", live |-> TRUE]
Slotted == Followers \ {"z"}
(* Whose slots are smaller than that of p.  Who has lost its binding has none. *)
Before(p) == IF node[p].bound = "none" THEN Slotted
             ELSE {q \in Slotted : <<q, p>> \in {<<"a", "b">>, <<"a", "z">>, <<"b", "z">>}}

Up(p) == proc[p] = "up"
At(p, phases) == Up(p) /\ node[p].phase \in phases
Over == entry.owner # "none" /\ (entry.passed \/ proc[entry.owner] = "dead")
Owns(p) == entry.owner = p /\ ~entry.passed
(* The owner has begun to lead. *)
Leading == entry.owner # "none" /\ (entry.owner = "L" \/ (entry.owner \in Followers /\ node[entry.owner].phase = "leading"))
(* A heartbeat of p would be answered with ok. *)
Healthy(p) == entry.owner = node[p].leader /\ Leading /\ Up(entry.owner) /\ serving /\ route[p]
-----------------------------------------------------------------------------
(* A look at the registry. *)
Sight(p) ==
    IF ~readable THEN "unknown"
    ELSE IF entry.owner = "none" THEN "inactive"
    ELSE IF Over THEN "stale"
    ELSE IF entry.owner = p THEN "here" ELSE "elsewhere"
Seen == IF readable THEN entry.owner ELSE "none"
(* Until a winner has published its endpoint, that of one before it that hangs is found there: it accepts, and says      *)
(* nothing.                                                                                                             *)
Stalls == \E x \in Followers \cup {"L"} : x # entry.owner /\ proc[x] = "hung"
Published == IF ~readable THEN 0 ELSE IF serving THEN 1 ELSE IF Stalls THEN 2 ELSE 0

Session(p) == Guard("session_is_live", node[p].session # 0)
Lives(p) == Guard("leader_lives", Sight(p) = "elsewhere")
Gone(p) == Guard("leader_is_gone", Sight(p) \in {"stale", "inactive"})
First(p) == Guard("nobody_before_me", node[p].deferred \/ Before(p) \cap node[p].roster = {})
Another(p) == Guard("another_leader", Seen # node[p].leader)
New(p) == Guard("something_new", Seen # node[p].leader \/ (Published # 0 /\ Published # node[p].endpoint))

(* Ways to move a process.  Whoever leaves a phase has no timer any more. *)
To(p, phase) == node' = [node EXCEPT ![p].phase = phase]
Wait(p, phase) ==
    /\ To(p, phase) /\ timer' = [timer EXCEPT ![p] = "armed"] /\ call' = [call EXCEPT ![p] = NoCall]
Begins(p, kind, to) ==
    /\ call' = [call EXCEPT ![p] = [kind |-> kind, to |-> to, live |-> node[p].session # 0]]
    /\ timer' = [timer EXCEPT ![p] = "off"]

(* A registration that is given up may still be answered; by whom it is asked again, its older answer is nothing. *)
Given(p, asks) ==
    LET left == IF call[p].kind = "register" /\ "late" \in Causes THEN call[p].to ELSE late[p]
    IN  late' = [late EXCEPT ![p] = IF left = asks THEN "none" ELSE left]

Register(p) ==
    /\ node' = [node EXCEPT ![p].phase = "registering", ![p].leader = Seen, ![p].endpoint = Published]
    /\ Begins(p, "register", Seen) /\ Given(p, Seen)
Elect(p, deferred) ==
    /\ node' = [node EXCEPT ![p].phase = "electing", ![p].deferred = deferred]
    /\ Begins(p, "elect", Seen) /\ Given(p, "none")

(* What a look leads to, in the order of the machine's rows. *)
Decide(p, news, otherwise) ==
    IF Session(p) /\ Lives(p) /\ news THEN Register(p)
    ELSE IF Session(p) /\ Gone(p) /\ First(p) THEN Elect(p, node[p].deferred)
    ELSE IF Session(p) /\ Gone(p) THEN Wait(p, "deferring") /\ Given(p, "none")
    ELSE otherwise

Unmoved == UNCHANGED <<record, route, proc, entry, serving, readable, budget>>
-----------------------------------------------------------------------------
Join(p) ==
    /\ At(p, {"idle"})
    /\ IF Session(p) /\ Lives(p) THEN Register(p)
       ELSE IF Session(p) /\ Gone(p) THEN Elect(p, node[p].deferred)
       ELSE Wait(p, "waiting") /\ late' = late
    /\ Unmoved

(* A heartbeat was refused or not answered, or the leader's death is proven. *)
Loses(p) == At(p, {"following"}) /\ Decide(p, TRUE, Wait(p, "waiting") /\ late' = late)
Lose(p) == Loses(p) /\ ~Healthy(p) /\ Unmoved
Hiccup(p) == Loses(p) /\ Healthy(p) /\ Spend("hiccup") /\ UNCHANGED <<record, route, proc, entry, serving, readable>>

(* A look, at any time.  It outranks a call that does not answer. *)
Looks(p) ==
    CASE node[p].phase = "following" -> Decide(p, Another(p), FALSE)
      [] node[p].phase = "registering" -> Permit("look_outranks_call", TRUE) /\ Decide(p, New(p), FALSE)
      [] node[p].phase = "grace" -> Decide(p, New(p), FALSE)
      [] node[p].phase = "deferring" -> Session(p) /\ Lives(p) /\ Register(p)
      [] node[p].phase = "waiting" -> Session(p) /\ Lives(p) /\ New(p) /\ Register(p)
      [] OTHER -> FALSE
See(p) == Up(p) /\ Looks(p) /\ <<node, call, late>>' # <<node, call, late>> /\ Unmoved

(* A heartbeat was answered, with the roster. *)
Hear(p) ==
    /\ At(p, {"following"}) /\ Healthy(p) /\ node[p].roster # Slotted
    /\ node' = [node EXCEPT ![p].roster = Slotted]
    /\ UNCHANGED <<call, timer, record, outside>>
(* The registration was cleared before anybody asked it for the binding. *)
HearNothing(p) ==
    /\ At(p, {"following"}) /\ Guard("binding_is_known", FALSE) /\ node[p].bound # "none"
    /\ node' = [node EXCEPT ![p].bound = "none"]
    /\ UNCHANGED <<call, timer, record, outside>>

(* One grace goes by. *)
Tick(p) ==
    /\ Up(p) /\ timer[p] = "armed" /\ timer' = [timer EXCEPT ![p] = "due"]
    /\ UNCHANGED <<node, call, record, outside>>
GraceIsOver(p) ==
    IF node[p].phase = "deferring"
    THEN IF Session(p) /\ Lives(p) THEN Register(p)
         ELSE IF Session(p) /\ Gone(p) /\ Permit("one_grace_is_enough", TRUE) THEN Elect(p, TRUE)
         ELSE Wait(p, "deferring") /\ late' = late
    ELSE Decide(p, TRUE,
             IF Permit("tries_again", TRUE) THEN Wait(p, "waiting") /\ late' = late
             ELSE timer' = [timer EXCEPT ![p] = "off"] /\ UNCHANGED <<node, call>> /\ late' = late)
TimeUp(p) == Up(p) /\ timer[p] = "due" /\ GraceIsOver(p) /\ Unmoved
-----------------------------------------------------------------------------
Asks(p, kinds) == Up(p) /\ call[p].kind \in kinds /\ call[p].live
NoMore(p) == call' = [call EXCEPT ![p] = NoCall]
Follow(p) ==
    /\ node' = [node EXCEPT ![p].phase = "following", ![p].deferred = FALSE,
                            ![p].bound = IF @ = "own" THEN "own" ELSE "new"]
    /\ timer' = [timer EXCEPT ![p] = "off"] /\ NoMore(p)

(* The call of p has gone to the endpoint of one before. *)
Astray(p) == node[p].endpoint = 2
(* The leader takes p, and gives it what it carries. *)
Answered(p) ==
    /\ Asks(p, {"register"}) /\ call[p].to = entry.owner /\ Leading /\ Up(entry.owner) /\ serving /\ ~Astray(p)
    /\ Follow(p) /\ route' = [route EXCEPT ![p] = TRUE]
    /\ UNCHANGED <<late, record, proc, entry, serving, readable, budget>>

CallFails(p) ==
    IF Permit("failure_is_no_end", TRUE) THEN Wait(p, "grace") ELSE NoMore(p) /\ UNCHANGED <<node, timer>>
(* Nobody answers; but a process that hangs accepts the call, and says nothing. *)
Unreachable(x) ==
    IF x = "none" THEN TRUE ELSE proc[x] # "hung" /\ ~(x = entry.owner /\ Leading /\ Up(x) /\ serving)
NotAnswered(p) ==
    /\ Asks(p, {"register"}) /\ IF Astray(p) THEN ~Stalls ELSE Unreachable(call[p].to)
    /\ CallFails(p) /\ UNCHANGED <<record, outside>>
Refused(p) ==
    /\ Asks(p, {"register"}) /\ ~Unreachable(call[p].to) /\ Up(call[p].to) /\ ~Astray(p) /\ Spend("refuse")
    /\ CallFails(p)
    /\ UNCHANGED <<late, record, route, proc, entry, serving, readable>>

(* The late word of a leader that was given up. *)
AnsweredLate(p) ==
    /\ Up(p) /\ late[p] # "none" /\ late' = [late EXCEPT ![p] = "none"]
    /\ IF node[p].phase = "registering" /\ Guard("asked_of_this_leader", late[p] = node[p].leader)
       THEN Follow(p) ELSE UNCHANGED <<node, call, timer>>
    /\ Unmoved

(* The exact compare-and-set of LeaderElection. *)
Exact(p) ==
    /\ Guard("still_the_one_seen", entry.owner = call[p].to)
    /\ Guard("still_over", entry.owner = "none" \/ Over)
Stands(p) == Asks(p, {"elect"}) /\ readable
Win(p) ==
    /\ Stands(p) /\ Exact(p)
    /\ entry' = [owner |-> p, passed |-> FALSE] /\ serving' = FALSE /\ route' = [q \in Followers |-> FALSE]
    /\ call' = [call EXCEPT ![p] = [NoCall EXCEPT !.kind = "won"]]
    /\ UNCHANGED <<node, late, timer, record, proc, readable, budget>>
Comes(p, permitted) ==
    IF permitted THEN Wait(p, "waiting") ELSE NoMore(p) /\ UNCHANGED <<node, timer>>
Denied(p) ==
    /\ Stands(p) /\ ~Exact(p)
    /\ Comes(p, node[p].phase = "electing" /\ Permit("loser_comes_back", TRUE))
    /\ UNCHANGED <<record, outside>>
ElectFails(p) ==
    /\ Asks(p, {"elect"}) /\ At(p, {"electing"}) /\ Spend("fail")
    /\ Comes(p, Permit("failure_is_retried", TRUE))
    /\ UNCHANGED <<late, record, route, proc, entry, serving, readable>>

(* The start goes on to what only the owner may do: the binding moves. *)
Prepare(p) ==
    /\ At(p, {"electing"}) /\ Guard("won_first", Owns(p))
    /\ To(p, "starting") /\ record' = [record EXCEPT ![p] = "leader"]
    /\ call' = [call EXCEPT ![p] = IF @.kind = "won" THEN NoCall ELSE @]
    /\ UNCHANGED <<timer, outside>>
Lead(p) ==
    /\ At(p, {"starting"}) /\ Owns(p)
    /\ To(p, "leading") /\ serving' = TRUE
    /\ UNCHANGED <<call, late, timer, record, route, proc, entry, readable, budget>>

(* The leadership of p ends, before it has begun or after: all is rolled back. *)
Ends(p) ==
    IF node[p].phase = "leading" \/ Permit("failure_is_retried", TRUE)
    THEN Wait(p, "waiting") /\ record' = [record EXCEPT ![p] = "follower"]
    ELSE NoMore(p) /\ UNCHANGED <<node, timer, record>>
=============================================================================
