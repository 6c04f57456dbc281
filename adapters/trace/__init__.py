"""Recording protocol events, and explaining a recording by the twins, one file a module (DESIGN 8).

| file | what is in it |
|---|---|
| `recorder`, `lines` | recording: a file a process, a line an event; these run where nobody verifies |
| `api` | `assert_explained` and the like, for tests |
| `merge` | one order for the events of many processes |
| `check`, `search` | whether the models explain a recording: the search for a behaviour |
| `instance`, `registry` | what the instances below have in common |
| `journal_rows`, `journal_events` | events made of a journal itself; what its two modules share |
| `tlc_trace` | a sample of a recording, put to TLC |
| `file_transaction`, `runtime_recovery`, `leader_election`, `fenced_commit` | twins, instantiated from a recording |
| `polling_ownership`, `polling_world` | runtimes of one process, one after the other |
| `succession`, `succession_world` | members of one registry |
| `follower_registration`, `registration_world`, `registration_followers` | followers, leaders, and the channel |
| `durable_admission`, `durable_admission_world` | one update, and everybody who had it |
| `queue_handoff`, `queue_handoff_world` | one receipt, and everybody who had to do with it |
"""
