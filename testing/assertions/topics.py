"""`broker.topic("t")`: the records and partitions of one topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from odradek.testing.assertions import topic_steps
from odradek.testing.assertions.asking import DEFAULT_TIMEOUT_S, answered, answered_later
from odradek.testing.assertions.topic_steps import Offsets, Reading, Where

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.testing.assertions.asking import AsksLater, AsksNow
    from odradek.testing.assertions.record_questions import Isolation, PartitionView, TopicView
    from odradek.testing.observations.records import Record

T = TypeVar("T")


def decoded(values: list[bytes | None], decode: Callable[[bytes], T]) -> list[T | None]:
    """Each value decoded; null stays None."""
    return [None if value is None else decode(value) for value in values]


class Topic:
    """One topic of a broker, which need not exist yet."""

    def __init__(self, broker: AsksNow, name: str) -> None:
        self._broker = broker
        self.name = name

    def records(
        self,
        partition: int | None = None,
        *,
        isolation: Isolation = "read_uncommitted",
        start: Offsets = None,
        end: Offsets = None,
    ) -> list[Record]:
        """The records that are there now, one partition after the other, from offset `start` up to but not including
        `end`. "read_committed" leaves out what is in aborted and open transactions, as a consumer does.

        Raises: NoSuchTopic, TooManyRecords.
        """
        reading = Reading(self.name, partition=partition, isolation=isolation, start=start, end=end, where=None)
        return answered(self._broker, topic_steps.read(reading))

    def keys(
        self,
        partition: int | None = None,
        *,
        decode: Callable[[bytes], Any] = bytes,
        isolation: Isolation = "read_uncommitted",
        start: Offsets = None,
        end: Offsets = None,
    ) -> list[Any]:
        """The keys of `records`, each decoded."""
        records = self.records(partition, isolation=isolation, start=start, end=end)
        return decoded([record.key for record in records], decode)

    def values(
        self,
        partition: int | None = None,
        *,
        decode: Callable[[bytes], Any] = bytes,
        isolation: Isolation = "read_uncommitted",
        start: Offsets = None,
        end: Offsets = None,
    ) -> list[Any]:
        """The values of `records`, each decoded: `values(decode=json.loads)`."""
        records = self.records(partition, isolation=isolation, start=start, end=end)
        return decoded([record.value for record in records], decode)

    def wait_for(
        self,
        count: int = 1,
        *,
        where: Where | None = None,
        partition: int | None = None,
        isolation: Isolation = "read_uncommitted",
        start: Offsets = None,
        timeout: float = DEFAULT_TIMEOUT_S,
    ) -> list[Record]:
        """The records that `where` takes, when there are at least `count`. The topic need not exist yet.

        Raises: WaitTimedOut, TopicDeleted, TooManyRecords, BrokerStopped.
        """
        reading = Reading(self.name, partition=partition, isolation=isolation, start=start, end=None, where=where)
        return answered(self._broker, topic_steps.wait_for(reading, count, timeout))

    def wait_until_created(self, timeout: float = DEFAULT_TIMEOUT_S) -> None:
        """Raises: WaitTimedOut, BrokerStopped."""
        answered(self._broker, topic_steps.wait_until_exists(self.name, True, timeout))

    def wait_until_deleted(self, timeout: float = DEFAULT_TIMEOUT_S) -> None:
        """Raises: WaitTimedOut, BrokerStopped."""
        answered(self._broker, topic_steps.wait_until_exists(self.name, False, timeout))

    def describe(self) -> TopicView:
        """Partitions and configs at one moment. Raises: NoSuchTopic."""
        return answered(self._broker, topic_steps.view(self.name))

    @property
    def partitions(self) -> tuple[PartitionView, ...]:
        return self.describe().partitions

    @property
    def configs(self) -> Mapping[str, str]:
        """The configs that are set at the topic."""
        return self.describe().configs

    @property
    def start_offsets(self) -> dict[int, int]:
        """By partition."""
        return {each.partition: each.log_start_offset for each in self.partitions}

    @property
    def end_offsets(self) -> dict[int, int]:
        """The log end offsets by partition."""
        return {each.partition: each.log_end_offset for each in self.partitions}

    @property
    def high_watermarks(self) -> dict[int, int]:
        """By partition."""
        return {each.partition: each.high_watermark for each in self.partitions}


class AsyncTopic:
    """The same, for coroutines."""

    def __init__(self, broker: AsksLater, name: str) -> None:
        self._broker = broker
        self.name = name

    async def records(
        self,
        partition: int | None = None,
        *,
        isolation: Isolation = "read_uncommitted",
        start: Offsets = None,
        end: Offsets = None,
    ) -> list[Record]:
        """See `Topic.records`."""
        reading = Reading(self.name, partition=partition, isolation=isolation, start=start, end=end, where=None)
        return await answered_later(self._broker, topic_steps.read(reading))

    async def keys(
        self,
        partition: int | None = None,
        *,
        decode: Callable[[bytes], Any] = bytes,
        isolation: Isolation = "read_uncommitted",
        start: Offsets = None,
        end: Offsets = None,
    ) -> list[Any]:
        """See `Topic.keys`."""
        records = await self.records(partition, isolation=isolation, start=start, end=end)
        return decoded([record.key for record in records], decode)

    async def values(
        self,
        partition: int | None = None,
        *,
        decode: Callable[[bytes], Any] = bytes,
        isolation: Isolation = "read_uncommitted",
        start: Offsets = None,
        end: Offsets = None,
    ) -> list[Any]:
        """See `Topic.values`."""
        records = await self.records(partition, isolation=isolation, start=start, end=end)
        return decoded([record.value for record in records], decode)

    async def wait_for(
        self,
        count: int = 1,
        *,
        where: Where | None = None,
        partition: int | None = None,
        isolation: Isolation = "read_uncommitted",
        start: Offsets = None,
        timeout: float = DEFAULT_TIMEOUT_S,
    ) -> list[Record]:
        """See `Topic.wait_for`."""
        reading = Reading(self.name, partition=partition, isolation=isolation, start=start, end=None, where=where)
        return await answered_later(self._broker, topic_steps.wait_for(reading, count, timeout))

    async def wait_until_created(self, timeout: float = DEFAULT_TIMEOUT_S) -> None:
        """Raises: WaitTimedOut, BrokerStopped."""
        await answered_later(self._broker, topic_steps.wait_until_exists(self.name, True, timeout))

    async def wait_until_deleted(self, timeout: float = DEFAULT_TIMEOUT_S) -> None:
        """Raises: WaitTimedOut, BrokerStopped."""
        await answered_later(self._broker, topic_steps.wait_until_exists(self.name, False, timeout))

    async def describe(self) -> TopicView:
        """Partitions, offsets and configs at one moment. Raises: NoSuchTopic."""
        return await answered_later(self._broker, topic_steps.view(self.name))
