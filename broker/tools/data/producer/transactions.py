"""Requests of a producer to its transaction coordinator, each repeated until it is answered for good.

Kafka: TransactionManager.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Set
from typing import TYPE_CHECKING, Final, TypeVar

from odradek.broker.inter_broker.response_errors import error_codes
from odradek.broker.tools.command.failures import CommandFailed, error_text
from odradek.broker.tools.data.client.data_client import Unavailable
from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import RETRIABLE, ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.records.layout import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

if TYPE_CHECKING:
    from odradek.broker.tools.data.client.data_client import DataClient
    from odradek.broker.tools.data.producer.producer_state import ProducerState
    from odradek.protocol.codec.schema import Request
    from odradek.protocol.topic_partition import TopicPartition

TRANSACTION_COORDINATOR: Final = 1
"""The key type in FindCoordinator."""

ADD_PARTITIONS_VERSION: Final = 3
"""The highest version for clients; the later ones are for brokers."""

COORDINATOR_MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
FENCED: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED})

ResponseT = TypeVar("ResponseT", bound=Response)


class ProducerFenced(CommandFailed):
    """Another producer uses the transactional id now."""


async def init_producer_id(client: DataClient, state: ProducerState) -> None:
    """Get an id without transactions. Raises: CommandFailed."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)

    async def ask() -> InitProducerIdResponse:
        return await client.ask_any(request, InitProducerIdResponse)

    response = await _until_answered(client, ask, "InitProducerId")
    state.use(response.producer_id, response.producer_epoch)


class Transactions:
    """The transactions of one transactional id, one after the other."""

    def __init__(self, client: DataClient, state: ProducerState, transactional_id: str, timeout_ms: int) -> None:
        self.transactional_id = transactional_id
        self._client = client
        self._state = state
        self._timeout_ms = timeout_ms
        self._coordinator: int | None = None
        self._partitions: set[TopicPartition] = set()
        """Those that were added to the present transaction at the coordinator."""
        self._decision: bool | None = None
        """What an EndTxn said whose answer has not arrived."""
        self._may_have_begun = False
        """Partitions were to be added, and it is not known whether they are: the transaction may be open."""

    async def init(self) -> None:
        """Get the producer id; fences producers that used the id before and aborts what they left open.

        Raises: CommandFailed.
        """
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_PRODUCER_EPOCH,
        )
        response = await self._ask(request, InitProducerIdResponse)
        self._state.use(response.producer_id, response.producer_epoch)
        self._partitions.clear()
        self._may_have_begun = False

    def missing(self, topic_partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Those that are not in the transaction yet."""
        return set(topic_partitions) - self._partitions

    async def add_partitions(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Add partitions to the transaction. Raises: CommandFailed."""
        by_topic: dict[str, list[int]] = {}
        added = sorted(topic_partitions)
        for topic, partition in added:
            by_topic.setdefault(topic, []).append(partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self._state.producer_id,
            v3_and_below_producer_epoch=self._state.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=partitions) for topic, partitions in by_topic.items()
            ],
        )
        self._may_have_begun = True
        await self._ask(request, AddPartitionsToTxnResponse, version=ADD_PARTITIONS_VERSION)
        self._may_have_begun = False
        self._partitions.update(added)

    async def end(self, *, committed: bool) -> None:
        """Commit or abort. Does nothing for a transaction without partitions. Raises: CommandFailed.

        A decision that was sent is not changed: an abort after an interrupted commit completes the commit.
        """
        if not self._partitions and not self._may_have_begun:
            return
        if self._decision is None:
            self._decision = committed
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self._state.producer_id,
            producer_epoch=self._state.epoch,
            committed=self._decision,
        )
        # Without partitions, the coordinator refuses to abort: it has no transaction that could keep readers waiting.
        harmless = {ErrorCode.INVALID_TXN_STATE} if self._may_have_begun and not self._partitions else frozenset()
        await self._ask(request, EndTxnResponse, harmless=harmless)
        self._partitions.clear()
        self._may_have_begun = False
        self._decision = None

    async def _ask(
        self,
        request: Request,
        response_type: type[ResponseT],
        *,
        version: int | None = None,
        harmless: Set[ErrorCode] = frozenset(),
    ) -> ResponseT:
        async def ask() -> ResponseT:
            if self._coordinator is None:
                self._coordinator = await self._client.find_coordinator(self.transactional_id, TRANSACTION_COORDINATOR)
            try:
                response = await self._client.ask(
                    self._coordinator, request, response_type, purpose="transaction", version=version
                )
            except OSError:
                self._coordinator = None
                raise
            if not COORDINATOR_MOVED.isdisjoint(_codes(response)):
                self._coordinator = None
            return response

        return await _until_answered(self._client, ask, type(request).__name__.removesuffix("Request"), harmless)


async def _until_answered(
    client: DataClient,
    ask: Callable[[], Awaitable[ResponseT]],
    what: str,
    harmless: Set[ErrorCode] = frozenset(),
) -> ResponseT:
    """The first response without an error that matters, asked again after retriable errors. Raises: CommandFailed."""
    began_ms = client.clock.monotonic_ms()
    while True:
        try:
            response = await ask()
        except (OSError, Unavailable) as error:
            reason = str(error)
        else:
            errors = {ErrorCode.for_code(code) for code in _codes(response)} - {ErrorCode.NONE} - harmless
            errors -= {ErrorCode.OPERATION_NOT_ATTEMPTED} if len(errors) > 1 else set()
            if not errors:
                return response
            reason = ", ".join(error_text(code) for code in sorted(errors))
            if not FENCED.isdisjoint(errors):
                raise ProducerFenced(f"{what}: {reason}")
            if not errors <= RETRIABLE:
                raise CommandFailed(f"{what}: {reason}")
        if client.clock.monotonic_ms() - began_ms >= client.config.api_timeout_ms:
            raise CommandFailed(f"{what} took more than {client.config.api_timeout_ms} ms: {reason}")
        await client.back_off()


def _codes(response: Response) -> Iterable[int]:
    yield from error_codes(response)
    if isinstance(response, AddPartitionsToTxnResponse):
        for topic in response.results_by_topic_v3_and_below:
            for partition in topic.results_by_partition:
                yield partition.partition_error_code
