---------------------------- MODULE RequestLedger ---------------------------
(* Can a repeated request be executed twice, a refused one be remembered    *)
(* for ever, an acknowledgement outlive what it acknowledged, or a full     *)
(* ledger stop heartbeats?                                                  *)
(*                                                                          *)
(* A request has a key.  Whoever was not answered repeats it under the same *)
(* key (at least once); the server remembers keys, so that it is executed   *)
(* at most once.  It remembers so many and no more: what has been settled   *)
(* for longest gives way, what is under way does not.                       *)
(* (bus.md a, LEDGER; holes L13, L14, L20.)                                 *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Clients,    \* strings: connections, a request at a time; two of them may carry the same request
    Registers,  \* strings: keys of registrations, whose acknowledgement says that something stands
    Beats,      \* strings: keys of heartbeats; twice is as good as once
    Others,     \* strings: keys of all other requests
    Limit,      \* how many keys the ledger may remember
    Budget,     \* how many faults and operator commands may happen
    Off         \* the guards and permits taken away; {} is the protocol

Keys == Registers \cup Beats \cup Others
Bodies == {1, 2}                                \* 2: another request that comes under the same key
Outcomes == {"done", "refused", "failed", "unknown"}
Reasons == {"collision", "overloaded", "over", "stopped"}

ASSUME "none" \notin Keys                       \* a client asks for none

VARIABLES
    ledger,     \* ledger[k]: the machine of k
    settled,    \* the keys that are kept, in the order in which they were settled
    evicted,    \* the keys that gave way
    running,    \* the keys whose recorded execution is under way
    effects,    \* effects[k]: how often k has had its effect; two is as bad as three, heartbeats are not counted
    stands,     \* the keys whose ground is current: the registration that came of it, or that it was executed under
    client,     \* client[c]: what it asks, and what it was told last
    budget      \* faults and commands left

vars == <<ledger, settled, evicted, running, effects, stands, client, budget>>

Guard(name, holds)  == name \in Off \/ holds
Permit(name, holds) == name \notin Off /\ holds
Spend == budget > 0 /\ budget' = budget - 1

Absent == [phase |-> "absent", body |-> 0, outcome |-> "none"]
Stopped == [Absent EXCEPT !.phase = "stopped"]
Idle == [phase |-> "idle", key |-> "none", body |-> 0, answer |-> "none"]
Told(answer) == [Idle EXCEPT !.answer = answer]

At(c, phase) == client[c].phase = phase         \* idle, asked, joined, alone
Key(c) == client[c].key
Of(c) == ledger[Key(c)]
Entry(c, phase) == At(c, "asked") /\ Of(c).phase = phase
Answer(c, answer) == client' = [client EXCEPT ![c] = Told(answer)]
Await(c, phase) == client' = [client EXCEPT ![c].phase = phase]

(* All who wait for the execution of k are told. *)
AnswerAll(k, answer) ==
    client' = [c \in Clients |-> IF At(c, "joined") /\ Key(c) = k THEN Told(answer) ELSE client[c]]

Held == Cardinality({k \in Keys : ledger[k].phase \in {"executing", "kept"}})
-----------------------------------------------------------------------------
(* Fresh: nobody repeats a request whose key has been evicted.  That is assumed: the ledger has to be larger than     *)
(* what is settled while somebody repeats.  For the rest, whether a request was sent before nobody knows: an answer   *)
(* may have been lost, and a sender that has lost patience asks again beside its first attempt.                       *)
Ask(c) ==
    /\ At(c, "idle")
    /\ \E k \in Keys, body \in Bodies :
        /\ Guard("repeats_end_in_time", k \notin evicted)
        /\ client' = [client EXCEPT ![c] = [phase |-> "asked", key |-> k, body |-> body, answer |-> "none"]]
        /\ IF body = 1 THEN UNCHANGED budget ELSE Spend
    /\ UNCHANGED <<ledger, settled, evicted, running, effects, stands>>

(* What cannot be remembered does not begin. *)
HasRoom == Guard("has_room", Held < Limit \/ settled # <<>>)
Makes == Held >= Limit /\ settled # <<>>
Oldest == IF Makes THEN {Head(settled)} ELSE {}
InTime == Guard("repeats_end_in_time", \A d \in Clients : At(d, "asked") => Key(d) \notin Oldest)

Execute(c) ==
    /\ Entry(c, "absent") /\ HasRoom /\ InTime
    /\ ledger' = [k \in Keys |-> IF k = Key(c) THEN [phase |-> "executing", body |-> client[c].body, outcome |-> "none"]
                                 ELSE IF k \in Oldest THEN Absent ELSE ledger[k]]
    /\ settled' = IF Makes THEN Tail(settled) ELSE settled
    /\ evicted' = evicted \cup Oldest
    /\ running' = running \cup {Key(c)}
    /\ Await(c, "joined")
    /\ UNCHANGED <<effects, stands, budget>>

(* A leader with much to do is no dead leader: a heartbeat is executed for the one who asked, without a record. *)
Passes(c) == Guard("is_heartbeat", Key(c) \in Beats) /\ Permit("heartbeats_pass", TRUE)

ExecuteAlone(c) ==
    /\ Entry(c, "absent") /\ ~HasRoom /\ Passes(c)
    /\ Await(c, "alone")
    /\ UNCHANGED <<ledger, settled, evicted, running, effects, stands, budget>>

Overload(c) ==
    /\ Entry(c, "absent") /\ ~HasRoom /\ ~Passes(c)
    /\ Answer(c, "overloaded")
    /\ UNCHANGED <<ledger, settled, evicted, running, effects, stands, budget>>

(* A key is the key of one request. *)
SameBody(c) == Guard("same_body", Of(c).body = client[c].body)

Join(c) ==
    /\ Entry(c, "executing") /\ SameBody(c)
    /\ Await(c, "joined")
    /\ UNCHANGED <<ledger, settled, evicted, running, effects, stands, budget>>

Collide(c) ==
    /\ Entry(c, "executing") \/ Entry(c, "kept")
    /\ ~SameBody(c)
    /\ Answer(c, "collision")
    /\ UNCHANGED <<ledger, settled, evicted, running, effects, stands, budget>>

(* Late is nothing: an acknowledgement is worth as much as what it acknowledged, or was asked for under. *)
StillStands(c) == Guard("still_stands", Of(c).outcome # "done" \/ Key(c) \in stands)

Replay(c) ==
    /\ Entry(c, "kept") /\ SameBody(c) /\ StillStands(c)
    /\ Answer(c, Of(c).outcome)
    /\ UNCHANGED <<ledger, settled, evicted, running, effects, stands, budget>>

SayOver(c) ==
    /\ Entry(c, "kept") /\ SameBody(c) /\ ~StillStands(c)
    /\ Answer(c, "over")
    /\ UNCHANGED <<ledger, settled, evicted, running, effects, stands, budget>>

SayStopped(c) ==
    /\ Entry(c, "stopped")
    /\ Answer(c, "stopped")
    /\ UNCHANGED <<ledger, settled, evicted, running, effects, stands, budget>>
-----------------------------------------------------------------------------
(* What an execution of k that comes to this has done; of an unknown outcome nobody can tell. *)
Does(k, outcome) ==
    \E done \in BOOLEAN :
        /\ outcome = "done" => done
        /\ outcome \in {"refused", "failed"} => ~done
        /\ effects' = IF done /\ k \notin Beats /\ effects[k] < 2 THEN [effects EXCEPT ![k] = @ + 1] ELSE effects
        /\ stands' = IF ~done THEN stands ELSE IF k \in Registers THEN {k} ELSE stands \cup {k}
Costs(outcome) == IF outcome \in {"done", "refused"} THEN UNCHANGED budget ELSE Spend

(* Unknown: forgotten is only what certainly had no effect.  Late is nothing: and that is forgotten. *)
Forgotten(outcome) == Permit("failure_is_forgotten", TRUE) /\ Guard("without_effect", outcome = "failed")

Settle(k) ==
    /\ ledger[k].phase = "executing" /\ k \in running
    /\ \E outcome \in Outcomes :
        /\ Does(k, outcome) /\ Costs(outcome)
        /\ AnswerAll(k, outcome)
        /\ IF Forgotten(outcome)
           THEN ledger' = [ledger EXCEPT ![k] = Absent] /\ UNCHANGED settled
           ELSE ledger' = [ledger EXCEPT ![k].phase = "kept", ![k].outcome = outcome] /\ settled' = Append(settled, k)
    /\ running' = running \ {k}
    /\ UNCHANGED evicted

SettleAlone(c) ==
    /\ At(c, "alone")
    /\ \E outcome \in Outcomes : Does(Key(c), outcome) /\ Costs(outcome) /\ Answer(c, outcome)
    /\ UNCHANGED <<ledger, settled, evicted, running>>

(* The server has stopped meanwhile: it may have had its effect, and nobody is told. *)
SettleLate(k) ==
    /\ ledger[k].phase = "stopped" /\ k \in running
    /\ running' = running \ {k}
    /\ \E outcome \in {"done", "refused"} : Does(k, outcome)
    /\ UNCHANGED <<ledger, settled, evicted, client, budget>>
-----------------------------------------------------------------------------
(* Unknown: that a client has lost its patience or its connection says nothing of what it asked for.  That has begun, *)
(* and others may wait for it.                                                                                        *)
Leave(c) ==
    /\ client[c].phase \in {"joined", "alone"} /\ Spend
    /\ client' = [client EXCEPT ![c] = Idle]
    /\ \E cut \in BOOLEAN :
        /\ cut => At(c, "joined") /\ Key(c) \in running /\ Guard("others_wait", FALSE)
        /\ running' = IF cut THEN running \ {Key(c)} ELSE running
    /\ UNCHANGED <<ledger, settled, evicted, effects, stands>>

(* A registration ends: it was silent for too long, another has replaced it, it has disconnected, or its leader leads *)
(* no more.                                                                                                           *)
Prune ==
    /\ stands # {} /\ Spend
    /\ stands' = {}
    /\ UNCHANGED <<ledger, settled, evicted, running, effects, client>>

(* The server stops.  The next one has another secret, so that no key of this one is a key there. *)
Stop ==
    /\ \E k \in Keys : ledger[k].phase # "stopped"
    /\ Spend
    /\ ledger' = [k \in Keys |-> Stopped]
    /\ settled' = <<>>
    /\ client' = [c \in Clients |-> IF At(c, "joined") THEN Told("stopped") ELSE client[c]]
    /\ UNCHANGED <<evicted, running, effects, stands>>
-----------------------------------------------------------------------------
Init ==
    /\ ledger = [k \in Keys |-> Absent]
    /\ settled = <<>> /\ evicted = {} /\ running = {} /\ stands = {}
    /\ effects = [k \in Keys |-> 0]
    /\ client = [c \in Clients |-> Idle]
    /\ budget = Budget

Next ==
    \/ \E c \in Clients : Ask(c)
    \/ \E c \in Clients : Execute(c)
    \/ \E c \in Clients : ExecuteAlone(c)
    \/ \E c \in Clients : Overload(c)
    \/ \E c \in Clients : Join(c)
    \/ \E c \in Clients : Collide(c)
    \/ \E c \in Clients : Replay(c)
    \/ \E c \in Clients : SayOver(c)
    \/ \E c \in Clients : SayStopped(c)
    \/ \E k \in Keys : Settle(k)
    \/ \E c \in Clients : SettleAlone(c)
    \/ \E k \in Keys : SettleLate(k)
    \/ \E c \in Clients : Leave(c)
    \/ Prune
    \/ Stop

(* Fairness: a request is looked at (strong, since nobody repeats for ever and holds up others that need room), and   *)
(* an execution that goes on ends.                                                                                    *)
Fairness ==
    /\ \A c \in Clients :
        /\ SF_vars(Execute(c) \/ ExecuteAlone(c) \/ Overload(c) \/ Join(c) \/ Collide(c) \/ Replay(c) \/ SayOver(c)
                   \/ SayStopped(c))
        /\ WF_vars(SettleAlone(c))
    /\ \A k \in Keys : WF_vars(Settle(k))

Spec == Init /\ [][Next]_vars /\ Fairness
-----------------------------------------------------------------------------
TypeOK ==
    /\ ledger \in [Keys -> [phase : {"absent", "executing", "kept", "stopped"}, body : {0} \cup Bodies,
                            outcome : {"none"} \cup Outcomes]]
    /\ settled \in Seq(Keys) /\ evicted \subseteq Keys /\ running \subseteq Keys /\ stands \subseteq Keys
    /\ effects \in [Keys -> 0..2]
    /\ client \in [Clients -> [phase : {"idle", "asked", "joined", "alone"}, key : Keys \cup {"none"},
                               body : {0} \cup Bodies, answer : {"none"} \cup Outcomes \cup Reasons]]
    /\ budget \in 0..Budget

(* At most once: no request has its effect twice, however often it is repeated. *)
ExecutedOnce == \A k \in Keys : effects[k] <= 1

(* The ledger remembers so many requests and no more. *)
WithinBound == Held <= Limit

(* A full ledger says nothing to a heartbeat: it would look like the death of the leader. *)
HeartbeatsPass_L20 == [][\A c \in Clients : Key(c) \in Beats => client'[c].answer # "overloaded"]_vars

Hears(c, answers) == ~At(c, "idle") /\ client'[c].phase = "idle" /\ client'[c].answer \in answers

(* Nobody is told what another request has come to. *)
SameBodyOnly ==
    [][\A c \in Clients : Hears(c, Outcomes) /\ ~At(c, "alone") => client[c].body = Of(c).body]_vars

(* A failure that may be retried is told to those who waited for it, and to nobody who asks anew. *)
FailureIsForgotten_L13 == [][\A c \in Clients : Hears(c, {"failed"}) => ~At(c, "asked")]_vars

(* Nobody is told that a registration stands which does not, nor what was done under one that is over. *)
AckStillStands_L14 == [][\A c \in Clients : Hears(c, {"done"}) => Key(c) \in stands']_vars

(* Whoever asks is answered, or has gone. *)
EventuallyAnswered == \A c \in Clients : ~At(c, "idle") ~> At(c, "idle")
=============================================================================
