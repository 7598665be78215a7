"""A consumer of a group that runs in a process of its own: the operations, and the process seen from a test.

librdkafka 2.16 can deadlock (its issue 5476), when the metadata shows a broker no longer while a request
OffsetForLeaderEpoch to this broker is under way. Its main thread has the lock of the partition and waits for the lock
of the client; a thread of the broker has the second and waits for the first. From then on no call returns, and no
signal or time limit in Python ends such a call. So each consumer that lives through changes of brokers runs in a
process that can be killed.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import weakref
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Final, TypeVar

import confluent_kafka

from tests.support.admin import ADMIN_TIMEOUT_S
from tests.support.processes.apache.jvm import REPOSITORY

T = TypeVar("T")
POLL_S: Final = 1
START_TIMEOUT_S: Final = 60
COMMITTED_TIMEOUT_S: Final = 30


class HangsError(Exception):
    """A call of the consumer did not return, whatever limit it was given."""


def is_passing(error: confluent_kafka.KafkaException) -> bool:
    """Whether a client is to try again: a coordinator that moves, a connection that is gone."""
    cause = error.args[0]
    return bool(cause.retriable()) or cause.name() in (
        "NOT_COORDINATOR",
        "COORDINATOR_NOT_AVAILABLE",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "_TRANSPORT",
        "_TIMED_OUT",
    )


class GroupReader:
    """The only member of a group, which commits when it is told to."""

    def __init__(self, config: Mapping[str, str | int | bool], topic: str) -> None:
        self._errors: list[str] = []
        self._topic = topic
        self._consumer = confluent_kafka.Consumer({**config, "error_cb": lambda error: self._errors.append(str(error))})
        self._consumer.subscribe([topic])

    def read(self, count: int) -> list[bytes]:
        """Up to `count` values, those that come within POLL_S."""
        values = []
        for message in self._consumer.consume(count, POLL_S):
            error = message.error()
            if error is None:
                values.append(message.value())
            else:
                self._errors.append(str(error))
        return values

    def commit(self) -> bool:
        """Whether what was read is committed; if not, the caller is to try again."""
        try:
            self._consumer.commit(asynchronous=False)
        except confluent_kafka.KafkaException as error:
            if not is_passing(error):
                raise
            return False
        return True

    def committed(self) -> int | None:
        """The committed offset of partition 0; None if the coordinator does not know it yet."""
        partition = confluent_kafka.TopicPartition(self._topic, 0)
        try:
            return int(self._consumer.committed([partition], COMMITTED_TIMEOUT_S)[0].offset)
        except confluent_kafka.KafkaException as error:
            if not is_passing(error):
                raise
            return None

    def state(self) -> str:
        """What the client believes, and what the leader answers: one of them is why nothing comes."""
        assigned = self._consumer.assignment()
        known = f"errors {self._errors}, assigned {assigned}, positions {self._consumer.position(assigned)}"
        try:
            bounds = [self._consumer.get_watermark_offsets(each, ADMIN_TIMEOUT_S, cached=False) for each in assigned]
        except confluent_kafka.KafkaException as error:
            return f"{known}, no watermarks: {error}"
        return f"{known}, watermarks {bounds}"

    def close(self) -> None:
        self._consumer.close()


class ReaderProcess:
    """The process of a GroupReader; it ends with this object, or with the process of the test."""

    def __init__(self, config: Mapping[str, str | int | bool], topic: str) -> None:
        self._connection, theirs = multiprocessing.Pipe()
        command = f"from {__name__} import serve; serve({theirs.fileno()})"
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", command], pass_fds=[theirs.fileno()], cwd=REPOSITORY
            )
        self.kill = weakref.finalize(self, _kill, self._process, self._connection)
        """SIGKILL; a test that fails before it calls this leaves no process."""
        self._connection.send((dict(config), topic))
        assert self._connection.poll(START_TIMEOUT_S), "the process of the consumer has not started"
        self._connection.recv()

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, operation: Callable[[GroupReader], T], timeout_s: float) -> T:
        """The result of `operation`, a method of GroupReader or a `partial` of one.

        Raises:
            HangsError: it did not return within `timeout_s`.
            AssertionError: it raised; the traceback is on the standard error of the process.
        """
        self._connection.send(operation)
        if not self._connection.poll(timeout_s):
            raise HangsError(f"{operation} did not return within {timeout_s} s")
        try:
            result: T = self._connection.recv()
        except EOFError:
            raise AssertionError(f"the process of the consumer ended during {operation}") from None
        return result


def _kill(process: subprocess.Popen[bytes], connection: Connection) -> None:
    process.kill()
    process.wait()
    connection.close()


def serve(descriptor: int) -> None:
    """The process: calls what it is sent, until the other end is closed."""
    with Connection(descriptor) as connection:
        reader = GroupReader(*connection.recv())
        connection.send("ready")  # the start does not count as part of the first call
        while True:
            try:
                operation = connection.recv()
            except EOFError:
                return
            connection.send(operation(reader))
