------------------------- MODULE MCFileTransaction -------------------------
(* Bounds for TLC: the functions that a .cfg cannot spell. *)
EXTENDS FileTransaction, TLC

Two   == "a" :> "P" @@ "b" :> "Q"                   \* two processes
Three == "a" :> "P" @@ "b" :> "Q" @@ "c" :> "R"     \* three processes
Twin  == "a" :> "P" @@ "b" :> "P" @@ "c" :> "Q"     \* two threads of one process, and another process
Own   == "a" :> "P" @@ "b" :> "P"                   \* two threads of one process
=============================================================================
