----------------------------- MODULE Succession -----------------------------
(* Which follower takes over, and never over a living leader?               *)
(*                                                                          *)
(* Followers of one leader L, which hangs, wakes up, dies, reloads or lets  *)
(* go, and then of each other.  Registration is an abstract call here that  *)
(* may hang with its leader (FollowerRegistration has the rest), election   *)
(* the exact compare-and-set of LeaderElection, and the start of a          *)
(* promotion may fail (PollingOwnership has its steps).                     *)
(* (locks.md 12; S31, S32, V4-V8, V14; I5, I7, I8; K3, K4.)                 *)
EXTENDS SuccessionRoles
-----------------------------------------------------------------------------
NoEntry == [owner |-> "none", passed |-> FALSE]
Nobody == [q \in Followers |-> FALSE]

(* What p leads, or has just won, is given up. *)
LetGo(p, left) ==
    IF entry.owner = p
    THEN /\ entry' = IF left THEN entry ELSE NoEntry
         /\ serving' = FALSE /\ route' = Nobody
    ELSE UNCHANGED <<entry, serving, route>>

(* A start fails after the election was won, and is rolled back: or the entry cannot be removed, and stays (left). *)
StartFails(p, left) ==
    /\ At(p, {"starting"}) /\ Spend("fail") /\ (left => "left" \in Causes)
    /\ Ends(p) /\ LetGo(p, left)
    /\ UNCHANGED <<late, proc, readable>>
(* The work of a leader fails. *)
WorkFails(p) ==
    /\ At(p, {"leading"}) /\ Spend("fail")
    /\ Ends(p) /\ LetGo(p, FALSE)
    /\ UNCHANGED <<late, proc, readable>>

(* The session of p ends, another begins, or one is replaced.  A registration ends with its session. *)
ChangeSession(p, session) ==
    /\ Up(p) /\ node[p].phase # "ended" /\ session # node[p].session
    /\ IF node[p].session = 0 THEN "session" \in Causes /\ UNCHANGED budget ELSE Spend("session")
    /\ session = 2 => node[p].session = 1 /\ node[p].phase = "registering"
    /\ IF node[p].phase = "registering"
       THEN IF Guard("session_is_live", session # 0)
            THEN /\ node' = [node EXCEPT ![p].session = session] /\ UNCHANGED timer
                 /\ call' = [call EXCEPT ![p] = [kind |-> "register", to |-> node[p].leader, live |-> session # 0]]
            ELSE /\ node' = [node EXCEPT ![p].phase = "waiting", ![p].session = 0]
                 /\ call' = [call EXCEPT ![p] = NoCall] /\ timer' = [timer EXCEPT ![p] = "armed"]
       ELSE node' = [node EXCEPT ![p].session = session] /\ UNCHANGED <<call, timer>>
    /\ Given(p, IF node[p].phase = "registering" THEN node[p].leader ELSE "none")
    /\ UNCHANGED <<record, route, proc, entry, serving, readable>>

(* A process is no more: what is left of it is its entry, unless it said goodbye. *)
Vanish(p) ==
    /\ node' = [node EXCEPT ![p] = [phase |-> "ended", leader |-> "none", endpoint |-> 0, roster |-> {},
                                    session |-> 0, deferred |-> FALSE, bound |-> "none"]]
    /\ NoMore(p) /\ late' = [late EXCEPT ![p] = "none"] /\ timer' = [timer EXCEPT ![p] = "off"]
    /\ record' = [record EXCEPT ![p] = "follower"]
    /\ proc' = [proc EXCEPT ![p] = "dead"]
Stop(p) ==
    /\ Up(p) /\ Spend("stop")
    /\ Vanish(p) /\ UNCHANGED readable
    /\ IF entry.owner = p THEN entry' = NoEntry /\ serving' = FALSE /\ route' = Nobody
       ELSE UNCHANGED <<entry, serving>> /\ route' = [route EXCEPT ![p] = FALSE]
Die(x) ==
    /\ proc[x] # "dead" /\ Spend("die") /\ UNCHANGED <<entry, readable>>
    /\ IF x = "L" THEN UNCHANGED <<node, call, late, timer, record>> /\ proc' = [proc EXCEPT !["L"] = "dead"]
       ELSE Vanish(x)
    /\ IF entry.owner = x THEN serving' = FALSE /\ route' = Nobody
       ELSE UNCHANGED serving /\ route' = [q \in Followers |-> route[q] /\ q # x]

Hang(x) ==
    /\ Up(x) /\ Spend("hang") /\ proc' = [proc EXCEPT ![x] = "hung"]
    /\ UNCHANGED <<node, call, late, timer, record, route, entry, serving, readable>>
(* L, of whatever make, refreshes a lease that has passed while nobody has replaced it; where somebody has, it does     *)
(* nothing any more.  One of ours that finds its lease passed or replaced leads no more, from its first step on.        *)
Wake(x) ==
    /\ proc[x] = "hung" /\ UNCHANGED <<late, budget, readable>>
    /\ IF x = "L"
       THEN /\ proc' = [proc EXCEPT !["L"] = IF entry.owner = "L" THEN "up" ELSE "dead"]
            /\ entry' = IF entry.owner = "L" THEN [entry EXCEPT !.passed = FALSE] ELSE entry
            /\ UNCHANGED <<node, call, timer, record, route, serving>>
       ELSE /\ proc' = [proc EXCEPT ![x] = "up"] /\ UNCHANGED entry
            /\ IF ~Owns(x) /\ (node[x].phase \in {"starting", "leading"} \/ call[x].kind = "won")
               THEN Ends(x) /\ IF entry.owner = x THEN serving' = FALSE /\ route' = Nobody ELSE UNCHANGED <<serving, route>>
               ELSE UNCHANGED <<node, call, timer, record, serving, route>>
(* A lease that nobody refreshes passes: its process hangs, or could not release it. *)
Expire ==
    /\ entry.owner # "none" /\ ~entry.passed
    /\ LET x == entry.owner IN
       \/ proc[x] = "hung"
       \/ x # "L" /\ Up(x) /\ call[x].kind # "won" /\ node[x].phase \notin {"starting", "leading"}
    /\ entry' = [entry EXCEPT !.passed = TRUE]
    /\ UNCHANGED <<node, call, late, timer, record, route, proc, serving, readable, budget>>

(* A person disconnects L. *)
Release ==
    /\ entry.owner = "L" /\ Up("L") /\ Spend("release")
    /\ entry' = NoEntry /\ serving' = FALSE /\ route' = Nobody /\ proc' = [proc EXCEPT !["L"] = "dead"]
    /\ UNCHANGED <<node, call, late, timer, record, readable>>
(* A leader's endpoint and routes go, by a reload or by a stranger's hand; its lease does not. *)
Reload ==
    /\ serving /\ Spend("reload") /\ serving' = FALSE /\ route' = Nobody
    /\ UNCHANGED <<node, call, late, timer, record, proc, entry, readable>>
Heal ==
    /\ ~serving /\ Leading /\ Up(entry.owner) /\ serving' = TRUE
    /\ UNCHANGED <<node, call, late, timer, record, route, proc, entry, readable, budget>>
Tear ==
    /\ readable /\ Spend("tear") /\ readable' = FALSE
    /\ UNCHANGED <<node, call, late, timer, record, route, proc, entry, serving>>
Mend ==
    /\ ~readable /\ readable' = TRUE
    /\ UNCHANGED <<node, call, late, timer, record, route, proc, entry, serving, budget>>
-----------------------------------------------------------------------------
Init ==
    /\ node = [p \in Followers |->
                 [phase |-> IF p \in Joining THEN "idle" ELSE "following",
                  leader |-> IF p \in Joining THEN "none" ELSE "L", endpoint |-> IF p \in Joining THEN 0 ELSE 1,
                  roster |-> IF p \in Joining THEN {} ELSE Slotted,
                  session |-> 1, deferred |-> FALSE, bound |-> "own"]]
    /\ call = [p \in Followers |-> NoCall] /\ late = [p \in Followers |-> "none"]
    /\ timer = [p \in Followers |-> "off"] /\ record = [p \in Followers |-> "follower"]
    /\ route = [p \in Followers |-> p \notin Joining]
    /\ proc = [x \in Followers \cup {"L"} |-> "up"]
    /\ entry = [owner |-> "L", passed |-> FALSE] /\ serving = TRUE /\ readable = TRUE /\ budget = Budget

Next ==
    \/ \E p \in Followers : Join(p)
    \/ \E p \in Followers : Lose(p)
    \/ \E p \in Followers : Hiccup(p)
    \/ \E p \in Followers : See(p)
    \/ \E p \in Followers : Hear(p)
    \/ \E p \in Followers : HearNothing(p)
    \/ \E p \in Followers : Tick(p)
    \/ \E p \in Followers : TimeUp(p)
    \/ \E p \in Followers : Answered(p)
    \/ \E p \in Followers : NotAnswered(p)
    \/ \E p \in Followers : Refused(p)
    \/ \E p \in Followers : AnsweredLate(p)
    \/ \E p \in Followers : Win(p)
    \/ \E p \in Followers : Denied(p)
    \/ \E p \in Followers : ElectFails(p)
    \/ \E p \in Followers : Prepare(p)
    \/ \E p \in Followers : Lead(p)
    \/ \E p \in Followers, left \in BOOLEAN : StartFails(p, left)
    \/ \E p \in Followers : WorkFails(p)
    \/ \E p \in Followers, session \in 0..2 : ChangeSession(p, session)
    \/ \E p \in Followers : Stop(p)
    \/ \E x \in Followers \cup {"L"} : Die(x)
    \/ \E x \in Followers \cup {"L"} : Hang(x)
    \/ \E x \in Followers \cup {"L"} : Wake(x)
    \/ Expire
    \/ Release
    \/ Reload
    \/ Heal
    \/ Tear
    \/ Mend

(* Who is up looks, waits, asks and answers; leases pass; endpoints and files are mended.  Nobody has to die, to wake   *)
(* up, to come back or to serve another session.                                                                       *)
Fairness ==
    /\ WF_vars(Expire) /\ WF_vars(Heal) /\ WF_vars(Mend)
    /\ \A p \in Followers :
          /\ WF_vars(Join(p)) /\ WF_vars(Lose(p)) /\ WF_vars(See(p)) /\ WF_vars(Tick(p)) /\ WF_vars(TimeUp(p))
          /\ WF_vars(Answered(p)) /\ WF_vars(NotAnswered(p)) /\ WF_vars(Win(p)) /\ WF_vars(Denied(p))
          /\ WF_vars(Prepare(p)) /\ WF_vars(Lead(p))

Spec == Init /\ [][Next]_vars /\ Fairness
-----------------------------------------------------------------------------
Phases == {"idle", "registering", "following", "grace", "deferring", "electing", "starting", "leading", "waiting", "ended"}
Owners == Followers \cup {"L", "none"}
TypeOK ==
    /\ node \in [Followers -> [phase : Phases, leader : Owners, endpoint : 0..2, roster : {{}, Slotted}, session : 0..2,
                               deferred : BOOLEAN, bound : {"own", "new", "none"}]]
    /\ call \in [Followers -> [kind : {"none", "register", "elect", "won"}, to : Owners, live : BOOLEAN]]
    /\ late \in [Followers -> Owners] /\ timer \in [Followers -> {"off", "armed", "due"}]
    /\ record \in [Followers -> {"follower", "leader"}] /\ route \in [Followers -> BOOLEAN]
    /\ proc \in [Followers \cup {"L"} -> {"up", "hung", "dead"}]
    /\ entry \in [owner : Owners, passed : BOOLEAN] /\ serving \in BOOLEAN /\ readable \in BOOLEAN /\ budget \in 0..Budget

Wins(p) == call[p].kind # "won" /\ call'[p].kind = "won"
(* A lease that is live is nobody's to take: an unreachable endpoint is no reason (I7). *)
NoPromotionOverLive_S31 == [][\A p \in Followers : Wins(p) => entry.owner = "none" \/ Over]_vars
(* Replaced is the very entry that was observed, or nothing where nobody was. *)
NoPromotionOverLive_I8 == [][\A p \in Followers : Wins(p) => entry.owner = call[p].to]_vars
NoPromotionOverLive == NoPromotionOverLive_S31 /\ NoPromotionOverLive_I8

(* No two processes lead, or start to. *)
Leads(x) == Up(x) /\ (x = "L" \/ node[x].phase \in {"starting", "leading"})
OneWinner == \A x, y \in Followers \cup {"L"} : x # y => ~(Leads(x) /\ Leads(y))
(* Those who have heard the roster do not all stand at once: who did not wait is alone. *)
AtOnce(p) == node[p].phase = "electing" /\ ~node[p].deferred /\ node[p].roster # {}
OneWinner_A56 == \A p, q \in Followers : p # q => ~(AtOnce(p) /\ AtOnce(q))

(* The record of a thread becomes a leader's under the lease alone: a loser has kept its own. *)
BindingMovesAfterWinning_S32 ==
    [][\A p \in Followers : record[p] = "follower" /\ record'[p] = "leader" => Owns(p)]_vars
BindingMovesAfterWinning == BindingMovesAfterWinning_S32

(* Who begins to follow is registered with the leader that it follows. *)
LateIsInert_I5 ==
    [][\A p \in Followers : node[p].phase # "following" /\ node'[p].phase = "following" => route'[p]]_vars
(* A registration that works is given up for a cause: not for a look. *)
LateIsInert_Healthy ==
    [][\A p \in Followers : At(p, {"following"}) /\ Healthy(p) /\ node'[p].phase # "following" => budget' < budget]_vars
(* The same leader is not asked again at the same endpoint before a grace has gone by. *)
LateIsInert_Pause ==
    [][\A p \in Followers :
          (/\ node[p].phase \in {"grace", "waiting"} /\ node'[p].phase = "registering"
           /\ node'[p].leader = node[p].leader /\ node'[p].endpoint = node[p].endpoint) => timer[p] = "due"]_vars

Able(p) == Up(p) /\ node[p].phase # "ended" /\ node[p].session # 0
Some == \E p \in Followers : Able(p)
Led(x) == entry.owner = x /\ ~Over /\ Up(x) /\ Leading
IsLed == \E x \in Followers \cup {"L"} : Led(x)
With(p, x) == /\ node[p].phase = "following" /\ node[p].leader = x /\ route[p]
              /\ node[p].bound = "own" /\ record[p] = "follower"
(* Where nobody leads, one of those who can will. *)
EventuallyOneLeader_V4 == (Some /\ ~IsLed) ~> (IsLed \/ ~Some)
(* A leader that hangs is replaced, although the calls of its followers hang with it (K3). *)
Hangs(x) == entry.owner = x /\ proc[x] = "hung"
EventuallyOneLeader_V5 == \A x \in Followers \cup {"L"} : (Some /\ Hangs(x)) ~> (~Hangs(x) \/ ~Some)
(* Smaller slots, whether they are there or not, hold nobody up for longer than a grace. *)
EventuallyOneLeader_V6 ==
    \A p \in Followers : (Able(p) /\ node[p].phase = "deferring") ~> (node[p].phase # "deferring" \/ ~Able(p))
(* Everybody else comes to be registered with the winner, with the thread it had. *)
EventuallyOneLeader_V7 ==
    \A p, x \in Followers : p # x => ((Able(p) /\ Led(x)) ~> (With(p, x) \/ ~Able(p) \/ ~Led(x)))
(* So with a leader that lost its endpoint and kept its lease. *)
EventuallyOneLeader_V8 ==
    \A p \in Followers : (Able(p) /\ Led("L")) ~> (With(p, "L") \/ ~Able(p) \/ ~Led("L"))
(* An election ends, and a promotion that failed is retried or another leads (K4). *)
EventuallyOneLeader_V14 ==
    \A p \in Followers : (Able(p) /\ node[p].phase \in {"electing", "starting"}) ~> (IsLed \/ ~Able(p))
EventuallyOneLeader ==
    /\ EventuallyOneLeader_V4 /\ EventuallyOneLeader_V5 /\ EventuallyOneLeader_V6 /\ EventuallyOneLeader_V7
    /\ EventuallyOneLeader_V8 /\ EventuallyOneLeader_V14
=============================================================================
