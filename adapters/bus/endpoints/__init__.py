"""Where servers of the bus are found: a path that is a link to a private socket (bus.md a, ENDPOINT PUBLICATION).

| file | what is in it |
|---|---|
| `endpoint` | publishing a server at a path, and healing it |
| `listening` | its private socket and the link to it, on its way to the path |
| `calls` | what that needs of the world, one method a call |
| `paths` | where endpoints are |
| `debris` | what dead processes left beside them |
"""
