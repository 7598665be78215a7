"""Producer ids come from blocks; a block is asked for before the last one is used up."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest

from odradek.broker.producer_ids import ProducerIdManager
from odradek.protocol.errors import ErrorCode, KafkaError


class Allocator:
    """Gives blocks of `size` ids; `run()` lets the spawned coroutines finish."""

    def __init__(self, size: int = 10) -> None:
        self.size = size
        self.allocated = 0
        self.fails = False
        self.spawned: list[Coroutine[Any, Any, None]] = []
        self.manager = ProducerIdManager(self.allocate, self.spawned.append)
        self.answers: list[int | ErrorCode] = []

    async def allocate(self) -> tuple[int, int]:
        if self.fails:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        first = self.allocated * self.size
        self.allocated += 1
        return first, self.size

    def run(self) -> None:
        while self.spawned:
            try:
                self.spawned.pop(0).send(None)
            except StopIteration:
                continue

    def ask(self, times: int = 1) -> list[int | ErrorCode]:
        before = len(self.answers)
        for _ in range(times):
            self.manager.next(self.answers.append)
        return self.answers[before:]


def test_first_request_waits_for_the_first_block() -> None:
    ids = Allocator()
    assert ids.ask() == []
    ids.run()
    assert ids.answers == [0]


def test_ids_of_a_block_follow_each_other() -> None:
    ids = Allocator()
    ids.ask(3)
    ids.run()
    assert ids.answers == [0, 1, 2]


def test_next_block_is_asked_for_at_nine_tenths() -> None:
    ids = Allocator(size=10)
    ids.ask(1)
    ids.run()
    ids.ask(7)
    assert not ids.spawned
    ids.ask(1)
    assert len(ids.spawned) == 1
    ids.run()
    assert ids.ask(3) == [9, 10, 11]


def test_client_comes_again_when_the_next_block_is_late() -> None:
    ids = Allocator(size=10)
    ids.ask(1)
    ids.run()
    ids.ask(9)
    assert ids.ask(2) == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2
    ids.run()
    assert ids.ask() == [10]


def test_no_controller_is_an_answer_and_asked_again_next_time() -> None:
    ids = Allocator()
    ids.fails = True
    ids.ask()
    ids.run()
    assert ids.answers == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    ids.fails = False
    ids.ask()
    ids.run()
    assert ids.answers[-1] == 0


def test_no_id_is_given_twice() -> None:
    ids = Allocator(size=7)
    ids.ask()
    for _ in range(500):
        ids.run()
        ids.ask()
    given = [answer for answer in ids.answers if not isinstance(answer, ErrorCode)]
    assert len(given) == len(set(given))
    assert len(given) > 400


def test_whoever_waits_is_answered_even_when_the_allocation_breaks() -> None:
    answers: list[int | ErrorCode] = []
    spawned: list[Coroutine[Any, Any, None]] = []

    async def allocate() -> tuple[int, int]:
        raise ConnectionError("the metadata tree is gone")

    ProducerIdManager(allocate, spawned.append).next(answers.append)
    with pytest.raises(ConnectionError):
        spawned.pop().send(None)
    assert answers == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
