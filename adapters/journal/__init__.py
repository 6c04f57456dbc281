"""The durable journal of a profile: updates, deliveries, receipts, and what was decided about them, in one SQLite
database that the leader and all followers share (DESIGN 10; bus.md c, d).

| file | what is in it |
|---|---|
| `journal` | `Journal`: open it; all of its operations, each of them one transaction, are in the next four |
| `operating` | how an operation goes: a refusal is an answer, and is told in the decisions |
| `at_leader`, `at_instance`, `looked_at` | the methods of `Journal`, by who uses them |
| `threaded` | the same for asyncio, in a thread of its own |
| `bodies` | the one form in which two bodies of an update are compared |
| `updates` | what was polled: append, and the fence |
| `forwards` | updates on their way: forward, keep, wait, settle |
| `deliveries` | the operation of an instance: admit |
| `receipts` | operations of an owner: take, offer, accept, start, complete; and of who finds it dead |
| `servers` | who serves a binding, and by which right work is taken |
| `moves` | what persons want moved; evidence that is only inserted |
| `ownership` | whose a thread or a message was last |
| `settling` | what ends with a receipt; tombstones and how they go |
| `due` | whether the time has come that a row names |
| `decisions` | what was decided or refused, by which guard and law |
| `events` | what is decided, for who records |
| `looking` | what is pending, unsettled, stuck, and the life of one id |
| `rows` | rows as values |
| `capacity` | bounds |
| `transaction` | the open file, one transaction, the row `meta` |
| `opening`, `schema`, `identity` | what stands there, its tables and migrations, whose it is |
| `backup` | a copy while others write |
| `foreign`, `foreign_inbox` | what the other system has left, and why nobody leads over it; reading it |
| `liveness` | whether a process that a row names lives |
| `database`, `sqlite` | the port, one method a call, and SQLite behind it |
| `errors` | what can go wrong |

The machines decide (`FORWARDING`, `DELIVERY`, `RECEIPT`), inside the transaction; the files here read rows, ask, and
write rows.
"""
