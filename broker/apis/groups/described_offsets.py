"""OffsetFetch with an authorizer: a client sees the groups and the topics that it may describe.

Kafka: KafkaApis.fetchAllOffsetsForGroup, KafkaApis.fetchOffsetsForGroup, KafkaApis.partitionByAuthorized.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Final, cast

from odradek.broker.apis.authorization import authorize, filter_by_authorized
from odradek.broker.apis.groups.group_requests import group_context
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.coordinator.group.offsets.offset_api import (
    INVALID_OFFSET,
    NO_METADATA,
    offset_fetch_error,
    offset_fetch_response,
    requested_groups,
)
from odradek.protocol.codec.arrays.kept_array import KeptArray
from odradek.protocol.codec.arrays.mapped import Mapped
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from odradek.timer.sliced_work import chosen, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.timer.sliced_work import Steps

FIRST_BATCHED_VERSION: Final = 8

Refused = list[OffsetFetchResponseTopics]


def fetch_of_one_group(
    broker: Services,
    ctx: RequestContext,
    request: OffsetFetchRequest,
    respond: Callable[[OffsetFetchResponse], None],
) -> Steps:
    """Versions 0 to 7. Partitions of other topics are answered with an error if the request names them."""
    version = ctx.header.api_version
    (group,) = requested_groups(request, version)
    refused = yield from _take_refused(broker, ctx, group, by_partition=version == 0)
    if refused is None:
        if version == 1:
            group.topics = []  # as in Apache Kafka, version 1 has no field for this error
        error = yield from offset_fetch_error(group, ErrorCode.GROUP_AUTHORIZATION_FAILED, version)
        response = yield from offset_fetch_response([error], version)
        ctx.reply(response)
        return
    if group.topics is not None:
        request.topics = cast("list[OffsetFetchRequestTopic]", group.topics)  # as they came in the request
    responses: list[OffsetFetchResponse] = []
    if group.topics is None:
        yield from broker.group_coordinator.fetch_offsets(group_context(ctx), request, responses.append)
        (response,) = responses
        described = yield from _described(broker, ctx, (topic.name for topic in response.topics))
        response.topics = yield from chosen(response.topics, lambda topic: topic.name in described)
        respond(response)
        return

    unreadable = yield from offset_fetch_response([OffsetFetchResponseGroup(topics=refused)], version)
    hidden = unreadable.topics

    def add_refused(response: OffsetFetchResponse) -> None:
        if response.error_code == ErrorCode.NONE and hidden:
            found = response.topics  # they may be made when they are read, so the two are not joined in a list
            both = range(len(found) + len(hidden))
            response.topics = Mapped(lambda n: found[n] if n < len(found) else hidden[n - len(found)], both)
        respond(response)

    yield from broker.group_coordinator.fetch_offsets(group_context(ctx), request, add_refused)


def fetch_of_groups(broker: Services, ctx: RequestContext, request: OffsetFetchRequest) -> Steps:
    """Version 8 and later."""
    asked: list[tuple[OffsetFetchRequestGroup, Refused | None]] = []
    for group in request.groups:
        refused = yield from _take_refused(broker, ctx, group)
        asked.append((group, refused))
    request.groups = yield from listed(group for group, refused in asked if refused is not None)
    responses: list[OffsetFetchResponse] = []
    yield from broker.group_coordinator.fetch_offsets(group_context(ctx), request, responses.append)
    (response,) = responses
    answered = iter(response.groups)
    answers: list[OffsetFetchResponseGroup] = []
    filtered: set[str] = set()
    """The groups whose topics are all asked for; all mentions of such a group have one answer."""
    for group, refused in asked:
        if refused is None:
            error = ErrorCode.GROUP_AUTHORIZATION_FAILED
            answers.append(OffsetFetchResponseGroup(group_id=group.group_id, error_code=error))
            continue
        answer = next(answered)
        answers.append(answer)
        if answer.error_code == ErrorCode.NONE and group.topics is None:
            if group.group_id not in filtered:  # else its topics are chosen already
                filtered.add(group.group_id)
                described = yield from _described(broker, ctx, (topic.name for topic in answer.topics))
                answer.topics = KeptArray(topic for topic in answer.topics if topic.name in described)
        elif refused and answer.error_code == ErrorCode.NONE:
            topics = answer.topics + refused  # the answer may be that of other mentions of the group, too
            answers[-1] = OffsetFetchResponseGroup(group_id=answer.group_id, topics=topics)
    response.groups = answers
    ctx.reply(response)


def _take_refused(
    broker: Services, ctx: RequestContext, group: OffsetFetchRequestGroup, *, by_partition: bool = False
) -> Generator[None, None, Refused | None]:
    """Takes the topics that the client may not describe out of the request of a group, and returns their answers; None
    if the client may not describe the group. `by_partition`: each partition counts as a mention of its topic.
    """
    yield
    if not authorize(broker, ctx, AclOperation.DESCRIBE, ResourceType.GROUP, group.group_id):
        return None
    if group.topics is None:
        return []
    mentions = (topic.name for topic in group.topics for _ in (topic.partition_indexes if by_partition else (None,)))
    described = yield from _described(broker, ctx, mentions)
    allowed, refused = [], []
    for topic in group.topics:
        yield
        if topic.name in described:
            allowed.append(topic)
        else:
            refusal = yield from _refusal(topic.name, topic.partition_indexes)
            refused.append(refusal)
    group.topics = allowed
    return refused


def _described(broker: Services, ctx: RequestContext, names: Iterable[str]) -> Generator[None, None, Container[str]]:
    return (yield from filter_by_authorized(broker, ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, names))


def _refusal(name: str, indexes: Iterable[int]) -> Generator[None, None, OffsetFetchResponseTopics]:
    partitions = yield from listed(
        OffsetFetchResponsePartitions(
            partition_index=index,
            committed_offset=INVALID_OFFSET,
            metadata=NO_METADATA,
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        )
        for index in indexes
    )
    return OffsetFetchResponseTopics(name=name, partitions=partitions)
