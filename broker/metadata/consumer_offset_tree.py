"""Offsets that version 0 of OffsetCommit keeps in the metadata tree: /consumers/<group>/offsets/<topic>/<partition>.

The value is the offset in decimal.

Kafka: KafkaZkClient.setOrCreateConsumerOffset, KafkaZkClient.getConsumerOffset.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING

from odradek.controller.tree.metadata_tree import Create, NodeExists, NoNode, SetData, TreeError, parent_path
from odradek.protocol.errors import ErrorCode

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
        except TreeError as failure:
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
        try:
            node = await self._client.get(path)
            offset = None if node is None or not node.data else int(node.data)
        except (TreeError, ValueError) as failure:
            log.error("Cannot read the offset at %s: %r", path, failure)
            done(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        else:
            done(ErrorCode.NONE, offset)


def _path(group_id: str, topic_partition: TopicPartition) -> str:
    return f"/consumers/{group_id}/offsets/{topic_partition.topic}/{topic_partition.partition}"
