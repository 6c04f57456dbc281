"""The stage `real` (DESIGN 7): real processes on a real directory, killed, stopped, resumed; the models explain it.

| file | what is in it |
|---|---|
| `check` | the check of one module |
| `director` | one run: start, disturb, end, explain |
| `campaign` | many runs, by hand |
| `ports` | what a run changes of the world |
| `worker` | a process that leads |
| `committing` | one that commits |
| `membership`, `mischief` | a member of a fleet, and what befalls the leader's endpoint |
| `working` | a workplace |
| `healing` | who tears files, and doctors |
"""
