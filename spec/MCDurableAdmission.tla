------------------------- MODULE MCDurableAdmission -------------------------
(* Bounds for TLC: the names that a .cfg cannot spell itself. *)
EXTENDS DurableAdmission
=============================================================================
