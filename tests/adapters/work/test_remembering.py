"""Whose a thread is, told before anybody else is."""

from __future__ import annotations

import asyncio

import pytest

from tenure.adapters.errors import TenureError
from tenure.adapters.fleet.leader.routing_steps import Boarded
from tenure.adapters.fleet.threads.provisioning import LocalProvisioning, Provisioned, ProvisionRequest
from tenure.adapters.testing.memory import memory_ports
from tenure.adapters.work.remembering import remembering
from tenure.machines.slot_board import Board, Target


def test_each_thread_is_remembered_before_it_is_given() -> None:
    async def story() -> None:
        told: list[tuple[object, str]] = []
        local = LocalProvisioning(memory_ports())

        async def remember(target: object, request: ProvisionRequest) -> None:
            told.append((target, request.key))

        provisioning = remembering(local, remember)
        got = await provisioning.provision(ProvisionRequest("1:1", "g", "manual:a"), 1)
        assert told == [("0/1", "manual:a")]
        assert got.target == Target(0, 1)
        assert isinstance(provisioning, Boarded)
        assert provisioning.board is local.board
        provisioning.begin_leading(Board(), "cwd:/", 2)
        assert local.board.records == ()
        provisioning.board = Board(next_thread=7)
        assert local.board.next_thread == 7
        await provisioning.clean_up(Target(0, 1), "1:1", "g")

    asyncio.run(story())


def test_what_cannot_be_remembered_is_given_to_nobody() -> None:
    class Elsewhere:
        async def provision(self, request: ProvisionRequest, epoch: int) -> Provisioned:
            return Provisioned(Target(5, 6), None, None)

        async def clean_up(self, target: Target, instance: str, generation: str | None) -> None: ...

    async def story() -> None:
        async def remember(target: object, request: ProvisionRequest) -> None:
            raise TenureError("the disk is full")

        provisioning = remembering(Elsewhere(), remember)
        assert not isinstance(provisioning, Boarded)
        with pytest.raises(TenureError, match="full"):
            await provisioning.provision(ProvisionRequest("1:1", "g", "manual:a"), 1)

    asyncio.run(story())
