"""Errors of partitions in answers to Fetch, whose requests do not name the partitions of their session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.messages.fetch import FetchableTopicResponse, PartitionData

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.broker.fetch.fetch_session_cache import FetchSessionCache
    from odradek.broker.metadata.metadata_cache import MetadataCache
    from odradek.protocol.errors import ErrorCode
    from odradek.protocol.messages.fetch import FetchRequest, FetchResponse


def partitions_of(sessions: FetchSessionCache, request: FetchRequest) -> list[tuple[str, int | None]]:
    """The partitions of the session that the request goes on with."""
    if request.session_epoch <= 0:
        return []  # a full fetch names all of its partitions
    session = sessions.get(request.session_id)
    if session is None:
        return []
    return [(fetch.topic, fetch.partition) for fetch in session.partitions.values() if fetch.topic is not None]


def fail_fetch(
    response: FetchResponse, code: ErrorCode, named: Sequence[tuple[str, int]], cache: MetadataCache, *, by_id: bool
) -> None:
    """Have the answer give the code for these partitions, also for those that it leaves out as unchanged."""
    topics = {cache.topic_name(topic.topic_id) if by_id else topic.topic: topic for topic in response.responses}
    for name, index in named:
        topic = topics.get(name)
        if topic is None:
            topic = FetchableTopicResponse(topic=name, topic_id=cache.topic_id(name) if by_id else ZERO_UUID)
            topics[name] = topic
            response.responses.append(topic)
        failed = PartitionData(partition_index=index, error_code=code, high_watermark=-1, records=b"")
        partitions = [failed if part.partition_index == index else part for part in topic.partitions]
        topic.partitions = partitions if failed in partitions else [*partitions, failed]
