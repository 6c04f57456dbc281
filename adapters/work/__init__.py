"""What a process does with its updates: it polls them, journals them, gives each to whose it is, and executes its own
(bus.md c, d; locks.md 10).

| file | what is in it |
|---|---|
| `workplace` | one process at work; `Workplace`, which is what others use |
| `parts` | its parts on an open journal: made, and told what it is now |
| `leading` | what it does with everybody's updates while it leads |
| `source` | where updates come from: the port of a poll loop |
| `polling` | one poll loop, driven, while this process leads |
| `routing` | whose an update is, and the envelope that carries it there |
| `remembering` | whose a thread is, in the journal before anybody is told |
| `forwarding` | bringing each journaled update to whose it is, while this process leads |
| `lanes` | what is on its way to each binding, one after the other |
| `outbox` | what a forwarder needs of the journal |
| `items` | what a process has taken and not begun; what a handler is given |
| `worker` | taking, starting, executing and settling, as long as the process lives |
| `receipts` | what a worker needs of the journal |
| `serving` | which bindings are this process's as its role changes, and the journal told of it |
| `intake` | what a leader delivers to a follower |
| `events` | that a handler is called, for who records |
| `journaling` | the journal as the others use it |
"""
