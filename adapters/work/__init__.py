"""What a process does with its updates: it polls them, journals them, gives each to whose it is, and executes its own
(bus.md c, d; locks.md 10).

| file | what is in it |
|---|---|
| `source` | where updates come from: the port of a poll loop |
| `polling` | one poll loop, driven, while this process leads |
"""
