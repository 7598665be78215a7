from __future__ import annotations

import asyncio
import os
import pickle
import threading

from odradek.broker.machine.startup_error import StartupError
from odradek.storage.disk.worker import read_message, write_message
from odradek.testing.node.child import Child
from odradek.testing.node.settings import broker_settings

NOTHING = pickle.dumps({})


class Pipes:
    """A child in a thread of this process, and the other ends of its pipes."""

    def __init__(self) -> None:
        (requests, self._requests), (self._answers, answers) = os.pipe(), os.pipe()
        self.requests, self.answers = os.fdopen(self._requests, "wb"), os.fdopen(self._answers, "rb")
        self._ends = os.fdopen(requests, "rb"), os.fdopen(answers, "wb")
        self.ended = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(Child(*self._ends, on_end=self.ended.set).run()))
        self.thread.start()

    def close(self) -> None:
        self.requests.close()
        self.thread.join()
        self.answers.close()
        for end in self._ends:
            end.close()


def test_it_answers_with_the_number_of_the_question_and_ends_with_the_pipe() -> None:
    pipes = Pipes()
    write_message(pipes.requests, broker_settings({}, {}))
    number, is_error, _started = read_message(pipes.answers)  # type: ignore[misc]
    assert (number, is_error) == (0, False)
    write_message(pipes.requests, (7, "tests.support.testing.asking", "process_id", NOTHING))
    assert read_message(pipes.answers) == (7, False, os.getpid())
    write_message(pipes.requests, (8, "tests.support.testing.asking", "never_answered", NOTHING))
    write_message(pipes.requests, (9, "tests.support.testing.asking", "nothing", NOTHING))
    number, is_error, error = read_message(pipes.answers)  # type: ignore[misc]
    assert (number, is_error, type(error)) == (9, True, KeyError)
    write_message(pipes.requests, (10, "tests.support.testing.asking", "process_id", b"c__main__\nNowhere\n."))
    number, is_error, error = read_message(pipes.answers)  # type: ignore[misc]
    assert (number, is_error, type(error)) == (10, True, pickle.UnpicklingError)
    assert "Nowhere" in str(error)
    pipes.close()
    assert pipes.ended.is_set()


def test_a_refused_start_is_the_only_answer() -> None:
    pipes = Pipes()
    write_message(pipes.requests, broker_settings({}, {"num_partitions": 0}))
    number, is_error, error = read_message(pipes.answers)  # type: ignore[misc]
    assert (number, is_error, type(error)) == (0, True, StartupError)
    pipes.close()


def test_a_pipe_that_closes_before_the_settings_ends_it() -> None:
    pipes = Pipes()
    pipes.close()
    assert not pipes.thread.is_alive()
