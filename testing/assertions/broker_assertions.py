"""The methods of `testing.Broker` and `testing.AsyncBroker` that look into the broker: mixed into both.

A method imports what it needs, because these modules take as long to import as a quarter of the start of a broker in a
process of its own: without them the process starts earlier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.testing.assertions.asking import DEFAULT_TIMEOUT_S, answered, answered_later

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.testing.assertions.groups import AsyncGroup, Group
    from odradek.testing.assertions.record_questions import ProducerView
    from odradek.testing.assertions.topics import AsyncTopic, Topic
    from odradek.testing.assertions.transaction_questions import TransactionView
    from odradek.testing.assertions.transactions import AsyncTransaction, Transaction
    from odradek.testing.observations.recorded_request import RecordedRequest


class BrokerAssertions:
    """For callers that block."""

    def ask(self, name: str, /, **arguments: object) -> object:
        """See `asking.AsksNow`."""
        raise NotImplementedError

    def topic(self, name: str) -> Topic:
        """One topic, which need not exist yet."""
        from odradek.testing.assertions.topics import Topic

        return Topic(self, name)

    def topics(self, *, internal: bool = False) -> list[str]:
        """The names of all topics, sorted."""
        from odradek.testing.assertions.topic_steps import names

        return answered(self, names(internal=internal))

    def producers(self, topic: str, partition: int) -> list[ProducerView]:
        """The idempotent and transactional producers that the log of the partition knows. Raises: KafkaError."""
        from odradek.testing.assertions.topic_steps import producers

        return answered(self, producers(topic, partition))

    def group(self, group_id: str) -> Group:
        """One consumer group, which need not exist yet."""
        from odradek.testing.assertions.groups import Group

        return Group(self, group_id)

    def groups(self) -> list[str]:
        """The ids of all groups, sorted."""
        from odradek.testing.assertions.group_steps import ids

        return answered(self, ids())

    def transaction(self, transactional_id: str) -> Transaction:
        """One transactional id, which need not exist yet."""
        from odradek.testing.assertions.transactions import Transaction

        return Transaction(self, transactional_id)

    def transactions(self) -> list[TransactionView]:
        """All transactional ids, sorted."""
        from odradek.testing.assertions.transaction_steps import views

        return answered(self, views())

    def requests(
        self,
        api: str | None = None,
        *,
        client_id: str | None = None,
        topic: str | None = None,
        since: RecordedRequest | int | None = None,
        where: Callable[[RecordedRequest], object] | None = None,
        own: bool = False,
    ) -> list[RecordedRequest]:
        """The answered requests, oldest answer first. `api`: Kafka's name, `Produce`; `since`: only those that were
        answered after this one; `own`: with the requests of the broker to itself.
        """
        from odradek.testing.assertions.request_steps import Selection, number_of, select

        selection = Selection(api=api, client_id=client_id, topic=topic, since=number_of(since), where=where, own=own)
        return answered(self, select(selection))

    def wait_for_request(
        self,
        api: str | None = None,
        *,
        count: int = 1,
        client_id: str | None = None,
        topic: str | None = None,
        since: RecordedRequest | int | None = None,
        where: Callable[[RecordedRequest], object] | None = None,
        timeout: float = DEFAULT_TIMEOUT_S,
    ) -> list[RecordedRequest]:
        """The same, when there are at least `count`. Raises: WaitTimedOut, BrokerStopped."""
        from odradek.testing.assertions.request_steps import Selection, number_of, wait_for

        selection = Selection(api=api, client_id=client_id, topic=topic, since=number_of(since), where=where)
        return answered(self, wait_for(selection, count, timeout))

    def assert_requested(
        self,
        api: str | None = None,
        *,
        times: int | None = None,
        client_id: str | None = None,
        topic: str | None = None,
        since: RecordedRequest | int | None = None,
        where: Callable[[RecordedRequest], object] | None = None,
    ) -> list[RecordedRequest]:
        """The same, of which there must be some, or exactly `times`. Raises: AssertionError."""
        from odradek.testing.assertions.request_steps import Selection, assert_requested, number_of

        selection = Selection(api=api, client_id=client_id, topic=topic, since=number_of(since), where=where)
        return answered(self, assert_requested(selection, times))

    def last_request_number(self) -> int:
        """The number of the request that was answered last, for `since`."""
        from odradek.testing.assertions.request_steps import last_number

        return answered(self, last_number())

    def clear_requests(self) -> None:
        """Forget the recorded requests."""
        from odradek.testing.assertions.request_steps import clear

        answered(self, clear())

    def failure_report(self) -> str:
        """What the broker saw: the last requests, topics, groups, open transactions, warnings."""
        from odradek.testing.assertions.failure_report import report

        return answered(self, report())


class AsyncBrokerAssertions:
    """For coroutines: the same names."""

    def ask(self, name: str, /, **arguments: object) -> Awaitable[object]:
        """See `asking.AsksLater`."""
        raise NotImplementedError

    def topic(self, name: str) -> AsyncTopic:
        """See `BrokerAssertions`; so are the others."""
        from odradek.testing.assertions.topics import AsyncTopic

        return AsyncTopic(self, name)

    async def topics(self, *, internal: bool = False) -> list[str]:
        from odradek.testing.assertions.topic_steps import names

        return await answered_later(self, names(internal=internal))

    async def producers(self, topic: str, partition: int) -> list[ProducerView]:
        from odradek.testing.assertions.topic_steps import producers

        return await answered_later(self, producers(topic, partition))

    def group(self, group_id: str) -> AsyncGroup:
        from odradek.testing.assertions.groups import AsyncGroup

        return AsyncGroup(self, group_id)

    async def groups(self) -> list[str]:
        from odradek.testing.assertions.group_steps import ids

        return await answered_later(self, ids())

    def transaction(self, transactional_id: str) -> AsyncTransaction:
        from odradek.testing.assertions.transactions import AsyncTransaction

        return AsyncTransaction(self, transactional_id)

    async def transactions(self) -> list[TransactionView]:
        from odradek.testing.assertions.transaction_steps import views

        return await answered_later(self, views())

    async def requests(
        self,
        api: str | None = None,
        *,
        client_id: str | None = None,
        topic: str | None = None,
        since: RecordedRequest | int | None = None,
        where: Callable[[RecordedRequest], object] | None = None,
        own: bool = False,
    ) -> list[RecordedRequest]:
        from odradek.testing.assertions.request_steps import Selection, number_of, select

        selection = Selection(api=api, client_id=client_id, topic=topic, since=number_of(since), where=where, own=own)
        return await answered_later(self, select(selection))

    async def wait_for_request(
        self,
        api: str | None = None,
        *,
        count: int = 1,
        client_id: str | None = None,
        topic: str | None = None,
        since: RecordedRequest | int | None = None,
        where: Callable[[RecordedRequest], object] | None = None,
        timeout: float = DEFAULT_TIMEOUT_S,
    ) -> list[RecordedRequest]:
        from odradek.testing.assertions.request_steps import Selection, number_of, wait_for

        selection = Selection(api=api, client_id=client_id, topic=topic, since=number_of(since), where=where)
        return await answered_later(self, wait_for(selection, count, timeout))

    async def assert_requested(
        self,
        api: str | None = None,
        *,
        times: int | None = None,
        client_id: str | None = None,
        topic: str | None = None,
        since: RecordedRequest | int | None = None,
        where: Callable[[RecordedRequest], object] | None = None,
    ) -> list[RecordedRequest]:
        from odradek.testing.assertions.request_steps import Selection, assert_requested, number_of

        selection = Selection(api=api, client_id=client_id, topic=topic, since=number_of(since), where=where)
        return await answered_later(self, assert_requested(selection, times))

    async def last_request_number(self) -> int:
        from odradek.testing.assertions.request_steps import last_number

        return await answered_later(self, last_number())

    async def clear_requests(self) -> None:
        from odradek.testing.assertions.request_steps import clear

        await answered_later(self, clear())

    async def failure_report(self) -> str:
        from odradek.testing.assertions.failure_report import report

        return await answered_later(self, report())
