"""The state nodes of partitions, which the state machines read and write.

Writes are conditional on the partition epoch, which is the version of the node, so that no write overwrites a state it
has not seen. When the response to a write is lost with the connection, the write is sent again and refused, because it
was applied already. So a refused write has succeeded if the node holds exactly its state in the next version. Otherwise
a new partition would stay without a leader, and a leader would wait forever for the ISR it has proposed.

Kafka: KafkaZkClient.getTopicPartitionStates, KafkaZkClient.createTopicPartitionStatesRaw,
KafkaZkClient.updateLeaderAndIsr, UpdateLeaderAndIsrResult.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from odradek.controller.loop_turns import in_turns
from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch
from odradek.controller.states.partition_states import LeadershipOrError, StateChangeFailed, StateUpdates
from odradek.controller.tree.metadata_tree import (
    BadVersion,
    Check,
    Create,
    GetData,
    NodeExists,
    NoNode,
    SetData,
    TreeError,
    WriteResult,
)
from odradek.controller.znodes import topic_nodes, znodes
from odradek.controller.znodes.fenced_writes import write_fenced
from odradek.controller.znodes.metadata_client import MetadataClient, stat_of, submit_all
from odradek.controller.znodes.znode_json import BadZnode
from odradek.protocol.errors import KafkaError
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.config.config_def import ConfigError
from odradek.storage.config.log_config import LogConfig

if TYPE_CHECKING:
    from odradek.controller.states.context import ControllerContext


logger = logging.getLogger("odradek.controller")

_NONE: Final[Mapping[TopicPartition, LeaderAndIsr]] = MappingProxyType({})


class PartitionStateNodes:
    """Implements PartitionStateStore for one controller; `context` has its epoch and fencing token."""

    def __init__(
        self, client: MetadataClient, context: ControllerContext, broker_settings: Callable[[], Mapping[str, str]]
    ) -> None:
        self._client = client
        self._context = context
        self._broker_settings = broker_settings

    async def read_partition_states(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, LeaderIsrAndControllerEpoch | None]:
        paths = [znodes.partition_state_path(partition) for partition in partitions]
        answers = await submit_all(self._client.tree, [GetData(path) for path in paths])
        states: dict[TopicPartition, LeaderIsrAndControllerEpoch | None] = {}
        async for partition, answer in in_turns(zip(partitions, answers, strict=True)):
            if not isinstance(answer, TreeError):
                states[partition] = topic_nodes.decode_partition_state(answer.data, answer.stat.version)
            elif isinstance(answer, NoNode):
                states[partition] = None
            else:
                raise answer
        return states

    async def create_partition_states(
        self, states: Mapping[TopicPartition, LeaderIsrAndControllerEpoch]
    ) -> dict[TopicPartition, StateChangeFailed]:
        topics = dict.fromkeys(partition.topic for partition in states)
        parents = [znodes.topic_partitions_path(topic) for topic in topics]
        parents += [znodes.partition_path(partition) for partition in states]
        # The parents first. They may exist already, from an earlier attempt.
        for result in await self._write([Create(path) for path in parents]):
            if isinstance(result, TreeError) and not isinstance(result, NodeExists | NoNode):
                raise result
        results = await self._write(
            [
                Create(znodes.partition_state_path(p), topic_nodes.encode_partition_state(state))
                async for p, state in in_turns(states.items())
            ]
        )
        refused = {p: result for p, result in zip(states, results, strict=True) if isinstance(result, TreeError)}
        existing = [partition for partition, result in refused.items() if isinstance(result, NodeExists)]
        own = await self._found(existing, states)
        return {
            partition: StateChangeFailed(f"cannot create its state node: {type(result).__name__} {result}")
            for partition, result in refused.items()
            if partition not in own
        }

    async def update_partition_states(
        self,
        leaderships: Mapping[TopicPartition, LeaderAndIsr],
        unchanged: Mapping[TopicPartition, LeaderAndIsr] = _NONE,
    ) -> StateUpdates:
        epoch = self._context.epoch
        writes: list[Check | SetData] = [
            Check(znodes.partition_state_path(partition), leadership.partition_epoch)
            async for partition, leadership in in_turns(unchanged.items())
        ]
        async for partition, leadership in in_turns(leaderships.items()):
            data = topic_nodes.encode_partition_state(LeaderIsrAndControllerEpoch(leadership, epoch))
            writes.append(SetData(znodes.partition_state_path(partition), data, leadership.partition_epoch))
        results = await self._write(writes)
        finished: dict[TopicPartition, LeadershipOrError] = {}
        to_retry: list[TopicPartition] = []
        refused: dict[TopicPartition, LeaderIsrAndControllerEpoch] = {}
        states = chain(unchanged.items(), leaderships.items())
        async for (partition, leadership), result in in_turns(zip(states, results, strict=True)):
            if result is None:
                finished[partition] = leadership
            elif isinstance(result, BadVersion) and partition in leaderships:
                next_epoch = leadership.with_partition_epoch(leadership.partition_epoch + 1)
                refused[partition] = LeaderIsrAndControllerEpoch(next_epoch, epoch)
            elif isinstance(result, BadVersion):
                to_retry.append(partition)
            elif isinstance(result, TreeError):
                finished[partition] = StateChangeFailed(f"{type(result).__name__} {result}")
            else:
                finished[partition] = leadership.with_partition_epoch(stat_of(result).version)
        own = await self._found(list(refused), refused)
        finished |= {partition: refused[partition].leader_and_isr for partition in own}
        return StateUpdates(finished, [*to_retry, *(partition for partition in refused if partition not in own)])

    async def _found(
        self, partitions: Sequence[TopicPartition], written: Mapping[TopicPartition, LeaderIsrAndControllerEpoch]
    ) -> set[TopicPartition]:
        """The partitions whose node holds the written state, in the version after the write."""
        states = await self.read_partition_states(partitions) if partitions else {}
        return {partition for partition in partitions if states[partition] == written[partition]}

    async def unclean_leader_election_topics(self, topics: Iterable[str]) -> set[str]:
        configs = await self._client.entity_configs_or_errors("topics", sorted(topics))
        broker_settings = self._broker_settings()
        unclean: set[str] = set()
        for topic, overrides in configs.items():
            if isinstance(overrides, BadZnode):
                logger.error("%s; no unclean leader is elected", overrides)
                continue
            try:
                if LogConfig.from_props(broker_settings, overrides).unclean_leader_election_enable:
                    unclean.add(topic)
            except (ConfigError, KafkaError):
                # An invalid config does not allow unclean leader election.
                continue
        return unclean

    async def _write(self, operations: Sequence[Create | SetData | Check]) -> list[WriteResult | TreeError]:
        if not operations:
            return []
        return await write_fenced(self._client.tree, self._context.epoch_zk_version, operations)
