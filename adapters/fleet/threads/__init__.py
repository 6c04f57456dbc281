"""Slots, threads and names, and what is published of them (bus.md f).

| file | what is in it |
|---|---|
| `provisioning` | the port that a leader asks for threads, and the one that needs no Telegram |
| `projection` | `state.json`, written by who leads, looked at by anybody |
| `values` | what is in it |
| `reading`, `writing` | it, from and to JSON |
| `views` | what is said of kept slots, and threads that are being made or taken away |
"""
