"""Groups that commit offsets and ask for them, on bare connections."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

LOOK_PAUSE_S: Final = 0.02
GROUP, TRANSACTION = 0, 1
"""What FindCoordinator is asked for."""
NOT_YET: Final = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


def find_coordinator(client: RawClient, key_type: int = GROUP) -> None:
    """Make the brokers create the coordinators' topic."""
    while True:
        found: Any = client.call(build(ApiKey.FIND_COORDINATOR, coordinator_keys=["any"], key_type=key_type), 4)
        if found.coordinators[0].error_code == ErrorCode.NONE:
            return
        time.sleep(LOOK_PAUSE_S)


def commit(client: RawClient, group: str, topic: str, partitions: int) -> None:
    """Commit offset 1 of every partition, as soon as the group's coordinator takes it."""
    offsets = [
        {"partition_index": index, "committed_offset": 1, "committed_metadata": ""} for index in range(partitions)
    ]
    request = build(
        ApiKey.OFFSET_COMMIT,
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[{"name": topic, "partitions": offsets}],
    )
    while True:
        answer: Any = client.call(request, 8)
        errors = {part.error_code for part in answer.topics[0].partitions}
        if errors == {ErrorCode.NONE}:
            return
        assert errors <= NOT_YET, errors
        time.sleep(LOOK_PAUSE_S)


def served(client: RawClient, groups: Iterable[str]) -> set[str]:
    """Those of the groups whose coordinator this broker is, with all that they have committed."""
    wanted = [{"group_id": group, "topics": []} for group in groups]
    answer: Any = client.call(build(ApiKey.OFFSET_FETCH, groups=wanted), 8)
    assert {group.error_code for group in answer.groups} <= {ErrorCode.NONE, *NOT_YET}, answer
    return {group.group_id for group in answer.groups if group.error_code == ErrorCode.NONE}


def offsets_of(client: RawClient, groups: Sequence[str]) -> dict[str, int]:
    """How many offsets each of the groups has committed."""
    wanted = [{"group_id": group, "topics": None} for group in groups]
    answer: Any = client.call(build(ApiKey.OFFSET_FETCH, groups=wanted), 8)
    return {group.group_id: sum(len(topic.partitions) for topic in group.topics) for group in answer.groups}
