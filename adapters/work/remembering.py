"""Whose a thread is, is in the journal before anybody is told that he has it: so what is written in it finds him again,
also when he comes back with another thread, and when whoever led then is dead (L21).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tenure.adapters.fleet.leader.routing_steps import Boarded
from tenure.adapters.fleet.places import spelled
from tenure.adapters.fleet.threads.provisioning import Provisioned, Provisioning, ProvisionRequest
from tenure.machines.follower_messages import Target as Spelled
from tenure.machines.slot_board import Board, Target

Remember = Callable[[Spelled, ProvisionRequest], Awaitable[None]]
"""A thread is the binding's that the request names, durably. Raises TenureError where that could not be written: then
nobody gets it."""


class Remembering:
    """`Provisioning` that remembers."""

    def __init__(self, inner: Provisioning, remember: Remember) -> None:
        self._inner = inner
        self._remember = remember

    async def provision(self, request: ProvisionRequest, epoch: int) -> Provisioned:
        """As the port says."""
        got = await self._inner.provision(request, epoch)
        target = spelled(got.target)
        assert target is not None
        await self._remember(target, request)
        return got

    async def clean_up(self, target: Target, instance: str, generation: str | None) -> None:
        """As the port says."""
        await self._inner.clean_up(target, instance, generation)


class BoardedRemembering(Remembering):
    """The same, of one that has a board."""

    def __init__(self, inner: Provisioning, boarded: Boarded, remember: Remember) -> None:
        super().__init__(inner, remember)
        self._boarded = boarded

    @property
    def board(self) -> Board:
        """As `Boarded` says."""
        return self._boarded.board

    @board.setter
    def board(self, board: Board) -> None:
        self._boarded.board = board

    def begin_leading(self, board: Board, key: str, epoch: int) -> None:
        """As `Boarded` says."""
        self._boarded.begin_leading(board, key, epoch)


def remembering(inner: Provisioning, remember: Remember) -> Provisioning:
    """`inner`, with `remember` told of each thread that it gives."""
    return BoardedRemembering(inner, inner, remember) if isinstance(inner, Boarded) else Remembering(inner, remember)
