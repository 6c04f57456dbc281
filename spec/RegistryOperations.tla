-------------------------- MODULE RegistryOperations -------------------------
(* What does a runtime do with the registry?                                *)
(*                                                                          *)
(* Every operation runs inside one file transaction (Transaction!OneInside);*)
(* it decides on what it reads there, and writes the whole file.  An epoch  *)
(* is minted, its mark raised and the entry written in steps of their own,  *)
(* each of which may fail, or be the last.  (locks.md 6, 7; 14.3.)          *)
EXTENDS OwnerRegistry

(* Into the transaction and out of it.  One that died inside is reclaimed by the next. *)
Begin(r) ==
    /\ Alive(r) /\ Free
    /\ guard' = r
    /\ UNCHANGED <<entry, readable, highwater, node, flight, fence, evicted, budget>>

Leave(r) ==
    /\ guard = r /\ Settled(r)
    /\ guard' = "nobody"
    /\ UNCHANGED <<entry, readable, highwater, node, flight, fence, evicted, budget>>

(* Fence, Proof: every operation reads inside the transaction, and an unreadable registry is not an empty one. *)
Reads(r) == Guard("inside", guard = r) /\ Guard("strict_read", readable)

Decides(r, phase, mode, draft) ==
    /\ Becomes(r, [node[r] EXCEPT !.phase = phase, !.mode = mode, !.draft = draft])
    /\ UNCHANGED <<entry, readable, highwater, guard, flight, fence, evicted>>

(* Proof: ordinary acquisition takes what nobody owns, or what is over. *)
Acquire(r) ==
    LET e == Seen(r) IN
    /\ node[r].phase = "idle" /\ Reads(r)
    /\ \/ Guard("nobody_owns", e.owner = "none")
       \/ Permit("death_is_proof", Dead(e))
       \/ /\ Guard("not_of_my_process", ~Here(r, e))
          /\ \/ /\ Permit("expiry_frees", TRUE)
                /\ \/ Guard("lease_has_passed", Stamped(e) /\ e.age = "passed")
                   \/ /\ Guard("only_without_stamp", ~Stamped(e))
                      /\ Guard("heartbeat_has_passed", e.clock = "passed")
             \/ Permit("watched_unchanged", Watched(e))
    /\ Decides(r, "minting", "plain", Snapshot)
    /\ UNCHANGED budget

(* Proof: an election takes what nobody owns, or exactly the owner that was seen, if it is still over. *)
Elect(r) ==
    LET e == Seen(r) IN
    /\ node[r].phase = "idle" /\ Reads(r)
    /\ \/ Guard("nobody_owns", e.owner = "none")
       \/ /\ Guard("saw_somebody", node[r].shown.owner # "none")
          /\ Guard("still_the_one_seen", node[r].shown \in {Id(e), Id(Nobody)})
          /\ Guard("still_over", Stale(r, e))
    /\ Decides(r, "minting", "election", Snapshot)
    /\ UNCHANGED budget

(* Proof: an operator takes over from the very owner that was shown. *)
Force(r) ==
    LET e == Seen(r) IN
    /\ node[r].phase = "idle" /\ Reads(r)
    /\ Guard("not_of_my_process", ~Here(r, e))
    /\ Guard("owner_was_shown", e.owner # "none" /\ node[r].shown = Id(e))
    /\ Spend("force")
    /\ Decides(r, "minting", "forced", Snapshot)

(* Fresh: a newer runtime of the same process takes over by itself (reload). *)
Supersede(r) ==
    LET e == Seen(r) IN
    /\ node[r].phase = "idle" /\ Reads(r)
    /\ Permit("reload_takes_over", TRUE)
    /\ Guard("newer_generation", Newer(r, e))
    /\ Decides(r, "minting", "superseding", Snapshot)
    /\ UNCHANGED budget

(* Fence: a session resumes the very lease that it saw left behind, if that is over or an older runtime's. *)
Resume(r) ==
    LET e == Seen(r) IN
    /\ node[r].phase = "idle" /\ Reads(r)
    /\ Guard("still_the_one_left", e.owner # "none" /\ node[r].shown = Id(e))
    /\ Guard("still_over", Stale(r, e)) \/ Guard("newer_generation", Newer(r, e))
    /\ Spend("resume")
    /\ Decides(r, "minting", "resume", Snapshot)

(* Fresh: an epoch above the mark and above what stands there; the least one will do. *)
Fits(r, n) ==
    /\ Guard("above_high_water", highwater < n /\ n <= MaxEpoch)
    /\ Guard("above_entry", n > Seen(r).epoch)

Mint(r) ==
    /\ guard = r /\ node[r].phase = "minting"
    /\ \E n \in 1..(highwater + Seen(r).epoch + 1) :
           /\ Fits(r, n) /\ \A m \in 1..(n - 1) : ~Fits(r, m)
           /\ Becomes(r, [node[r] EXCEPT !.phase = "raising", !.tenure = [key |-> node[r].key, epoch |-> n]])
    /\ UNCHANGED <<entry, readable, highwater, guard, flight, fence, evicted, budget>>

Gives(r, new) == Becomes(r, [new EXCEPT !.mode = "none", !.shown = Id(Nobody), !.draft = NoDraft])
Forgets(r, phase) == Gives(r, [node[r] EXCEPT !.phase = phase, !.tenure = NoTenure, !.own = "fresh"])

(* The mark cannot even be read. *)
Abandon(r) ==
    /\ guard = r /\ node[r].phase = "minting"
    /\ Spend("write")
    /\ Forgets(r, "idle")
    /\ UNCHANGED <<entry, readable, highwater, guard, flight, fence, evicted>>

(* The mark is raised, durably, before the entry is written. *)
Places(r) == Becomes(r, [node[r] EXCEPT !.phase = "placing",
                             !.draft[node[r].key] = [owner |-> r, epoch |-> node[r].tenure.epoch]])
Raise(r) ==
    /\ guard = r /\ node[r].phase = "raising"
    /\ highwater' = node[r].tenure.epoch
    /\ Places(r)
    /\ UNCHANGED <<entry, readable, guard, flight, fence, evicted, budget>>

(* Durable first: without the mark there is no entry. It may be in place all the same, and is never lowered. *)
FailRaise(r, landed) ==
    /\ guard = r /\ node[r].phase = "raising"
    /\ Spend("write")
    /\ highwater' = IF landed THEN node[r].tenure.epoch ELSE highwater
    /\ IF Guard("mark_is_durable", FALSE) THEN Places(r) ELSE Forgets(r, "idle")
    /\ UNCHANGED <<entry, readable, guard, flight, fence, evicted>>

(* What the file says once the write of r is done: the whole draft; nothing happened to what it leaves alone. *)
Written(r) ==
    LET d == node[r].draft IN
    [k \in Keys |-> IF k # node[r].key /\ d[k] = Id(entry[k]) THEN entry[k] ELSE New(d[k].owner, d[k].epoch)]

(* Who loses a lease that had time left, to whom r hands it. *)
Lands(r) ==
    LET e == entry[node[r].key]
        lost == IF e.owner \in Runtimes \ {r} /\ Kept(e) /\ e.age = "fresh" THEN {e.owner} ELSE {}
    IN  entry' = Written(r) /\ readable' = TRUE /\ evicted' = (evicted \cup lost) \ {r}

Succeeds(r) ==
    IF node[r].phase = "deleting" THEN Forgets(r, "idle")
    ELSE Gives(r, [node[r] EXCEPT !.phase = "owner", !.own = "fresh"])

Writes(r) == guard = r /\ node[r].phase \in {"placing", "renewing", "deleting"}

(* The write is done. *)
Write(r) ==
    /\ Writes(r)
    /\ Lands(r)
    /\ Succeeds(r)
    /\ UNCHANGED <<highwater, guard, flight, fence, budget>>

(* Durable first: memory follows the file.  A write that failed leaves it as it was. *)
FailWrite(r) ==
    /\ Writes(r)
    /\ Spend("write")
    /\ CASE Guard("write_succeeded", FALSE) -> Succeeds(r)
         [] node[r].phase = "placing" -> Forgets(r, "idle")
         [] OTHER -> Gives(r, [node[r] EXCEPT !.phase = "owner"])
    /\ UNCHANGED <<entry, readable, highwater, guard, flight, fence, evicted>>

(* Unknown: nobody can say whether it was written.  Neither success nor failure. *)
LoseWrite(r, landed) ==
    /\ Writes(r)
    /\ Spend("write")
    /\ IF landed THEN Lands(r) ELSE UNCHANGED <<entry, readable, evicted>>
    /\ CASE Guard("write_succeeded", FALSE) -> Succeeds(r)
         [] node[r].phase = "renewing" -> Gives(r, [node[r] EXCEPT !.phase = "owner"])
         [] Guard("surely_failed", FALSE) ->
              IF node[r].phase = "placing" THEN Forgets(r, "idle") ELSE Gives(r, [node[r] EXCEPT !.phase = "owner"])
         [] OTHER -> Gives(r, [node[r] EXCEPT !.phase = "doubtful"])
    /\ UNCHANGED <<highwater, guard, flight, fence>>

(* A write in place: readers may find half of it. *)
Truncate(r) ==
    /\ Guard("replaced_by_rename", FALSE)
    /\ Writes(r) /\ readable
    /\ readable' = FALSE
    /\ UNCHANGED <<entry, highwater, guard, node, flight, fence, evicted, budget>>

(* The doubt is resolved by reading again. *)
Resolve(r) ==
    /\ node[r].phase = "doubtful" /\ Reads(r)
    /\ IF Guard("entry_landed", Names(Seen(r), r))
       THEN Becomes(r, [node[r] EXCEPT !.phase = "owner"])
       ELSE Forgets(r, "idle")
    /\ UNCHANGED <<entry, readable, highwater, guard, flight, fence, evicted, budget>>
-----------------------------------------------------------------------------
MyKey(r) == Guard("same_key", node[r].tenure.key = node[r].key)

Refresh(r) ==
    /\ node[r].phase = "owner" /\ Reads(r) /\ MyKey(r)
    /\ Guard("mine_to_refresh", Names(Seen(r), r))
    /\ Decides(r, "renewing", "none",
               [Snapshot EXCEPT ![node[r].key] = [owner |-> r, epoch |-> node[r].tenure.epoch]])
    /\ UNCHANGED budget

(* The owner learns inside the transaction that it is one no more. *)
Displaced(r) ==
    /\ node[r].phase = "owner" /\ Reads(r) /\ MyKey(r)
    /\ ~Guard("mine_to_refresh", Names(Seen(r), r))
    /\ Forgets(r, "idle")
    /\ evicted' = evicted \ {r}
    /\ UNCHANGED <<entry, readable, highwater, guard, flight, fence, budget>>

Release(r) ==
    /\ node[r].phase = "owner" /\ Reads(r) /\ MyKey(r)
    /\ Guard("mine_to_release", Names(Seen(r), r))
    /\ Spend("release")
    /\ Decides(r, "deleting", "none", [Snapshot EXCEPT ![node[r].key] = Id(Nobody)])

(* Fence: an effect on a resource that cannot compare runs inside the transaction. *)
Commit(r) ==
    /\ node[r].phase = "owner" /\ MyKey(r)
    /\ Guard("commit_inside", guard = r) /\ Guard("strict_read", readable)
    /\ Guard("mine_to_commit", Names(Seen(r), r))
    /\ Becomes(r, [node[r] EXCEPT !.phase = "committing"])
    /\ UNCHANGED <<entry, readable, highwater, guard, flight, fence, evicted, budget>>

Land(r) ==
    /\ node[r].phase = "committing"
    /\ fence' = [fence EXCEPT ![node[r].tenure.key] = node[r].tenure.epoch]
    /\ Becomes(r, [node[r] EXCEPT !.phase = "owner"])
    /\ UNCHANGED <<entry, readable, highwater, guard, flight, evicted, budget>>

(* Fence: outside the transaction an owner goes by its memory, and by its own clock. *)
Send(r) ==
    /\ node[r].phase = "owner" /\ flight[r] = NoTenure
    /\ Guard("own_lease_holds", node[r].own = "fresh")
    /\ flight' = [flight EXCEPT ![r] = node[r].tenure]
    /\ UNCHANGED <<entry, readable, highwater, guard, node, fence, evicted, budget>>

(* Fence: the resource compares when the effect arrives. *)
Admitted(r) == Guard("not_below_fence", flight[r].epoch >= fence[flight[r].key])
Arrive(r) ==
    /\ flight[r] # NoTenure
    /\ fence' = IF Admitted(r) THEN [fence EXCEPT ![flight[r].key] = flight[r].epoch] ELSE fence
    /\ flight' = [flight EXCEPT ![r] = NoTenure]
    /\ UNCHANGED <<entry, readable, highwater, guard, node, evicted, budget>>

(* A plain read: who owns it?  An owner that finds another there is one no more. *)
Look(r) ==
    LET e == Seen(r) IN
    /\ node[r].phase \in {"idle", "owner"}
    /\ Guard("strict_read", readable)
    /\ CASE node[r].phase = "idle" -> node[r].shown # Id(e) /\ Becomes(r, [node[r] EXCEPT !.shown = Id(e)])
         [] OTHER -> /\ MyKey(r) /\ ~Guard("mine_to_own", Names(e, r))
                     /\ Forgets(r, "idle")
    /\ evicted' = evicted \ {r}
    /\ UNCHANGED <<entry, readable, highwater, guard, flight, fence, budget>>

(* An operator switches the active profile. *)
Switch(r, k) ==
    /\ node[r].phase \in {"idle", "owner"} /\ guard # r /\ node[r].key # k
    /\ Spend("switch")
    /\ Becomes(r, [node[r] EXCEPT !.key = k, !.shown = Id(Nobody)])
    /\ UNCHANGED <<entry, readable, highwater, guard, flight, fence, evicted>>
=============================================================================
