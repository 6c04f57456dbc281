"""A fleet: processes of which one leads and the others are registered with it (bus.md b, f; locks.md 12).

| file | what is in it |
|---|---|
| `member` | one process that leads or follows; `Member`, which is what others use |
| `roles` | what it is at a moment, and what it has counted |
| `telling` | telling somebody each change of that once, in order |
| `residents` | one member in a process |
| `identity`, `identities` | who this instance is; the identities of which that is made |
| `agreement` | what both sides say in words that count, and who we say we are |
| `asking` | one request, and the acknowledgement that belongs to it |
| `desk` | the order in which a server looks at a line |
| `places` | threads, slots and names in their three spellings |
| `ending` | ends of tasks, in bounded time |

| room | what is in it |
|---|---|
| `succession/` | when it leads and when it follows |
| `follower/` | one follower: its registration, and what is delivered to it |
| `leader/` | one leader: its routes, and what it answers |
| `threads/` | slots, threads and names, and what of them is published |
"""
