"""When a member leads and when it follows: the driver of SUCCESSION (locks.md 12; `spec/Succession.tla`).

| file | what is in it |
|---|---|
| `course` | the machine, driven: `tell` offers it what happened, `_perform` begins what it asks for |
| `moves` | what it can ask for, on real files and sockets: look, register, stand for election, resign |
| `watch` | looks at registry and endpoint, on time and when the leader's process dies |
| `work` | what it does while it leads: open the fleet, run the work, close |
| `mending` | which failures stay until a person does something |
| `counts` | what is counted of its steps |
| `events` | its steps, recorded |
"""
