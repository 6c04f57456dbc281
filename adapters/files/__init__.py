"""A real directory: the ports behind it, the guard of a file, the owner registry and the lease on it (locks.md).

| file | what is in it |
|---|---|
| `directory` | where things are in an agent directory |
| `posix`, `processes`, `host` | the real ports: files, processes, clocks and randomness |
| `guard`, `guard_errors` | at most one thread of all processes is inside a guard; how a passage fails |
| `passage` | the machine of a guard, driven call by call |
| `standing` | what stands at a guard's path, and who put it there |
| `debris` | what the dead left beside a guard, swept on proof of death |
| `process_state` | what the threads of one process share |
| `replacing` | a file read and replaced as a whole |
| `registry` | the text of the owner registry |
| `high_water` | the mark below which no epoch is minted again |
| `lease`, `lease_steps`, `lease_values` | a lease on one key: the machine, driven; what it is asked and answers |
| `lease_events` | its steps, recorded |
| `timings` | how long things take |
"""
