"""The local bus: messages between the processes of a directory over Unix sockets, wire protocol version 1 (bus.md a),
and one extension of ours, ``tenure.status``.

| file | what is in it |
|---|---|
| `client` | one request: `Answer`, `NoResponse` or `Unreachable` |
| `peer` | who is on the other end, as the kernel says |
| `wording` | why there was no answer, for people |

| room | what is in it |
|---|---|
| `messages/` | what is said: values and lines, without I/O |
| `serving/` | who answers: sockets, which carry lines and know nothing of what is in them, and the request ledger |
| `endpoints/` | where it listens: publishing a server at a path, and what dead ones left there |
"""
