--------------------------- MODULE MCQueueHandoff ---------------------------
(* Bounds for TLC: the names that a .cfg cannot spell itself. *)
EXTENDS QueueHandoff
=============================================================================
