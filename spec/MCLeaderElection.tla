------------------------- MODULE MCLeaderElection -------------------------
(* Bounds for TLC: the names that a .cfg cannot spell itself. *)
EXTENDS LeaderElection

\* Which runtimes share a process, and the key that each starts with.
Apart      == [r \in Runtimes |-> r]
PairAndOne == [r \in Runtimes |-> IF r = "c" THEN "y" ELSE "x"]
AllMain    == [r \in Runtimes |-> "main"]
OneEach    == [r \in Runtimes |-> IF r = "a" THEN "main" ELSE "work"]
=============================================================================
