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

Sockets: `endpoint`, `server`, `client`, `peer`; `ledger` performs the request ledger.
"""
