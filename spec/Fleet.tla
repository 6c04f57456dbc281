-------------------------------- MODULE Fleet --------------------------------
(* After the leader dies, does exactly one live process lead, and is every  *)
(* other registered with it?                                                *)
(*                                                                          *)
(* The composition: succession's roles as they are (SuccessionRoles, with   *)
(* all their guards), the exact election with its epochs, and between them  *)
(* registration as its two machines do it: a follower's link, a leader's    *)
(* table of routes, requests that are heard, provisioned, answered, given   *)
(* up.  What can be taken away here are the seams: what the driver of the   *)
(* three machines has to pass on.  (bus.md g V2; locks.md V4, V7, V14.)     *)
EXTENDS Naturals

CONSTANTS Followers, Causes, Budget, Off

VARIABLES
    node, call, timer, record, proc, entry, serving, budget,  \* as in SuccessionRoles; call.kind asked: it is under way
    link,   \* link[p]: the follower's half: phase, gen, lead, gone (a request that was given up and has not returned)
    ask,    \* ask[p]: the register request on its way: to, gen, said: none, heard, ok, no
    table,  \* table[x]: the leader's half: epoch (0: closed), routes, changes (who, gen)
    epoch   \* of the entry that was written last

S == INSTANCE SuccessionRoles WITH
        Joining <- {}, Off <- {}, readable <- TRUE,
        late <- [p \in Followers |-> "none"], route <- [p \in Followers |-> FALSE]

vars == <<node, call, timer, record, proc, entry, serving, budget, link, ask, table, epoch>>
registration == <<link, ask, table, epoch>>
succession == <<node, call, timer, record>>
world == <<proc, entry, serving, budget>>

Guard(name, holds)  == name \in Off \/ holds
Permit(name, holds) == name \notin Off /\ holds
Spend(cause) == cause \in Causes /\ budget > 0 /\ budget' = budget - 1

Everybody == Followers \cup {"L"}
Idle == [phase |-> "idle", gen |-> 0, lead |-> "none", gone |-> 0]
Nothing == [to |-> "none", gen |-> 0, said |-> "none"]
Closed == [epoch |-> 0, routes |-> {}, changes |-> {}]
Up(x) == proc[x] = "up"
Pair(p, gen) == [who |-> p, gen |-> gen]
Least(used) == CHOOSE n \in 1..6 : n \notin used /\ \A m \in 1..6 : m < n => m \in used
Fresh(p) == Least({link[p].gen, link[p].gone, ask[p].gen}
                  \cup UNION {{r.gen : r \in {r \in table[x].routes \cup table[x].changes : r.who = p}} : x \in Everybody})

(* Fence: a leader acts under the epoch that stands in the registry now, and not under the one that it remembers. *)
Holds(x) == Guard("epoch_is_read", entry.owner = x /\ epoch = table[x].epoch)
-----------------------------------------------------------------------------
(* Late is nothing: a registration that succession gives up is given up by the follower's half as well. *)
Left(p) ==
    IF link[p].phase = "idle" \/ ~Permit("leave_is_told", node[p].phase \in {"following", "registering"}) THEN link
    ELSE [link EXCEPT ![p] = [Idle EXCEPT !.gone = IF link[p].phase = "registering" THEN link[p].gen ELSE 0]]

(* Succession's own steps. *)
See(p) ==
    /\ Up(p) /\ S!Looks(p) /\ link' = Left(p)
    /\ <<node, call>>' # <<node, call>> /\ UNCHANGED <<record, world, ask, table, epoch>>
Tick(p) ==
    /\ Up(p) /\ timer[p] = "armed" /\ timer' = [timer EXCEPT ![p] = "due"]
    /\ UNCHANGED <<node, call, record, world, registration>>
TimeUp(p) == Up(p) /\ timer[p] = "due" /\ S!GraceIsOver(p) /\ UNCHANGED <<record, world, registration>>

(* The exact election; its winner has an epoch of its own. *)
Win(p) ==
    /\ S!Stands(p) /\ S!Exact(p)
    /\ entry' = [owner |-> p, passed |-> FALSE] /\ serving' = FALSE /\ epoch' = epoch + 1
    /\ call' = [call EXCEPT ![p] = [S!NoCall EXCEPT !.kind = "won"]]
    /\ UNCHANGED <<node, timer, record, proc, budget, link, ask, table>>
Denied(p) ==
    /\ S!Stands(p) /\ ~S!Exact(p) /\ S!Wait(p, "waiting")
    /\ UNCHANGED <<record, world, registration>>
Prepare(p) ==
    /\ Up(p) /\ node[p].phase = "electing" /\ S!Owns(p)
    /\ S!To(p, "starting") /\ record' = [record EXCEPT ![p] = "leader"] /\ call' = [call EXCEPT ![p] = S!NoCall]
    /\ UNCHANGED <<timer, world, registration>>
(* Proof: who leads opens its routes, under the epoch of its lease.  Ones that stand open take no other epoch. *)
Opened(p) ==
    IF Permit("routes_open", table[p].epoch = 0) THEN [table EXCEPT ![p] = [Closed EXCEPT !.epoch = epoch]] ELSE table
Lead(p) ==
    /\ Up(p) /\ node[p].phase = "starting" /\ S!Owns(p)
    /\ S!To(p, "leading") /\ serving' = TRUE /\ table' = Opened(p)
    /\ UNCHANGED <<call, timer, record, proc, entry, budget, link, ask, epoch>>
-----------------------------------------------------------------------------
(* The follower's half begins what succession wants, when nothing of an older request is on its way. *)
Call(p) ==
    /\ Up(p) /\ call[p].kind = "register" /\ link[p].phase = "idle" /\ link[p].gone = 0
    /\ call' = [call EXCEPT ![p].kind = "asked"]
    /\ link' = [link EXCEPT ![p] = [phase |-> "registering", gen |-> Fresh(p), lead |-> call[p].to, gone |-> 0]]
    /\ ask' = [ask EXCEPT ![p] = [to |-> call[p].to, gen |-> Fresh(p), said |-> "none"]]
    /\ UNCHANGED <<node, timer, record, world, table, epoch>>

(* The leader's half: heard, provisioned and written, or refused. *)
HearRegister(x, p) ==
    /\ Up(x) /\ table[x].epoch # 0 /\ ask[p].to = x /\ ask[p].said = "none"
    /\ IF ~Holds(x) THEN ask' = [ask EXCEPT ![p].said = "no"] /\ UNCHANGED table
       ELSE /\ \A u \in table[x].changes : u.who # p
            /\ table' = [table EXCEPT ![x].changes = @ \cup {Pair(p, ask[p].gen)}]
            /\ ask' = [ask EXCEPT ![p].said = "heard"]
    /\ UNCHANGED <<succession, world, link, epoch>>
Provisioned(x, p) ==
    /\ Up(x)
    /\ \E u \in table[x].changes :
        /\ u.who = p
        /\ table' = [table EXCEPT ![x].changes = @ \ {u},
                                  ![x].routes = IF Holds(x) THEN {r \in @ : r.who # p} \cup {u} ELSE @]
        /\ ask' = IF ask[p].to = x /\ ask[p].gen = u.gen
                  THEN [ask EXCEPT ![p].said = IF Holds(x) THEN "ok" ELSE "no"] ELSE ask
    /\ UNCHANGED <<succession, world, link, epoch>>

(* Unknown: a registration that failed is told to succession, which tries again. *)
Fails(p) ==
    /\ link' = [link EXCEPT ![p] = Idle] /\ ask' = [ask EXCEPT ![p] = Nothing]
    /\ IF Permit("failure_is_told", node[p].phase = "registering" /\ node[p].leader = link[p].lead)
       THEN S!Wait(p, "grace") ELSE UNCHANGED <<node, call, timer>>
    /\ UNCHANGED <<record, world, table, epoch>>
HearAnswer(p) ==
    /\ Up(p) /\ link[p].phase = "registering"
    /\ CASE ask[p].said = "no" -> Fails(p)
         [] ask[p].said = "ok" ->
              /\ link' = [link EXCEPT ![p].phase = "registered"] /\ ask' = [ask EXCEPT ![p] = Nothing]
              /\ IF node[p].phase = "registering" /\ node[p].leader = link[p].lead
                 THEN S!Follow(p) ELSE UNCHANGED <<node, call, timer>>
              /\ UNCHANGED <<record, world, table, epoch>>
         [] OTHER -> FALSE
CallFails(p) ==
    /\ Up(p) /\ link[p].phase = "registering" /\ ask[p].said \in {"none", "heard"}
    /\ LET x == ask[p].to IN proc[x] = "dead" \/ (Up(x) /\ table[x].epoch = 0)
    /\ Fails(p)
(* A request that was given up returns, whatever it says. *)
Return(p) ==
    /\ Up(p) /\ link[p].gone # 0
    /\ link' = [link EXCEPT ![p].gone = 0] /\ ask' = [ask EXCEPT ![p] = Nothing]
    /\ UNCHANGED <<succession, world, table, epoch>>

(* A heartbeat: answered with the roster; or refused, or not answered. *)
Answers(p) ==
    LET x == link[p].lead IN Up(x) /\ table[x].epoch # 0 /\ Holds(x) /\ Pair(p, link[p].gen) \in table[x].routes
Beat(p) ==
    /\ Up(p) /\ link[p].phase = "registered" /\ Answers(p) /\ node[p].phase = "following"
    /\ node' = [node EXCEPT ![p].roster = {q \in S!Slotted : \E r \in table[link[p].lead].routes : r.who = q}]
    /\ node' # node
    /\ UNCHANGED <<call, timer, record, world, registration>>
(* Proof: a registration that is lost is told to succession, which looks for another. *)
Lose(p) ==
    /\ Up(p) /\ link[p].phase = "registered" /\ ~Answers(p)
    /\ link' = [link EXCEPT ![p] = Idle]
    /\ IF Permit("loss_is_told", node[p].phase = "following") THEN S!Decide(p, TRUE, S!Wait(p, "waiting"))
       ELSE UNCHANGED <<node, call, timer>>
    /\ UNCHANGED <<record, world, ask, table, epoch>>
-----------------------------------------------------------------------------
(* Fence: with the leadership its routes are closed, so that the next one begins with none.  Who waits is refused. *)
Shut(x) ==
    IF Permit("routes_close", table[x].epoch # 0)
    THEN /\ table' = [table EXCEPT ![x] = Closed]
         /\ ask' = [q \in Followers |-> IF ask[q].to = x /\ ask[q].said = "heard" THEN [ask[q] EXCEPT !.said = "no"] ELSE ask[q]]
    ELSE UNCHANGED <<table, ask>>
(* Unknown: a leadership that ends, before it has begun or after, is told to succession, which tries again. *)
Ends(p) == IF Permit("end_is_told", TRUE) THEN S!Ends(p) ELSE UNCHANGED succession
LetGo(p) == entry' = (IF entry.owner = p THEN [owner |-> "none", passed |-> FALSE] ELSE entry)
Unserved(x) == serving' = (serving /\ entry.owner # x)

StartFails(p) ==
    /\ Up(p) /\ node[p].phase = "starting" /\ Spend("fail")
    /\ Ends(p) /\ LetGo(p) /\ Unserved(p) /\ UNCHANGED <<proc, registration>>
WorkFails(p) ==
    /\ Up(p) /\ node[p].phase = "leading" /\ Spend("fail")
    /\ Ends(p) /\ LetGo(p) /\ Unserved(p) /\ Shut(p) /\ UNCHANGED <<proc, link, epoch>>
(* A deposed one looks, some time after it woke up, and leads no more. *)
Notice(x) ==
    /\ Up(x) /\ UNCHANGED <<entry, budget, link, epoch>> /\ Shut(x)
    /\ IF x = "L" THEN entry.owner # "L" /\ proc' = [proc EXCEPT !["L"] = "dead"] /\ UNCHANGED <<succession, serving>>
       ELSE /\ node[x].phase \in {"starting", "leading"} \/ call[x].kind = "won"
            /\ ~S!Owns(x) /\ Ends(x) /\ Unserved(x) /\ UNCHANGED proc
    /\ <<succession, proc, table>>' # <<succession, proc, table>>

(* A leader does not hear a follower for too long, by a fault. *)
Prune(x, p) ==
    /\ Up(x) /\ Spend("prune") /\ \E r \in table[x].routes : r.who = p
    /\ table' = [table EXCEPT ![x].routes = {r \in @ : r.who # p}]
    /\ UNCHANGED <<succession, proc, entry, serving, link, ask, epoch>>
Die(x) ==
    /\ proc[x] # "dead" /\ Spend("die") /\ proc' = [proc EXCEPT ![x] = "dead"]
    /\ table' = [table EXCEPT ![x] = Closed] /\ Unserved(x) /\ UNCHANGED <<entry, epoch>>
    /\ IF x = "L" THEN UNCHANGED <<succession, link, ask>>
       ELSE /\ node' = [node EXCEPT ![x] = [phase |-> "ended", leader |-> "none", endpoint |-> 0, roster |-> {},
                                            session |-> 0, deferred |-> FALSE, bound |-> "none"]]
            /\ call' = [call EXCEPT ![x] = S!NoCall] /\ timer' = [timer EXCEPT ![x] = "off"]
            /\ record' = [record EXCEPT ![x] = "follower"]
            /\ link' = [link EXCEPT ![x] = Idle] /\ ask' = [ask EXCEPT ![x] = Nothing]
Hang(x) == Up(x) /\ Spend("hang") /\ proc' = [proc EXCEPT ![x] = "hung"] /\ UNCHANGED <<succession, entry, serving, registration>>
Wake(x) ==
    /\ proc[x] = "hung" /\ proc' = [proc EXCEPT ![x] = "up"]
    /\ entry' = IF x = "L" /\ entry.owner = "L" THEN [entry EXCEPT !.passed = FALSE] ELSE entry
    /\ UNCHANGED <<succession, serving, budget, registration>>
Expire ==
    /\ entry.owner # "none" /\ ~entry.passed /\ proc[entry.owner] = "hung"
    /\ entry' = [entry EXCEPT !.passed = TRUE]
    /\ UNCHANGED <<succession, proc, serving, budget, registration>>
-----------------------------------------------------------------------------
Init ==
    /\ node = [p \in Followers |-> [phase |-> "following", leader |-> "L", endpoint |-> 1, roster |-> S!Slotted,
                                    session |-> 1, deferred |-> FALSE, bound |-> "own"]]
    /\ call = [p \in Followers |-> S!NoCall] /\ timer = [p \in Followers |-> "off"]
    /\ record = [p \in Followers |-> "follower"] /\ proc = [x \in Everybody |-> "up"]
    /\ entry = [owner |-> "L", passed |-> FALSE] /\ serving = TRUE /\ budget = Budget /\ epoch = 1
    /\ link = [p \in Followers |-> [phase |-> "registered", gen |-> 1, lead |-> "L", gone |-> 0]]
    /\ ask = [p \in Followers |-> Nothing]
    /\ table = [x \in Everybody |-> IF x = "L" THEN [epoch |-> 1, changes |-> {}, routes |-> {Pair(p, 1) : p \in Followers}]
                                    ELSE Closed]

Next ==
    \/ \E p \in Followers : See(p)
    \/ \E p \in Followers : Tick(p)
    \/ \E p \in Followers : TimeUp(p)
    \/ \E p \in Followers : Win(p)
    \/ \E p \in Followers : Denied(p)
    \/ \E p \in Followers : Prepare(p)
    \/ \E p \in Followers : Lead(p)
    \/ \E p \in Followers : Call(p)
    \/ \E x \in Everybody, p \in Followers : HearRegister(x, p)
    \/ \E x \in Everybody, p \in Followers : Provisioned(x, p)
    \/ \E p \in Followers : HearAnswer(p)
    \/ \E p \in Followers : CallFails(p)
    \/ \E p \in Followers : Return(p)
    \/ \E p \in Followers : Beat(p)
    \/ \E p \in Followers : Lose(p)
    \/ \E p \in Followers : StartFails(p)
    \/ \E p \in Followers : WorkFails(p)
    \/ \E x \in Everybody : Notice(x)
    \/ \E x \in Everybody, p \in Followers : Prune(x, p)
    \/ \E x \in Everybody : Die(x)
    \/ \E x \in Everybody : Hang(x)
    \/ \E x \in Everybody : Wake(x)
    \/ Expire

(* Who is up goes on, and what a process has sent is heard by one that is up.  Nobody has to die or to wake up. *)
Fairness ==
    /\ WF_vars(Expire) /\ \A x \in Everybody : WF_vars(Notice(x))
    /\ \A p \in Followers :
          /\ WF_vars(See(p)) /\ WF_vars(Tick(p)) /\ WF_vars(TimeUp(p)) /\ WF_vars(Win(p)) /\ WF_vars(Denied(p))
          /\ WF_vars(Prepare(p)) /\ WF_vars(Lead(p)) /\ WF_vars(Call(p)) /\ WF_vars(HearAnswer(p))
          /\ WF_vars(CallFails(p)) /\ WF_vars(Return(p)) /\ WF_vars(Lose(p))
          /\ \A x \in Everybody : WF_vars(HearRegister(x, p)) /\ WF_vars(Provisioned(x, p))

Spec == Init /\ [][Next]_vars /\ Fairness
-----------------------------------------------------------------------------
TypeOK ==
    /\ \A p \in Followers :
          /\ link[p].phase \in {"idle", "registering", "registered"} /\ link[p].gen \in 0..6
          /\ ask[p].said \in {"none", "heard", "ok", "no"}
          /\ call[p].kind \in {"none", "register", "asked", "elect", "won"}
    /\ \A x \in Everybody : table[x].epoch = 0 => table[x].routes = {} /\ table[x].changes = {}
    /\ epoch \in 1..(Budget + 2) /\ budget \in 0..Budget

(* A route is written by the leader of that moment: a deposed one registers nobody (I3). *)
OneLeader_I3 ==
    [][\A x \in Everybody : table'[x].routes \ table[x].routes # {} => entry.owner = x /\ epoch = table[x].epoch]_vars

Able(p) == Up(p) /\ node[p].phase # "ended"
Some == \E p \in Followers : Able(p)
Led(x) == entry.owner = x /\ ~S!Over /\ Up(x) /\ (x = "L" \/ node[x].phase = "leading")
With(p, x) == /\ node[p].phase = "following" /\ link[p].phase = "registered" /\ link[p].lead = x
              /\ Pair(p, link[p].gen) \in table[x].routes /\ record[p] = "follower"
(* One leads, and everybody else is registered with it. *)
Settled == \E x \in Everybody : Led(x) /\ \A p \in Followers : Able(p) /\ p # x => With(p, x)
EventuallySettled_V2 == Some ~> (Settled \/ ~Some)
(* Nobody is stranded: not by losing an election, nor by a leader that hangs, dies or forgets it. *)
EventuallySettled_V7 ==
    \A p \in Followers, x \in Everybody :
        p # x => ((Able(p) /\ Led(x)) ~> (With(p, x) \/ ~Able(p) \/ ~Led(x)))
(* A promotion that failed is retried, or another leads. *)
IsLed == \E x \in Everybody : Led(x)
EventuallySettled_V14 ==
    \A p \in Followers : (Able(p) /\ node[p].phase \in {"electing", "starting"}) ~> (IsLed \/ ~Able(p))
=============================================================================
