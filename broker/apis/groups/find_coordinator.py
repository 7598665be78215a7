"""FindCoordinator (key 10), served: 0-6.

v1: key types, 0 for groups and 1 for transactions. v4: several keys in one request. v6: key type 2, share groups,
which have no coordinator here. The first request creates the internal topic; the response is COORDINATOR_NOT_AVAILABLE
meanwhile.

Kafka: KafkaApis.handleFindCoordinatorRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from odradek.broker.apis.authorization import authorize
from odradek.broker.apis.leaders import reachable_node
from odradek.broker.apis.services import in_slices
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.controller.model.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.protocol.codec.arrays.mapped import Mapped, Pairs
from odradek.protocol.errors import DEFAULT_MESSAGES, ErrorCode, KafkaError
from odradek.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.apis.services import Services
    from odradek.broker.metadata.metadata_cache import Node
    from odradek.broker.network.requests.request import RequestContext
    from odradek.timer.sliced_work import Steps

    _Found: TypeAlias = tuple[ErrorCode, Node | None]
    """An error and, without one, the coordinator."""

GROUP = 0
TRANSACTION = 1
SHARE = 2
FIRST_BATCHED_VERSION = 4
FIRST_SHARE_VERSION = 6


@in_slices
def handle(broker: Services, ctx: RequestContext, request: FindCoordinatorRequest) -> Steps:
    if ctx.header.api_version < FIRST_BATCHED_VERSION:
        error, node = _coordinator(broker, ctx, request.key_type, request.key)
        ctx.reply(
            FindCoordinatorResponse(
                error_code=error,
                error_message=DEFAULT_MESSAGES[error] if error != ErrorCode.NONE else "NONE",
                node_id=-1 if node is None else node.broker_id,
                host="" if node is None else node.host,
                port=-1 if node is None else node.port,
            )
        )
        return
    coordinators = Pairs(_answer)
    different: dict[_Found, _Found] = {}
    """A request may name 200,000 keys, and a cluster has few brokers."""
    for key in request.coordinator_keys:
        outcome = _coordinator(broker, ctx, request.key_type, key)
        coordinators.add(key, different.setdefault(outcome, outcome))
        yield None
    ctx.reply(FindCoordinatorResponse(coordinators=coordinators))


def _answer(key: str, found: _Found) -> Coordinator:
    error, node = found
    return Coordinator(
        key=key,
        error_code=error,
        node_id=-1 if node is None else node.broker_id,
        host="" if node is None else node.host,
        port=-1 if node is None else node.port,
    )


def _coordinator(broker: Services, ctx: RequestContext, key_type: int, key: str) -> _Found:
    describe = AclOperation.DESCRIBE
    if key_type == GROUP and not authorize(broker, ctx, describe, ResourceType.GROUP, key):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED, None
    if key_type == TRANSACTION and not authorize(broker, ctx, describe, ResourceType.TRANSACTIONAL_ID, key):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, None
    if key_type == SHARE:
        return _no_share_coordinator(broker, ctx), None
    if key_type == GROUP:
        topic, partition = GROUP_METADATA_TOPIC, broker.group_coordinator.partition_for(key)
    elif key_type == TRANSACTION:
        topic, partition = TRANSACTION_STATE_TOPIC, broker.transaction_coordinator.partition_for(key)
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown coordinator type {key_type}")
    states = broker.metadata_cache.snapshot.partitions.get(topic)
    if states is None:
        quota = broker.quotas.controller_mutation.new_quota_for(ctx, strict_since_version=None)
        broker.topic_creator.create_in_background(topic, quota.record)
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, None
    state = states.get(partition)
    node = None if state is None else reachable_node(broker, ctx, state.leader)
    return (ErrorCode.COORDINATOR_NOT_AVAILABLE, None) if node is None else (ErrorCode.NONE, node)


def _no_share_coordinator(broker: Services, ctx: RequestContext) -> ErrorCode:
    if ctx.header.api_version < FIRST_SHARE_VERSION:
        return ErrorCode.INVALID_REQUEST
    if not authorize(broker, ctx, AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return ErrorCode.COORDINATOR_NOT_AVAILABLE


def error_response(
    request: FindCoordinatorRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, FindCoordinatorResponse]:
    if version < FIRST_BATCHED_VERSION:
        return FindCoordinatorResponse(
            error_code=code, error_message=DEFAULT_MESSAGES[code], node_id=-1, host="", port=-1
        )
    yield

    def refused(key: str) -> Coordinator:
        return Coordinator(key=key, error_code=code, error_message=DEFAULT_MESSAGES[code], node_id=-1, host="", port=-1)

    return FindCoordinatorResponse(coordinators=Mapped(refused, request.coordinator_keys))
