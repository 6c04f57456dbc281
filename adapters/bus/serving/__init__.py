"""Who answers on the bus: a server within its bounds, and the request ledger (bus.md a).

| file | what is in it |
|---|---|
| `server` | answering lines, every one concurrently |
| `door`, `connection` | letting connections in; one of them, from bytes to lines and back |
| `reading` | lines that become envelopes, long ones in a thread |
| `structure` | how much of a line is structure, before it is parsed |
| `under_way` | requests that are being answered, and which hang |
| `limits`, `shares` | what a server bears; what each process on the other end has of it |
| `counting` | what a server has seen |
| `ledger` | the driver of REQUEST_LEDGER: a request is executed once |
| `ledger_answers` | the answers that it keeps for who asks again |
"""
