"""What is said on the bus: values, without I/O (bus.md a).

| file | what is in it |
|---|---|
| `wire` | `parse(line)`, `encode(envelope)`, `fingerprint(envelope)` |
| `envelopes` | the requests by kind, `Ack`; the unions `Ask`, `Addressed`...; `identity`, `ground`, `traffic_class` |
| `envelopes_shared` | what all have, and `Target` |
| `envelopes_handoff` | the two queue handoff offers and their payload |
| `parsing`, `parsing_handoff`, `parsing_shared` | the kinds, read from objects |
| `fields` | reading the members of an object: mandatory, optional, dropped; `Malformed` |
| `rendering` | the kinds, written as objects: key order, absent members |
| `acks` | the acknowledgements of annex A, one builder each |
| `answers` | what an asker reads in an acknowledgement's result |
| `protocol` | what two sides compare: version, build, capabilities; `compatible` |
| `fleet_view`, `fleet_view_json` | the answer to ``tenure.status`` |
| `json_values` | JSON as JavaScript has it, read within bounds, spelled as ``JSON.stringify`` does; `Json` |
| `js_text` | strings as JavaScript measures and trims them |
"""
