"""`downstream` is a project of its own: test_downstream.py runs it, from the built wheel."""

collect_ignore = ["downstream"]
