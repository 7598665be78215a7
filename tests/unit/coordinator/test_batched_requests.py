"""What is queued while a request is in flight goes with the next one, and no error blocks the next request."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from odradek.coordinator.batched_requests import BatchedRequests, call_all

Respond = Callable[[str | None], None]


class Owner:
    """Collects words for destinations; `fail` is raised by what it names."""

    def __init__(self) -> None:
        self.waiting: dict[int, list[str]] = {}
        self.sent: list[tuple[int, list[str], Respond]] = []
        self.answers: list[tuple[list[str], str | None]] = []
        self.goes_on = True
        self.says_more = ""
        self.fail = ""
        self.requests: BatchedRequests[int, list[str], str] = BatchedRequests(self)

    def say(self, destination: int, *words: str) -> None:
        self.waiting.setdefault(destination, []).extend(words)
        self.requests.send(destination)

    def take_batch(self, destination: int, /) -> list[str] | None:
        return self.waiting.pop(destination, None)

    def send_batch(self, destination: int, batch: list[str], respond: Respond, /) -> None:
        if self.fail == "send":
            raise ZeroDivisionError
        self.sent.append((destination, batch, respond))

    def batch_answered(self, batch: list[str], response: str | None, /) -> bool:
        self.answers.append((batch, response))
        for word in self.says_more:
            self.say(1, word)
        if self.fail == "answer":
            raise ZeroDivisionError
        return self.goes_on

    def respond(self, index: int, response: str | None = "yes") -> None:
        self.sent[index][2](response)

    def batches(self) -> list[tuple[int, list[str]]]:
        return [(destination, batch) for destination, batch, _ in self.sent]


def test_what_comes_meanwhile_goes_together_when_the_first_is_answered() -> None:
    owner = Owner()
    for word in "abc":
        owner.say(1, word)
    assert owner.batches() == [(1, ["a"])]
    owner.respond(0)
    assert owner.batches() == [(1, ["a"]), (1, ["b", "c"])]
    assert owner.answers == [(["a"], "yes")]


def test_destinations_do_not_wait_for_each_other() -> None:
    owner = Owner()
    owner.say(1, "a")
    owner.say(2, "b")
    assert owner.batches() == [(1, ["a"]), (2, ["b"])]


def test_an_owner_may_hold_back_the_next() -> None:
    owner = Owner()
    owner.goes_on = False
    owner.say(1, "a")
    owner.say(1, "b")
    owner.respond(0, None)
    assert len(owner.sent) == 1
    owner.requests.send(1)
    assert len(owner.sent) == 2


def test_a_request_that_cannot_be_sent_is_not_answered_and_the_next_one_goes() -> None:
    owner = Owner()
    owner.fail = "send"
    with pytest.raises(ZeroDivisionError):
        owner.say(1, "a")
    assert owner.answers == [(["a"], None)]
    owner.fail = ""
    owner.say(1, "b")
    assert owner.batches() == [(1, ["b"])]


def test_an_answer_that_cannot_be_taken_in_does_not_keep_back_what_waits() -> None:
    owner = Owner()
    owner.say(1, "a")
    owner.say(1, "b")
    owner.fail = "answer"
    with pytest.raises(ZeroDivisionError):
        owner.respond(0)
    assert owner.batches() == [(1, ["a"]), (1, ["b"])]


def test_an_answer_that_is_given_twice_counts_once() -> None:
    owner = Owner()
    owner.say(1, "a")
    owner.respond(0)
    owner.say(1, "b")
    owner.respond(0)
    owner.say(1, "c")
    assert owner.answers == [(["a"], "yes")]
    assert owner.batches() == [(1, ["a"]), (1, ["b"])], "the second is still under way"


def test_what_an_answer_leads_to_goes_together_after_it() -> None:
    owner = Owner()
    owner.says_more = "bc"
    owner.say(1, "a")
    owner.respond(0)
    assert owner.batches() == [(1, ["a"]), (1, ["b", "c"])]


def test_all_are_called_in_order_though_one_raises() -> None:
    called: list[str] = []

    def fail() -> None:
        called.append("fails")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        call_all([lambda: called.append("a"), fail, lambda: called.append("b")])
    assert called == ["a", "fails", "b"]
