"""The stage `real` (DESIGN 7): real processes on a real directory, killed, stopped, resumed; the models explain it."""
