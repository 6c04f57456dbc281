"""Leading as a library: the polling machine of one runtime over a lease (locks.md 9).

| file | what is in it |
|---|---|
| `leadership` | `Leadership`, which is what others use |
| `aio` | the same for asyncio |
| `keeping` | the threads that keep a leadership |
| `polling`, `polling_steps` | the machine, driven; the part of it that does no call |
| `asks` | wishes, offered to the machine until they have come to something |
| `outcomes` | what becomes of a wish to lead |
| `standby` | waiting for one's turn |
| `work` | what runs only while this process leads: the ports |
"""
