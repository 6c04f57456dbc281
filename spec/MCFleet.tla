------------------------------ MODULE MCFleet -------------------------------
(* Bounds for TLC: the names that a .cfg cannot spell itself. *)
EXTENDS Fleet
=============================================================================
