"""Role machines: one participant each, no I/O, no clock, no randomness (DESIGN 3, 4)."""
