"""``tenure lead`` and ``tenure commit``: plumbing of processes around a lease (locks.md 7; DESIGN 10).

| file | what is in it |
|---|---|
| `supervisor` | stands by, leads, keeps the lease, tells its guardian how long |
| `guardian` | runs COMMAND, and ends it when the lease is over |
| `channel` | how these two talk |
| `employer` | a guardian that is asked to run COMMAND, and what if it fails |
| `standby` | what a candidate waits for |
| `lock` | the lock that COMMAND and its descendants hold |
| `group` | a process group: started, signalled, ended, known to be gone |
| `commit`, `commit_events` | one fenced commit; its steps, recorded |
| `errand` | its command as processes |
| `witness` | who sees a committer die |
| `stale_words` | why an epoch is not that of a live lease |
"""
