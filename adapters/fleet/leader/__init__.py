"""One leader: the driver of ROUTES, and what it answers (bus.md b; `spec/LeaderRoutes.tla`).

| file | what is in it |
|---|---|
| `leader` | `Leader`: routes, ledger, endpoint, provisioning and projection of one process |
| `leading` | what it opens and closes, under one epoch |
| `requests` | what it answers to each kind of request |
| `routing_steps`, `routing` | the machine, driven: what waits for nothing; and what waits for threads and files |
| `turns` | changes of one profile, one after the other |
| `book` | its ownership transactions, shared by all who need one at the same time |
| `witness` | which process is behind a registration, and whether it is dead |
| `bounds` | what a registration may say at most |
| `views` | what it says of its fleet |
| `events` | its steps, recorded |
"""
