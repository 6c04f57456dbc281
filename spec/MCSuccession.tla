---------------------------- MODULE MCSuccession ----------------------------
(* Bounds for TLC: the names that a .cfg cannot spell itself. *)
EXTENDS Succession
=============================================================================
