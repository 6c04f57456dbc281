"""One follower: the driver of FOLLOWER (bus.md b; `spec/FollowerSteps.tla`).

One object in three files, each a base of the next: `steps`, `deliveries`, `follower`.

| file | what is in it |
|---|---|
| `steps` | the machine, driven, with heartbeats and calls: what no caller waits for |
| `deliveries` | what its leader sends to it, admitted or refused |
| `follower` | `Follower`: register, ask, say goodbye |
| `receiver` | its endpoint, where its leader reaches it |
| `outcomes` | what came of what it asked for |
| `evictions` | a leader of the other system that gave its registration away without a word |
| `events` | its steps, recorded |
"""
