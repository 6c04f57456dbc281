"""A queued item moves from one instance to another: the drivers of DONOR, RECIPIENT and RELAY (bus.md e; I25-I31).

| file | what is in it |
|---|---|
| `handoff` | the handoffs of one process: `Handoff`, which is what others use |
| `moving` | moving what belongs elsewhere, one pass after the other |
| `wishes` | which items that are, and where each of them belongs |
| `patience` | how long to wait before the same is offered again |
| `donor` | giving an item away |
| `recipient` | taking what is offered |
| `relay` | the leader between them |
| `way` | who is there, and sending an offer: as a leader, or through one |
| `envelopes` | the two envelopes of an offer, made of each other |
| `destinations` | who may be offered something, and what the relay's machine says of it |
| `payload` | what is offered, made of a receipt's row; whose journal it is in |
| `parties` | processes, owners and parties as the journal and the bus spell them |
| `events` | that a copy is dropped, for who records |
| `outcomes` | what comes of moving an item |
| `ports` | what the drivers need of the journal |
| `journal` | the journal as they use it: in its thread, to the end |
"""
