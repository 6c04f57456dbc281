"""What befalls processes, messages and rows in the binding of `DurableAdmission`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

import attrs

from tenure.adapters.verify.bind.admission_seen import Known
from tenure.adapters.verify.bind.admission_world import PIDS, AdmissionWorld, Around
from tenure.adapters.verify.bind.binding import Move, World
from tenure.adapters.verify.bind.journal_ports import Facts, Op
from tenure.models.durable_admission_state import (
    HOME,
    NO,
    NOTHING,
    Msg,
)


class AdmissionMoves(AdmissionWorld):
    """With what befalls it."""

    def moves(self, world: World, left: int) -> Iterable[Move]:
        around, s = world.extra, self.setting
        assert isinstance(around, Around)
        if around.was is not None:
            return
        hearing = self._hearing(around)

        def move(label: str, name: str, args: tuple[Hashable, ...], after: Around, cost: int) -> Move:
            return Move(label, attrs.evolve(world, extra=after), cost, twin=((name, args),))

        waits = any(k.empty or (k.skips and k.poll == NOTHING) for _, k in around.known)
        if around.sent < s.last and not waits:
            yield move("an update is sent", "Send", (), attrs.evolve(around, sent=around.sent + 1), 0)
        if "lose" in s.causes:
            for m in around.net - hearing:
                yield move(f"{m} is lost", "Lose", (), attrs.evolve(around, net=around.net - {m}), 1)
        if "babble" in s.causes:
            yield from self._babbles(world, around, hearing)
        if "move" in s.causes and not any(k.deciding for _, k in around.known):
            yield move("the threads are exchanged", "Move", (1,), attrs.evolve(around, moved=not around.moved), 1)
        yield from self._persons(world, around)
        for p, k in around.known:
            up = around.is_up(p) == "yes"
            if any(other.deciding for q, other in around.known if q != p):
                continue
            if up and "silent" in s.causes and p in around.reg:
                yield move(f"{p} is silent", "Silent", (p,), attrs.evolve(around, reg=around.reg - {p}), 1)
            if up and self._registers(around, p, k):
                yield move(f"{p} registers", "Register", (p,), attrs.evolve(around, reg=around.reg | {p}), 0)
            if up and "crash" in s.causes and p not in s.away:
                yield from self._crashes(world, around, p, k)

    def _babbles(self, world: World, around: Around, hearing: set[Msg]) -> Iterator[Move]:
        """An instance that is not ours answers something."""
        for m in around.net - hearing:
            if m.kind == "forward" and around.is_up(m.to) == "yes" and self._listens(around, m):
                for ok, b, g in ((True, NO, 0), (True, m.b, 1), (False, NO, 0)):
                    said = Msg("ack", m.to, m.epoch, m.i, b, g, ok=ok)
                    after = attrs.evolve(around, net=(around.net - {m}) | {said})
                    twin = (("Babble", (m.to, m.i)),)
                    yield Move(f"somebody answers {said}", attrs.evolve(world, extra=after), 1, twin=twin)

    def _persons(self, world: World, around: Around) -> Iterator[Move]:
        """What a person does with the journal; and that a binding is given up that nobody will serve."""
        rows, causes = self.journals.rows, self.setting.causes
        ops: list[tuple[str, int, Op, int]] = []
        for r in rows(around.content, "updates"):
            i = r["update_id"]
            gone = r["binding"] is not None and all(u == "dead" for p, u in around.up if HOME[p] == r["binding"])
            if "move" in causes:
                ops.append(("Release", i, Op("release_update", (i, "ann"), (("gone", gone),)), 0))
            if "person" in causes:
                ops.append(("Discard", i, Op("discard_update", (i, "ann")), 1))
        for d in rows(around.content, "deliveries") if "person" in causes else ():
            ops.append(("Waive", d["update_id"], Op("discard", (d["receipt_id"], "ann")), 1))
            ops.append(("Again", d["update_id"], Op("retry", (d["receipt_id"], "ann")), 1))
        for name, i, op, cost in ops:
            outcome = self.journals.outcomes(around.content, op, Facts(), False)[0]
            if outcome.content == around.content:
                continue
            effects = tuple(0 if name == "Again" and j == i - 1 else n for j, n in enumerate(around.effects))
            after = attrs.evolve(around, content=outcome.content, effects=effects)
            yield Move(f"a person: {op}", attrs.evolve(world, extra=after), cost, twin=((name, (i,)),))

    def _registers(self, around: Around, p: str, known: Known) -> bool:
        led = any(
            self._leads_now(around, q, k) and around.is_up(q) == "yes" and HOME[q] != HOME[p] for q, k in around.known
        )
        return self.setting.parts.forwards and led and p not in around.reg and not (known.epoch or known.tries)

    def _crashes(self, world: World, around: Around, p: str, known: Known) -> Iterator[Move]:
        up = tuple((q, "dead" if q == p else u) for q, u in around.up)
        epoch = self._epoch(around, known)
        dead = attrs.evolve(
            around.knows(p, Known(alive=False)),
            up=up,
            reg=around.reg - {p},
            given=frozenset(g for g in around.given if g[0] != p),
        )
        said = frozenset(m for m in around.net if (m.to != p if m.kind == "forward" else m.epoch != epoch))
        unsaid = frozenset(m for m in around.net if m.to != p and m.epoch != epoch)
        hearing = self._hearing(around.knows(p, Known()))
        for net in {said} if hearing & around.net else {said, unsaid}:
            after = attrs.evolve(world, extra=attrs.evolve(dead, net=net)).with_process(PIDS[p], False, 1)
            yield Move(f"{p} dies", after, 1, ends=frozenset({PIDS[p]}), twin=self.crash(PIDS[p]))

    def crash(self, pid: int) -> tuple[tuple[str, tuple[Hashable, ...]], ...]:
        return (("Crash", (self.names[pid],)),)
