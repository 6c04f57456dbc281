"""The local bus: wire protocol version 1 (bus.md a), and one extension of ours, ``tenure.status``.

Values, without I/O:

| file | what is in it |
|---|---|
| `json_values` | JSON as JavaScript has it, read within bounds, spelled as ``JSON.stringify`` does; `Json` |
| `envelopes` | the requests by kind, `Ack`; `Envelope`, `identity`, `traffic_class` |
| `envelopes_shared` | what all have, and `Target` |
| `envelopes_handoff` | the two queue handoff offers and their payload |
| `fleet_view`, `fleet_view_json` | the answer to ``tenure.status`` |
| `fields` | reading the members of an object: mandatory, optional, dropped; `Malformed` |
| `parsing`, `parsing_handoff`, `parsing_shared` | the kinds, read from objects |
| `rendering` | the kinds, written as objects: key order, absent members |
| `wire` | `parse(line)`, `encode(envelope)`, `fingerprint(envelope)` |
| `js_text` | strings as JavaScript measures and trims them |
| `protocol` | the identity that two sides compare: version, build, capabilities; `compatible` |
| `identities` | instance, request, birth and profile identities, secrets |
| `acks` | the acknowledgements of annex A, one builder each |
| `answers` | what an asker reads in an acknowledgement's result |

Sockets, which carry lines and know nothing of what is in them:

| file | what is in it |
|---|---|
| `client` | one request: `Answer`, `NoResponse` or `Unreachable` |
| `wording` | why there was no answer, for people |
| `server` | answering lines; `door` lets connections in, `connection` is one of them |
| `reading`, `under_way` | lines that become envelopes; requests that are being answered |
| `limits`, `shares`, `structure` | what a server bears, who has how much of it, what is not even parsed |
| `counting` | what a server has seen |
| `endpoint` | publishing a server at a path, healing it; `listening` is its socket |
| `endpoint_calls` | what that needs of the world |
| `endpoint_paths`, `endpoint_debris` | where endpoints are; what dead processes left there |
| `peer` | who is on the other end, as the kernel says |

`ledger` performs the request ledger; `ledger_answers` are the answers that it keeps.
"""
