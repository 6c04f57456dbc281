---------------------------- MODULE LeaderRoutes ----------------------------
(* The leader's own steps: a route is written after its provisioning, under *)
(* the epoch that began it; changes of one profile come one after another;  *)
(* a thread is deleted for a goodbye or a proven death.                     *)
EXTENDS FollowerSteps

Entries(l) == route[l].entries
Changes(l) == route[l].mutations
Put(l, entries, mutations) == route' = [route EXCEPT ![l].entries = entries, ![l].mutations = mutations]

(* An answer goes where somebody still waits for it. *)
Asked(kind) == CASE kind = "registered" -> "register" [] kind = "beaten" -> "beat" [] OTHER -> "goodbye"
Told(a) == IF \E c \in outside[a.who].calls : c.kind = Asked(a.kind) /\ c.gen = a.gen THEN {a} ELSE {}
Answer(kind, p, gen, l, ok) == [Msg(kind, p, gen, l) EXCEPT !.ok = ok]
Said(p, gen, l, ok, session) == [Answer("registered", p, gen, l, ok) EXCEPT !.session = session]

(* An entry makes room for its own process, and when its process is dead. *)
GivesWay(e, p) == e.who = p \/ Relation = "reload" \/ Dead(e.who)
ProfileFree(l, p, key) == \A e \in Entries(l) : e.key = key => GivesWay(e, p)
TargetFree(l, p, target) == \A e \in Entries(l) : target # 0 /\ e.target = target => GivesWay(e, p)

(* A change of this profile is under way, or one of this thread of which either deletes it. *)
InTheWay(l, key, target, cleans) ==
    \E u \in Changes(l) : u.key = key \/ (target # 0 /\ u.target = target /\ (cleans \/ u.kind = "clean_up"))
InOrder(l, key, target, cleans) == Guard("nobody_mutates_profile", ~InTheWay(l, key, target, cleans))

(* The answer of a call names instance and generation, and no more. *)
Same(l, u) == {v \in Changes(l) : v.kind = u.kind /\ v.who = u.who /\ v.gen = u.gen}

Current(l, p, gen) == \E e \in Entries(l) : e.who = p /\ e.gen = gen
(* The request names a registration, and it is the one that stands. *)
MayAct(l, p, gen) ==
    /\ Guard("generation_named", gen # 0)
    /\ Guard("generation_is_current", \E e \in Entries(l) : e.who = p /\ gen \in {0, e.gen})
Heard(l, p) == {IF e.who = p THEN [e EXCEPT !.heard = 1, !.silent = FALSE] ELSE e : e \in Entries(l)}
-----------------------------------------------------------------------------
(* A register request; one that was acknowledged before is acknowledged again while that is true, and over after that. *)
HearRegister(l, p, again) ==
    /\ Serving(l)
    /\ IF again THEN Spend("repeat") ELSE UNCHANGED budget
    /\ \E m \in net :
        /\ m.kind = "register" /\ m.who = p /\ m.lead = l
        /\ LET rest == IF again THEN net ELSE net \ {m}
               key == Key(p, m.own)
               refused == Said(p, m.gen, l, FALSE, m.session)
               stands == Guard("still_stands", Current(l, p, m.gen))
           IN  IF m.ok
               THEN /\ net' = rest \cup Told(IF stands
                                            THEN [Said(p, m.gen, l, TRUE, m.session) EXCEPT !.target = m.target]
                                            ELSE refused)
                    /\ Harmed("echo", stands /\ ~Current(l, p, m.gen))
                    /\ UNCHANGED route
               ELSE /\ UNCHANGED harm
                    /\ IF \/ ~Guard("authenticated", p \notin Outsiders) \/ ~Guard("compatible", p \notin Odd)
                          \/ ~Guard("leads_here", epoch = l)
                       THEN net' = rest \cup Told(refused) /\ UNCHANGED route
                       ELSE /\ InOrder(l, key, m.target, FALSE)
                            /\ IF ~Guard("profile_not_held", ProfileFree(l, p, key))
                               THEN net' = rest \cup Told([refused EXCEPT !.held = TRUE]) /\ UNCHANGED route
                               ELSE /\ net' = rest
                                    /\ Put(l, Entries(l), Changes(l) \cup
                                         {[kind |-> "register", who |-> p, gen |-> m.gen, key |-> key, session |-> m.session, asked |-> TRUE,
                                           done |-> FALSE,
                                           target |-> IF Guard("target_may_be_kept", TargetFree(l, p, m.target))
                                                      THEN m.target ELSE 0]})
    /\ <<net, route>>' # <<net, route>>
    /\ UNCHANGED <<node, outside, intents, threads, epoch>>

(* The provisioning port: the thread that is asked for, else that of the profile if it is free, else a new one. *)
Given(l, p, asked, key) ==
    LET own == {t \in threads : t.key = key /\ TargetFree(l, p, t.target)} IN
    IF \E t \in threads : t.target = asked THEN asked
    ELSE IF own # {} THEN (CHOOSE t \in own : \A o \in own : t.target <= o.target).target
    ELSE Least({0} \cup {t.target : t \in threads} \cup {i.target : i \in intents} \cup {m.target : m \in net}
               \cup {node[q].target : q \in Instances}
               \cup UNION {{e.target : e \in Entries(x)} \cup {c.target : c \in Changes(x)} : x \in Leaders})

(* The time of a registration begins when it is written, not when it was asked for or when an older one was heard. *)
Stamp == IF Guard("stamped_anew", FALSE) THEN 0 ELSE 1

(* It ended, some time later: is the epoch the same, and is what it brought still free? *)
Provisioned(l, p) ==
    /\ Serving(l)
    /\ \E u \in Changes(l) :
        /\ u.kind = "register" /\ u.who = p
        /\ LET target == Given(l, p, u.target, u.key)
               writes == /\ Guard("epoch_still_held", epoch = l)
                         /\ Guard("profile_not_held", ProfileFree(l, p, u.key))
                         /\ Guard("target_not_held", TargetFree(l, p, target))
               rivals == {e \in Entries(l) : e.who # p /\ (e.key = u.key \/ e.target = target)}
               gone == IF Guard("replaces_nobody", rivals = {}) THEN {} ELSE rivals
               entry == [who |-> p, gen |-> u.gen, key |-> u.key, target |-> target, silent |-> FALSE,
                         heard |-> Stamp]
               answered == [Said(p, u.gen, l, writes, u.session) EXCEPT !.target = IF writes THEN target ELSE 0,
                                !.held = ~writes /\ ~ProfileFree(l, p, u.key)]
               remembered == {IF m.kind = "register" /\ m.gen = u.gen THEN [m EXCEPT !.ok = TRUE, !.target = target] ELSE m
                              : m \in net}
           IN  /\ Put(l, IF writes THEN {e \in Entries(l) \ gone : e.who # p} \cup {entry} ELSE Entries(l), Changes(l) \ Same(l, u))
               /\ threads' = IF writes THEN {t \in threads : t.target # target} \cup
                                            {[target |-> target, who |-> p, gen |-> u.gen, key |-> u.key]}
                             ELSE threads
               /\ net' = (IF writes THEN remembered ELSE net) \cup Told(answered)
    /\ UNCHANGED <<node, outside, intents, epoch, harm, budget>>

ProvisionFails(l, p) ==
    /\ Serving(l) /\ Spend("fail")
    /\ \E u \in Changes(l) :
        /\ u.kind = "register" /\ u.who = p
        /\ Put(l, Entries(l), Changes(l) \ Same(l, u))
        /\ net' = net \cup Told(Said(p, u.gen, l, FALSE, u.session))
    /\ UNCHANGED <<node, outside, intents, threads, epoch, harm>>
-----------------------------------------------------------------------------
(* A heartbeat, a question, work: of the registration that stands, or refused. *)
Refresh(l, p) ==
    /\ Serving(l)
    /\ \E m \in net :
        /\ m.kind = "beat" /\ m.who = p /\ m.lead = l
        /\ LET ok == MayAct(l, p, m.gen) IN
           /\ Put(l, IF ok THEN Heard(l, p) ELSE Entries(l), Changes(l))
           /\ net' = (net \ {m}) \cup Told(Answer("beaten", p, m.gen, l, ok))
    /\ UNCHANGED <<node, outside, intents, threads, epoch, harm, budget>>

Perform(l, p) ==
    /\ Serving(l)
    /\ \E m \in net :
        /\ m.kind = "ask" /\ m.who = p /\ m.lead = l
        /\ LET ok == MayAct(l, p, m.gen) IN
           /\ Put(l, IF ok THEN Heard(l, p) ELSE Entries(l), Changes(l))
           /\ Harmed("acted", ok /\ ~Current(l, p, m.gen))
        /\ net' = net \ {m}
    /\ UNCHANGED <<node, outside, intents, threads, epoch, budget>>

Forward(l, p) ==
    /\ Serving(l) /\ Spend("work")
    /\ \E e \in Entries(l) : e.who = p /\ net' = net \cup {Msg("work", p, e.gen, l)}
    /\ Put(l, Heard(l, p), Changes(l))
    /\ UNCHANGED <<node, outside, intents, threads, epoch, harm>>

(* A leader of the other system restores a thread: the follower has a new one from then on, under the same registration. *)
Move(l, p) ==
    /\ Serving(l) /\ epoch = l /\ Changes(l) = {} /\ Spend("move")
    /\ \E e \in Entries(l) :
        LET target == Given(l, p, 0, "") IN
        /\ e.who = p /\ net' = net \cup {[Msg("moved", p, e.gen, l) EXCEPT !.target = target]}
        /\ Put(l, (Entries(l) \ {e}) \cup {[e EXCEPT !.target = target]}, {})
        /\ threads' = {IF t.target = e.target THEN [t EXCEPT !.target = target] ELSE t : t \in threads}
    /\ UNCHANGED <<node, outside, intents, epoch, harm>>
-----------------------------------------------------------------------------
Intent(x) == [who |-> x.who, gen |-> x.gen, key |-> x.key, target |-> x.target]
CleanUpOf(i, asked) == [kind |-> "clean_up", who |-> i.who, gen |-> i.gen, key |-> i.key, target |-> i.target, session |-> 0,
                         asked |-> asked, done |-> FALSE]

(* A goodbye: intent first, then the thread, then the route. *)
HearGoodbye(l, p) ==
    /\ Serving(l)
    /\ \E m \in net :
        /\ m.kind = "goodbye" /\ m.who = p /\ m.lead = l
        /\ IF Guard("leads_here", epoch = l) /\ MayAct(l, p, m.gen) /\ \E e \in Entries(l) : e.who = p
           THEN LET e == CHOOSE e \in Entries(l) : e.who = p IN
                /\ InOrder(l, e.key, e.target, TRUE)
                /\ Put(l, Entries(l), Changes(l) \cup {CleanUpOf(Intent(e), TRUE)})
                /\ intents' = intents \cup {Intent(e)}
                /\ net' = net \ {m}
           ELSE net' = (net \ {m}) \cup Told(Answer("gone", p, m.gen, l, FALSE)) /\ UNCHANGED <<route, intents>>
    /\ UNCHANGED <<node, outside, threads, epoch, harm, budget>>

(* Delete what an intent names, unless somebody else registered with it; then forget the intent. *)
Reclaim(l, i, dead) ==
    LET now == {t \in threads : t.target = i.target}
        known == i \in intents
        due == /\ Guard("no_other_instance_holds", \A t \in now : t.who = i.who)
               /\ Guard("no_other_generation_holds", \A t \in now : t.who = i.who => t.gen = i.gen)
               /\ Guard("death_is_proven", dead \/ known)
    IN  /\ Serving(l) /\ Guard("leads_here", epoch = l)
        /\ ~\E u \in Changes(l) : u.kind = "clean_up" /\ u.who = i.who /\ u.gen = i.gen
        /\ InOrder(l, i.key, i.target, TRUE)
        /\ IF due THEN Put(l, Entries(l), Changes(l) \cup {CleanUpOf(i, FALSE)}) ELSE UNCHANGED route
        /\ intents' = IF due THEN intents \cup {i} ELSE intents \ {i}
        /\ <<route, intents>>' # <<route, intents>>
        /\ Harmed("silenced", due /\ ~known /\ ~dead)
        /\ UNCHANGED <<node, outside, net, threads, epoch>>

Resume(l, p) == /\ \E i \in intents : i.who = p /\ ~Current(l, p, i.gen) /\ Reclaim(l, i, Dead(p))
                /\ UNCHANGED budget
Bury(l, p) == /\ "bury" \in Causes /\ UNCHANGED budget
              /\ \E t \in threads : t.who = p /\ ~Current(l, p, t.gen) /\ Reclaim(l, Intent(t), Dead(p))

(* The thread is deleted under the epoch of the leader, or not at all. *)
Delete(l, p) ==
    /\ Serving(l)
    /\ \E u \in Changes(l) :
        /\ u.kind = "clean_up" /\ u.who = p /\ ~u.done
        /\ Guard("clean_up_is_fenced", epoch = l)
        /\ threads' = {t \in threads : t.target # u.target}
        /\ Put(l, Entries(l), (Changes(l) \ {u}) \cup {[u EXCEPT !.done = TRUE]})
        /\ Harmed("taken", \E t \in threads : t.target = u.target /\ <<t.who, t.gen>> # <<p, u.gen>>)
    /\ UNCHANGED <<node, outside, net, intents, epoch, budget>>

(* What the leader makes of it. *)
Farewell(l, u, ok) == IF \E v \in Same(l, u) : v.asked THEN Told(Answer("gone", u.who, u.gen, l, ok)) ELSE {}

Cleaned(l, p) ==
    /\ Serving(l)
    /\ \E u \in Changes(l) :
        /\ u.kind = "clean_up" /\ u.who = p /\ u.done
        /\ LET ends == Guard("clean_up_is_current", epoch = l /\ \A e \in Entries(l) : e.who = p => e.gen = u.gen)
           IN  /\ Put(l, IF ends THEN {e \in Entries(l) : e.who # p} ELSE Entries(l), Changes(l) \ Same(l, u))
               /\ intents' = IF ends THEN intents \ {Intent(u)} ELSE intents
               /\ net' = net \cup Farewell(l, u, ends)
               /\ Harmed("removed", ends /\ (epoch # l \/ \E e \in Entries(l) : e.who = p /\ e.gen # u.gen))
    /\ UNCHANGED <<node, outside, threads, epoch, budget>>

CleanUpFails(l, p) ==
    /\ Serving(l)
    /\ IF epoch = l THEN Spend("fail") ELSE UNCHANGED budget
    /\ \E u \in Changes(l) :
        /\ u.kind = "clean_up" /\ u.who = p /\ ~u.done
        /\ Put(l, Entries(l), Changes(l) \ Same(l, u))
        /\ net' = net \cup Farewell(l, u, FALSE)
    /\ UNCHANGED <<node, outside, intents, threads, epoch, harm>>
-----------------------------------------------------------------------------
(* Who is not heard beyond the bound leaves the routes; nothing of it is deleted. *)
Beats(p, e) == Up(p) /\ node[p].generation = e.gen
Prune(l, p) ==
    /\ Serving(l)
    /\ \E e \in Entries(l) :
        /\ e.who = p /\ Guard("silent_too_long", e.heard = 0)
        /\ Put(l, Entries(l) \ {e}, Changes(l))
        /\ Harmed("cut", Beats(p, e) /\ ~e.silent)
    /\ UNCHANGED <<node, outside, net, intents, threads, epoch, budget>>
=============================================================================
