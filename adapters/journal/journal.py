"""The journal of one profile, open in one thread: every operation is one transaction (bus.md d; DESIGN 10).

    journal = Journal.open(real_ports(), agent_directory(DIR), "default", bot=identity_of_token(TOKEN))
    journal.raise_fence(epoch, me)                       # before anything is read, polled or published
    journal.append([Incoming(7, text)], epoch, me)       # before the offset is confirmed
    ...
    taken = journal.take(receipt_id, me)                 # Taken, Same, or Refused
    journal.start(receipt_id, taken.holder)              # before the effect
    journal.complete(receipt_id, taken.holder)

What comes back is durable. A `Refused` is an ordinary answer: nothing was changed, and why stands in the decisions. A
`JournalError` is none: see its class. Every operation may be repeated, also after `OutcomeUnknown`: what was done is
answered and not done again.
"""

from __future__ import annotations

from tenure.adapters.files.directory import AgentDirectory, require_directory, require_key
from tenure.adapters.journal.at_instance import AtInstance
from tenure.adapters.journal.at_leader import AtLeader
from tenure.adapters.journal.backup import back_up
from tenure.adapters.journal.capacity import Limits
from tenure.adapters.journal.database import Databases
from tenure.adapters.journal.events import JournalEvents
from tenure.adapters.journal.identity import BotIdentity
from tenure.adapters.journal.liveness import Liveness, ProcessLiveness
from tenure.adapters.journal.looked_at import LookedAt
from tenure.adapters.journal.opening import open_store
from tenure.adapters.journal.sqlite import SqliteDatabases
from tenure.adapters.journal.transaction import Meta
from tenure.adapters.ports import Ports
from tenure.machines.lease import DEFAULT_KEY


class Journal(AtLeader, AtInstance, LookedAt):
    """One file, open. Used by the thread that opened it; `tenure.adapters.journal.threaded` is for asyncio.

    `by` and `person` are who asks: an instance, or a person; both stand in the decisions.
    """

    @classmethod
    def open(
        cls,
        ports: Ports,
        directory: AgentDirectory,
        key: str = DEFAULT_KEY,
        *,
        bot: BotIdentity | None = None,
        create: bool = True,
        limits: Limits | None = None,
        liveness: Liveness | None = None,
        databases: Databases | None = None,
    ) -> Journal:
        """The journal of profile `key`. `bot`: whose work it is to be; None: whoever's, for looking at it and for what
        a person does. `create`: it is made where there is none.

        Raises `JournalError`; then nothing has been changed.
        """
        require_directory(directory)
        require_key(key)
        store = open_store(
            ports.files,
            SqliteDatabases() if databases is None else databases,
            ports.clock,
            ProcessLiveness(ports.processes) if liveness is None else liveness,
            journal_path(directory, key),
            limits=Limits() if limits is None else limits,
            bot=bot,
            create=create,
        )
        if ports.recorder is not None:
            store.events = JournalEvents(ports.recorder, ports.processes.me())
        return cls(store, ports.files, ports.identities, key)

    def state(self) -> Meta:
        """The fence, the highest update id that was passed, whether the first start is over, what is unsettled."""
        return self._store.read(lambda t: t.meta)

    def backup(self, target: str) -> None:
        """Copy everything, as of this moment, to an absolute path where nothing stands, while others go on. Raises
        `TenureError`; then nothing is there."""
        back_up(self._store, self._files, self._identities, target)


def journal_path(directory: AgentDirectory, key: str) -> str:
    """`DIR/tmp/telegram/journal.db`, and `journal.<profile>.db` (DESIGN 10)."""
    return f"{directory.state}/journal.db" if key == DEFAULT_KEY else f"{directory.state}/journal.{key}.db"
