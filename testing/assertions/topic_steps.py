"""What `Topic` and `AsyncTopic` do, as steps: reading a topic in slices, and waiting for its records.

A wait reads only what is new since its last slice, filters it in the process of the test (so `where` may be any
function), and asks again. It ends with a clear error if the topic is deleted meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from odradek.testing.assertions.asking import Deadline, ask
from odradek.testing.assertions.record_questions import RecordsSlice, TopicView
from odradek.testing.errors import NoSuchTopic, TooManyRecords, TopicDeleted, WaitTimedOut
from odradek.testing.observations.records import Record, records_in

if TYPE_CHECKING:
    from odradek.testing.assertions.asking import Steps
    from odradek.testing.assertions.record_questions import Isolation, ProducerView

RECORDS_MAX: Final = 1_000_000
BYTES_MAX: Final = 256 * 1024 * 1024
"""Of the keys and values that one call returns."""

SHOWN_RECORDS: Final = 10
"""Of the last records, in the message of a wait that has timed out."""

Where = Callable[[Record], object]
Offsets = int | Mapping[int, int] | None
"""An offset for all partitions, or one for each."""


def names(*, internal: bool) -> Steps[list[str]]:
    """The names of all topics, sorted."""
    return ask(list, "topics", internal=internal)


def producers(topic: str, partition: int) -> Steps[list[ProducerView]]:
    """The idempotent and transactional producers that the log of the partition knows. Raises: KafkaError."""
    return ask(list, "producers", topic=topic, partition=partition)


class Reading:
    """How far the records of a topic were read, and what was found."""

    def __init__(
        self,
        topic: str,
        *,
        partition: int | None,
        isolation: Isolation,
        start: Offsets,
        end: Offsets,
        where: Where | None,
        records_max: int = RECORDS_MAX,
        bytes_max: int = BYTES_MAX,
    ) -> None:
        self.topic = topic
        self.found: list[Record] = []
        self.others: list[Record] = []
        """The last records that `where` does not take."""
        self._partition = partition
        self._isolation = isolation
        self._end = end
        self._where = where
        self._records_max = records_max
        self._bytes_max = bytes_max
        self._bytes = 0
        self._topic_id: bytes | None = None
        self._start = start
        self._positions: Mapping[int, int] = dict(start) if isinstance(start, Mapping) else {}
        self.ends: Mapping[int, int] = {}
        """Where the partitions ended at the last slice."""

    def next_slice(self, wait_s: float = 0) -> Steps[bool]:
        """Read the next slice; whether there is no more now. Raises: NoSuchTopic, TopicDeleted, TooManyRecords."""
        found = yield from ask(
            RecordsSlice,
            "topic_records",
            topic=self.topic,
            positions=self._positions,
            start=self._start if isinstance(self._start, int) else 0,
            isolation=self._isolation,
            partition=self._partition,
            wait_s=wait_s,
        )
        if self._topic_id not in (None, found.topic_id):
            what = "deleted" if found.topic_id is None else "deleted and created again"
            raise TopicDeleted(f"Topic {self.topic} was {what} after {len(self.found)} of its records were read")
        self._topic_id, self._positions, self.ends = found.topic_id, found.positions, found.ends
        for piece in found.pieces:
            for record in records_in(piece):
                self._take(record)
        return found.is_complete

    @property
    def has_topic(self) -> bool:
        """The topic was there at the last slice."""
        return self._topic_id is not None

    def has_read_to(self, ends: Mapping[int, int]) -> bool:
        return all(self._positions.get(partition, 0) >= end for partition, end in ends.items())

    def _take(self, record: Record) -> None:
        end = self._end.get(record.partition) if isinstance(self._end, Mapping) else self._end
        if end is not None and record.offset >= end:
            return
        if self._isolation == "read_committed" and record.transaction == "aborted":
            return
        if self._where is not None and not self._where(record):
            self.others = [*self.others[1 - SHOWN_RECORDS :], record]
            return
        self._bytes += len(record.key or b"") + len(record.value or b"")
        if len(self.found) >= self._records_max or self._bytes > self._bytes_max:
            raise TooManyRecords(
                f"Topic {self.topic} has more than {self._records_max} records, or more than {self._bytes_max} bytes "
                "of keys and values: read one partition, or offsets from `start` to `end`"
            )
        self.found.append(record)


def read(reading: Reading) -> Steps[list[Record]]:
    """All records that are there now. Raises: NoSuchTopic, TooManyRecords."""
    is_complete = yield from reading.next_slice()
    ends = reading.ends
    while not (is_complete or reading.has_read_to(ends)):  # a producer may be faster than this
        is_complete = yield from reading.next_slice()
    if not reading.has_topic:
        names = yield from ask(list, "topics", internal=True)
        raise NoSuchTopic(f"There is no topic {reading.topic}; there are: {', '.join(names) or 'none'}")
    return reading.found


def wait_for(reading: Reading, count: int, timeout_s: float) -> Steps[list[Record]]:
    """The records, when there are `count`. Raises: WaitTimedOut, TopicDeleted, TooManyRecords, BrokerStopped."""
    deadline = Deadline(timeout_s)
    is_complete = False
    ends: Mapping[int, int] | None = None
    """Of the partitions when the time is over: a producer may be faster than this."""
    while len(reading.found) < count:
        if deadline.is_over and (is_complete or (ends is not None and reading.has_read_to(ends))):
            raise WaitTimedOut((yield from _what_is_there(reading, count, deadline)))
        is_complete = yield from reading.next_slice(deadline.left_s if is_complete else 0)
        if deadline.is_over and ends is None:
            ends = reading.ends
    return reading.found


def _what_is_there(reading: Reading, count: int, deadline: Deadline) -> Steps[str]:
    wanted = f"Waited {deadline} for {_records(count)} in topic {reading.topic}"
    if not reading.has_topic:
        names = yield from ask(list, "topics", internal=True)
        return f"{wanted}: there is no such topic; there are: {', '.join(names) or 'none'}"
    lines = [f"{wanted}: there {'is' if len(reading.found) == 1 else 'are'} {len(reading.found)}"]
    lines += [f"    {record}" for record in reading.found[-SHOWN_RECORDS:]]
    if reading.others:
        lines += ["  and among the records that `where` does not take:"]
        lines += [f"    {record}" for record in reading.others]
    return "\n".join(lines)


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count} records"


def view(topic: str) -> Steps[TopicView]:
    """Raises: NoSuchTopic."""
    exists = yield from ask(bool, "topic_exists", topic=topic, is_wanted=True, wait_s=0)
    if not exists:
        names = yield from ask(list, "topics", internal=True)
        raise NoSuchTopic(f"There is no topic {topic}; there are: {', '.join(names) or 'none'}")
    return (yield from ask(TopicView, "topic_view", topic=topic))


def wait_until_exists(topic: str, is_wanted: bool, timeout_s: float) -> Steps[None]:
    """Wait until the topic exists, or until it does not. Raises: WaitTimedOut, BrokerStopped."""
    exists = yield from ask(bool, "topic_exists", topic=topic, is_wanted=is_wanted, wait_s=timeout_s)
    if exists is not is_wanted:
        names = yield from ask(list, "topics", internal=True)
        end = "to be created" if is_wanted else "to be deleted"
        raise WaitTimedOut(f"Waited {timeout_s:g} s for topic {topic} {end}; there are: {', '.join(names) or 'none'}")
