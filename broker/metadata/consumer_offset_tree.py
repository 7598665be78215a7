"""Offsets that version 0 of OffsetCommit keeps in the metadata tree: /consumers/<group>/offsets/<topic>/<partition>.

The value is the offset in decimal.

Kafka: KafkaZkClient.setOrCreateConsumerOffset, KafkaZkClient.getConsumerOffset.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING

from odradek.controller.tree.metadata_tree import Create, NodeExists, NoNode, SetData, parent_path
from odradek.protocol.errors import ErrorCode
from odradek.storage.config.config_def import parse_int64

if TYPE_CHECKING:
    from odradek.controller.znodes.metadata_client import MetadataClient
    from odradek.protocol.topic_partition import TopicPartition

log = logging.getLogger(__name__)


class ZnodeOffsets:
    """Implements the port `coordinator.ports.ConsumerOffsetTree`."""

    def __init__(self, client: MetadataClient, spawn: Callable[[Coroutine[object, object, None]], None]) -> None:
        self._client = client
        self._spawn = spawn

    def set_or_create(
        self, group_id: str, topic_partition: TopicPartition, offset: int, done: Callable[[ErrorCode], None]
    ) -> None:
        self._spawn(self._set_or_create(_path(group_id, topic_partition), b"%d" % offset, done))

    async def _set_or_create(self, path: str, data: bytes, done: Callable[[ErrorCode], None]) -> None:
        error = ErrorCode.NONE
        try:
            try:
                await self._client.tree.run(SetData(path, data))
            except NoNode:
                await self._create(path, data)
        except Exception as failure:  # noqa: BLE001 - whatever it is, a request without an answer blocks its connection
            log.error("Cannot store the offset at %s: %r", path, failure)
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        done(error)

    async def _create(self, path: str, data: bytes) -> None:
        await self._client.create_recursive(parent_path(path))
        try:
            await self._client.tree.run(Create(path, data))
        except NodeExists:  # another commit has created it meanwhile; the last commit counts
            await self._client.tree.run(SetData(path, data))

    def get(
        self, group_id: str, topic_partition: TopicPartition, done: Callable[[ErrorCode, int | None], None]
    ) -> None:
        self._spawn(self._get(_path(group_id, topic_partition), done))

    async def _get(self, path: str, done: Callable[[ErrorCode, int | None], None]) -> None:
        error = ErrorCode.NONE
        offset: int | None = None
        try:
            node = await self._client.get(path)
            if node is not None and node.data is not None:
                offset = _decoded(node.data)
        except Exception as failure:  # noqa: BLE001 - as above
            log.error("Cannot read the offset at %s: %r", path, failure)
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        done(error, offset)


def _decoded(data: bytes) -> int:
    """Raises: ValueError. Kafka: ConsumerOffset.decode."""
    offset = parse_int64(data.decode())
    if offset is None:
        raise ValueError(f"not a number of 64 bits: {data[:40]!r}")
    return offset


def _path(group_id: str, topic_partition: TopicPartition) -> str:
    return f"/consumers/{group_id}/offsets/{topic_partition.topic}/{topic_partition.partition}"
