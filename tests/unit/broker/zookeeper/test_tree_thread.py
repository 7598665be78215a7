from __future__ import annotations

import asyncio
import threading
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from odradek.broker.zookeeper.requests.request_processor import RequestProcessor
from odradek.broker.zookeeper.tree_thread import CALLS_A_TURN, OUTPUT_BYTES_MAX, OUTPUTS_MAX, TreeThread
from odradek.controller.tree.service_store import ServiceStore, StoreUnavailable
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test


def _thread(path: str, failures: list[Exception] | None = None) -> TreeThread:
    failed = failures.append if failures is not None else pytest.fail
    return TreeThread(path, ManualClock(1_000_000), lambda session_id: None, failed)  # type: ignore[arg-type]


@async_test
async def test_output_runs_on_the_loop_when_the_transaction_is_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    commit = ServiceStore.commit
    is_committing, may_commit = threading.Event(), threading.Event()

    def held(store: ServiceStore) -> None:
        is_committing.set()
        assert may_commit.wait(5)
        commit(store)
        order.append("commit")

    thread = _thread(":memory:")
    await thread.open()
    monkeypatch.setattr(ServiceStore, "commit", held)
    done = asyncio.get_running_loop().create_future()

    def work(processor: RequestProcessor) -> None:
        order.append("work")
        processor.output.append(partial(order.append, "output"))
        processor.output.append(partial(done.set_result, None))

    thread.submit(work)
    assert await asyncio.to_thread(is_committing.wait, 5)
    for _ in range(3):
        await asyncio.sleep(0)
    assert order == ["work"]
    may_commit.set()
    await done
    assert order == ["work", "commit", "output"]
    await thread.close()


@async_test
async def test_what_was_submitted_before_the_close_is_applied() -> None:
    thread = _thread(":memory:")
    await thread.open()
    applied: list[int] = []
    for number in range(300):
        thread.submit(lambda processor, number=number: applied.append(number))  # type: ignore[misc]
    await thread.close()
    assert applied == list(range(300))


@async_test
async def test_a_failure_of_the_database_is_reported_once_and_nothing_is_answered() -> None:
    failures: list[Exception] = []
    thread = _thread(":memory:", failures)
    await thread.open()
    answers: list[str] = []

    def broken(processor: RequestProcessor) -> None:
        processor.output.append(partial(answers.append, "answered"))
        raise OSError("the disk")

    thread.submit(broken)
    await thread.close()
    await asyncio.sleep(0)
    assert [str(error) for error in failures] == ["the disk"]
    assert answers == []


@async_test
async def test_a_database_that_is_in_use_or_cannot_be_made(tmp_path: Path) -> None:
    path = str(tmp_path / "tree.db")
    first = _thread(path)
    await first.open()
    with pytest.raises(StoreUnavailable, match="in use by a running service"):
        await _thread(path).open()
    await first.close()
    with pytest.raises(StoreUnavailable, match="cannot open"):
        await _thread(str(tmp_path / "none" / "tree.db")).open()


@async_test
async def test_a_question_is_answered_after_what_came_before() -> None:
    thread = _thread(":memory:")
    await thread.open()
    seen: list[str] = []
    thread.submit(lambda processor: seen.append("before"))
    assert await thread.ask(lambda processor: ",".join(seen)) == "before"
    await thread.close()


@async_test
async def test_a_question_has_an_error_when_the_thread_has_ended() -> None:
    failures: list[Exception] = []
    thread = _thread(":memory:", failures)
    await thread.open()

    def broken(processor: RequestProcessor) -> str:
        raise OSError("the disk")

    with pytest.raises(StoreUnavailable):
        await thread.ask(broken)
    with pytest.raises(StoreUnavailable):
        await thread.ask(lambda processor: "never")
    assert len(failures) == 1
    await thread.close()


@async_test
async def test_many_answers_of_one_request_are_sent_in_turns_and_in_order() -> None:
    thread = _thread(":memory:")
    await thread.open()
    turns: list[int] = [0]
    sent: list[tuple[int, int]] = []
    loop = asyncio.get_running_loop()

    def next_turn() -> None:
        turns[0] += 1
        loop.call_soon(next_turn)

    def answer(processor: RequestProcessor, first: int, count: int) -> None:
        for number in range(first, first + count):
            processor.output.append(lambda number=number: sent.append((turns[0], number)))  # type: ignore[misc]
        processor.output_bytes += OUTPUT_BYTES_MAX + 1  # the end of this transaction

    next_turn()
    count = 2 * CALLS_A_TURN + 1
    thread.submit(partial(answer, first=0, count=count))
    thread.submit(partial(answer, first=count, count=1))
    await thread.ask(lambda processor: "")
    assert [number for _, number in sent] == list(range(count + 1))
    assert max(Counter(turn for turn, _ in sent).values()) == CALLS_A_TURN
    await thread.close()


@async_test
async def test_an_answer_that_cannot_be_sent_keeps_no_other_waiting() -> None:
    thread = _thread(":memory:")
    await thread.open()
    errors: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context["exception"]))
    sent: list[str] = []

    def fail() -> None:
        raise ValueError("no such socket")

    for _ in range(OUTPUTS_MAX + 1):
        thread.submit(lambda processor: processor.output.extend([fail, partial(sent.append, "sent")]))
    await thread.close()
    assert (sent, len(errors)) == (["sent"] * (OUTPUTS_MAX + 1), OUTPUTS_MAX + 1)


@async_test
async def test_long_answers_wait_for_the_event_loop() -> None:
    """They are in memory until the loop gives them to the sockets."""
    thread = _thread(":memory:")
    await thread.open()
    applied = [threading.Event() for _ in range(OUTPUTS_MAX + 3)]
    sent: list[int] = []

    def answer_long(processor: RequestProcessor, number: int) -> None:
        processor.output.append(partial(sent.append, number))
        processor.output_bytes += OUTPUT_BYTES_MAX + 1
        applied[number].set()

    for number in range(len(applied)):
        thread.submit(partial(answer_long, number=number))
    # While this test does not await, the event loop sends nothing.
    assert applied[OUTPUTS_MAX].wait(5)
    assert not applied[OUTPUTS_MAX + 1].wait(0.05)
    await thread.close()
    assert sent == list(range(len(applied)))
