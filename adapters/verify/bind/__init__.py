"""The stage `bind` (DESIGN 7): adapters, over ports that stop them at each call, do nothing that their twin does not.

| file | what is in it |
|---|---|
| `check`, `bound`, `binding`, `whole` | the checks of the stage; what ties an adapter to its twin |
| `explore`, `situations`, `track` | every interleaving, held against the states that the twin may be in |
| `learner`, `replay`, `fingerprint`, `temporaries` | a participant as an automaton, learnt by running its code |
| `calls`, `controlled`, `disk` | ports as calls that are answered; files as values |
| `stepped_loop`, `still_journal` | an event loop, and a journal, that are stepped by hand |
| `journal_ports` | real operations on a real SQLite in memory |
| `guard` | the guard of a file |
| `lease`, `lease_operations` | the lease |
| `doctor` | healing |
| `polling`, `polling_ports` | leading |
| `poll_loop` | the poll loop |
| `commit`, `commit_ports` | fenced commits |
| `ledger` | the request ledger |
| `succession`, `succession_world` | succession |
| `follower_registration`, `registration` | registrations: both halves, and what they share |
| `follower_half`, `follower_desk`, `follower_ports`, `follower_wire` | the follower's half |
| `leader_half`, `leader_desk`, `leader_ports`, `leader_steps` | the leaders' half |
| `admission`, `admission_twin`, `admission_world`, `admission_moves` | updates, and what befalls them |
| `admission_desk`, `admission_seen` | one of their processes, and what is seen of it |
| `handoff`, `handoff_twin`, `handoff_world`, `handoff_moves` | items that move, and what befalls them |
| `handoff_desk`, `handoff_seen` | one of their processes, and what is seen of it |
"""
