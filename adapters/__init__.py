"""Everything that touches the world: files, processes, sockets, SQLite, TLC, the terminal; Telegram comes next.

| file | what is in it |
|---|---|
| `cli` | the entry point of the command line: exit statuses, and one line for whatever is wrong |
| `ports` | what an adapter needs of the world: files, processes, clocks, identities, somebody to tell |
| `errors` | the one hierarchy of what goes wrong at the edge, each a line |
| `awaiting` | awaiting what goes on by itself |
| `tlc`, `tlavalue`, `dot` | TLC from pip, its values, and the graphs that it writes |
| `story`, `explain`, `red` | counterexamples for people; what happens without a guard |
| `guards_md`, `spec_text` | ``spec/GUARDS.md``, and what a module's text says to people |
| `machines_found`, `strategies` | which machines there are, and what they may be told |

| room | what is in it |
|---|---|
| `files/` | a real directory: guard, registry, lease |
| `runtime/` | leading as a library |
| `bus/` | messages between the processes of a directory |
| `fleet/` | processes of which one leads and the others are registered with it |
| `journal/` | the durable journal on SQLite |
| `work/` | what a process does with its updates |
| `handoff/` | a queued item moves to another instance |
| `looking/` | looking at a directory and its journals, healing, measuring, importing |
| `lead/` | ``tenure lead`` and ``tenure commit`` |
| `commands/` | the command line |
| `trace/` | recording, and explaining recordings |
| `testing/` | the test kit |
| `verify/` | the stages of ``tenure verify`` |
"""
