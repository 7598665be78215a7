"""The methods of `testing.Broker` and `testing.AsyncBroker` that look into the broker: mixed into both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.testing.assertions import (
    failure_report,  # noqa: F401 - registers its question
    request_steps,
    transaction_steps,
)
from odradek.testing.assertions.asking import DEFAULT_TIMEOUT_S, answered, answered_later, ask
from odradek.testing.assertions.groups import AsyncGroup, Group
from odradek.testing.assertions.record_questions import ProducerView
from odradek.testing.assertions.request_steps import Selection, number_of
from odradek.testing.assertions.topics import AsyncTopic, Topic
from odradek.testing.assertions.transactions import AsyncTransaction, Transaction
from odradek.testing.observations.recorded_request import RecordedRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.testing.assertions.transaction_questions import TransactionView


class BrokerAssertions:
    """For callers that block."""

    def ask(self, name: str, /, **arguments: object) -> object:
        """See `asking.AsksNow`."""
        raise NotImplementedError

    def topic(self, name: str) -> Topic:
        """One topic, which need not exist yet."""
        return Topic(self, name)

    def topics(self, *, internal: bool = False) -> list[str]:
        """The names of all topics, sorted."""
        return answered(self, ask(list, "topics", internal=internal))

    def producers(self, topic: str, partition: int) -> list[ProducerView]:
        """The idempotent and transactional producers that the log of the partition knows. Raises: KafkaError."""
        return answered(self, ask(list, "producers", topic=topic, partition=partition))

    def group(self, group_id: str) -> Group:
        """One consumer group, which need not exist yet."""
        return Group(self, group_id)

    def groups(self) -> list[str]:
        """The ids of all groups, sorted."""
        return answered(self, ask(list, "groups"))

    def transaction(self, transactional_id: str) -> Transaction:
        """One transactional id, which need not exist yet."""
        return Transaction(self, transactional_id)

    def transactions(self) -> list[TransactionView]:
        """All transactional ids, sorted."""
        return answered(self, transaction_steps.views())

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
        selection = Selection(api=api, client_id=client_id, topic=topic, since=number_of(since), where=where, own=own)
        return answered(self, request_steps.select(selection))

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
        selection = Selection(api=api, client_id=client_id, topic=topic, since=number_of(since), where=where)
        return answered(self, request_steps.wait_for(selection, count, timeout))

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
        selection = Selection(api=api, client_id=client_id, topic=topic, since=number_of(since), where=where)
        return answered(self, request_steps.assert_requested(selection, times))

    def last_request_number(self) -> int:
        """The number of the request that was answered last, for `since`."""
        return answered(self, ask(int, "last_request_number"))

    def clear_requests(self) -> None:
        """Forget the recorded requests."""
        answered(self, ask(type(None), "clear_requests"))

    def failure_report(self) -> str:
        """What the broker saw: the last requests, topics, groups, open transactions, warnings."""
        return answered(self, ask(str, "failure_report"))


class AsyncBrokerAssertions:
    """For coroutines: the same names."""

    def ask(self, name: str, /, **arguments: object) -> Awaitable[object]:
        """See `asking.AsksLater`."""
        raise NotImplementedError

    def topic(self, name: str) -> AsyncTopic:
        """See `BrokerAssertions`; so are the others."""
        return AsyncTopic(self, name)

    async def topics(self, *, internal: bool = False) -> list[str]:
        return await answered_later(self, ask(list, "topics", internal=internal))

    async def producers(self, topic: str, partition: int) -> list[ProducerView]:
        return await answered_later(self, ask(list, "producers", topic=topic, partition=partition))

    def group(self, group_id: str) -> AsyncGroup:
        return AsyncGroup(self, group_id)

    async def groups(self) -> list[str]:
        return await answered_later(self, ask(list, "groups"))

    def transaction(self, transactional_id: str) -> AsyncTransaction:
        return AsyncTransaction(self, transactional_id)

    async def transactions(self) -> list[TransactionView]:
        return await answered_later(self, transaction_steps.views())

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
        selection = Selection(api=api, client_id=client_id, topic=topic, since=number_of(since), where=where, own=own)
        return await answered_later(self, request_steps.select(selection))

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
        selection = Selection(api=api, client_id=client_id, topic=topic, since=number_of(since), where=where)
        return await answered_later(self, request_steps.wait_for(selection, count, timeout))

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
        selection = Selection(api=api, client_id=client_id, topic=topic, since=number_of(since), where=where)
        return await answered_later(self, request_steps.assert_requested(selection, times))

    async def last_request_number(self) -> int:
        return await answered_later(self, ask(int, "last_request_number"))

    async def clear_requests(self) -> None:
        await answered_later(self, ask(type(None), "clear_requests"))

    async def failure_report(self) -> str:
        return await answered_later(self, ask(str, "failure_report"))
