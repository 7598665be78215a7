"""Sends the requests of transactions to other brokers: markers to partition leaders, verification to coordinators.

The metadata cache names the receiver. Whether a partition that it does not name is deleted, the metadata tree says.

A request to this broker itself goes to the handler, as the same object. Every other broker has one link, with one
request at a time. `respond` gets None if a request fails. If the coordinator is too old to verify, `respond` gets
UNSUPPORTED_VERSION.

Kafka: TransactionMarkerChannelManager.generateRequests, AddPartitionsToTxnManager.generateRequests,
InterBrokerSendThread.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from odradek.broker.inter_broker.request_format import VersionMismatch
from odradek.controller.loop_turns import in_turns
from odradek.controller.model.topic_names import TRANSACTION_STATE_TOPIC
from odradek.controller.tree.metadata_tree import TreeError
from odradek.controller.znodes.znode_json import BadZnode
from odradek.coordinator.batched_requests import call_all
from odradek.coordinator.transaction.markers import NO_NODE
from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from odradek.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from odradek.broker.apis.services import Services
    from odradek.broker.inter_broker.broker_links import BrokerLinks
    from odradek.protocol.codec.schema import Request
    from odradek.timer.sliced_work import Steps

logger = logging.getLogger(__name__)

ADD_PARTITIONS_TO_TXN_VERSION: Final = 5
"""Brokers verify since version 4; TRANSACTION_ABORTABLE exists since version 5."""

ResponseT = TypeVar("ResponseT", bound=Response)


class InterBrokerChannel:
    """Implements `MarkerChannel` and `VerificationChannel`."""

    def __init__(
        self,
        markers: BrokerLinks,
        verification: BrokerLinks,
        spawn: Callable[[Coroutine[object, object, None]], None],
        timeout_ms: int,
        markers_version: int,
    ) -> None:
        self._markers = markers
        self._markers_version = markers_version
        self._verification = verification
        self._spawn = spawn
        self._timeout_ms = timeout_ms
        self._broker: Services | None = None
        self._lookups: list[tuple[frozenset[TopicPartition], Callable[[frozenset[TopicPartition]], None]]] = []
        """Partitions that the next read of the tree looks for. While they are read there is no other read."""
        self._is_reading = False
        self._has_failed = False

    def serve(self, broker: Services) -> None:
        """Set the services that handle this broker's requests to itself. They are created after this channel."""
        self._broker = broker

    def close(self) -> None:
        self._markers.close()
        self._verification.close()

    @property
    def _services(self) -> Services:
        assert self._broker is not None, "a request was sent before `serve` was called"
        return self._broker

    def leader_of(self, topic_partition: TopicPartition) -> int | None:
        """The broker id of the leader: -1 while there is no live leader, None if the metadata do not name it."""
        cache = self._services.metadata_cache
        state = cache.partition_state(*topic_partition)
        if state is None:
            # A broker that starts leads partitions of __transaction_state before its first UpdateMetadata, which brings
            # the other partitions: until then there is no need to ask the tree for them.
            return None if cache.contains(TRANSACTION_STATE_TOPIC) else NO_NODE
        return state.leader if cache.is_alive(state.leader) else NO_NODE

    def find_deleted(
        self, topic_partitions: frozenset[TopicPartition], respond: Callable[[frozenset[TopicPartition]], None]
    ) -> None:
        self._lookups.append((topic_partitions, respond))
        if not self._is_reading:
            self._is_reading = True
            self._spawn(self._find_all_deleted())

    async def _find_all_deleted(self) -> None:
        """One read of the tree at a time for all that ask meanwhile: after a failover each open transaction may ask."""
        try:
            while self._lookups:
                lookups, self._lookups = self._lookups, []
                await self._answer(lookups)
        finally:
            self._is_reading = False

    async def _answer(
        self, lookups: list[tuple[frozenset[TopicPartition], Callable[[frozenset[TopicPartition]], None]]]
    ) -> None:
        deleted: frozenset[TopicPartition] = frozenset()
        answered = 0
        try:
            deleted = await self._deleted_of(frozenset().union(*(asked for asked, _ in lookups)))
            async for asked, respond in in_turns(lookups):  # each may append the end of a transaction
                answered += 1
                respond(asked & deleted)
        finally:  # also after a bug and at shutdown: the markers wait for these calls
            call_all(partial(respond, asked & deleted) for asked, respond in lookups[answered:])

    async def _deleted_of(self, topic_partitions: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        try:
            counts = await self._services.topic_partition_counts({topic for topic, _ in topic_partitions})
            going = await self._services.controller.client.topic_deletions()
        except (BadZnode, TreeError) as error:
            if not self._has_failed:  # the first of a row: markers ask again in milliseconds
                logger.warning("Cannot read which partitions of transactions are deleted: %r", error)
            self._has_failed = True
            return frozenset()
        self._has_failed = False
        return frozenset(
            each for each in topic_partitions if each.topic in going or each.partition >= counts.get(each.topic, 0)
        )

    def coordinator_of(self, transactional_id: str) -> int | None:
        """The broker id of the coordinator; None while there is no live one."""
        partition = self._services.transaction_coordinator.partition_for(transactional_id)
        leader = self.leader_of(TopicPartition(TRANSACTION_STATE_TOPIC, partition))
        return None if leader == NO_NODE else leader

    def send_markers(
        self,
        broker_id: int,
        request: WriteTxnMarkersRequest,
        respond: Callable[[WriteTxnMarkersResponse | None], None],
    ) -> None:
        if broker_id == self._services.broker_id:
            from odradek.broker.apis.transactions import write_txn_markers

            work = write_txn_markers.apply(self._services, request, respond)
            self._services.slices.submit(_respond_on_failure(work, respond))
        else:
            version = self._markers_version
            self._spawn(self._ask(self._markers, broker_id, request, WriteTxnMarkersResponse, version, respond))

    def send_verification(
        self,
        broker_id: int,
        request: AddPartitionsToTxnRequest,
        respond: Callable[[AddPartitionsToTxnResponse | None], None],
    ) -> None:
        if broker_id == self._services.broker_id:
            from odradek.broker.apis.transactions import add_partitions_to_txn

            work = add_partitions_to_txn.apply(self._services, request, ADD_PARTITIONS_TO_TXN_VERSION, respond)
            self._services.slices.submit(_respond_on_failure(work, respond))
        else:
            too_old = AddPartitionsToTxnResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
            self._spawn(
                self._ask(
                    self._verification, broker_id, request, AddPartitionsToTxnResponse, None, respond, too_old=too_old
                )
            )

    async def _ask(
        self,
        links: BrokerLinks,
        broker_id: int,
        request: Request,
        response_type: type[ResponseT],
        version: int | None,
        respond: Callable[[ResponseT | None], None],
        *,
        too_old: ResponseT | None = None,
    ) -> None:
        response: ResponseT | None = None
        try:
            link = links.link(broker_id)
            response = await link.exchange(request, response_type, version=version, timeout_ms=self._timeout_ms)
        except OSError as error:
            logger.warning("%s to broker %d failed: %s", type(request).__name__, broker_id, error)
            response = too_old if isinstance(error, VersionMismatch) else None
        finally:
            respond(response)  # also after a bug and at shutdown: the sender waits for this call


def _respond_on_failure(work: Steps, respond: Callable[[None], None]) -> Steps:
    """Do the work; respond with None if it raises."""
    try:
        yield from work
    except BaseException:
        respond(None)
        raise
