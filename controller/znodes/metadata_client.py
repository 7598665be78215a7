"""Reads and writes Kafka's nodes in the metadata tree as values; writes of the controller are fenced.

Kafka: KafkaZkClient.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeVar

from odradek.controller.loop_turns import in_turns
from odradek.controller.model.broker_info import Broker
from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.tree.metadata_tree import (
    UNANSWERED,
    BadVersion,
    Create,
    CreateMode,
    DataAndStat,
    Delete,
    Exists,
    GetChildren,
    GetData,
    MetadataTree,
    NodeExists,
    Nodes,
    NoNode,
    NotEmpty,
    Operation,
    SetData,
    Stat,
    TreeError,
    Watcher,
    WriteOperation,
    WriteResult,
    parent_path,
    value_of,
)
from odradek.controller.znodes import broker_node, topic_nodes, znodes
from odradek.controller.znodes.fenced_writes import write_fenced
from odradek.controller.znodes.topic_nodes import TopicIdReplicaAssignment
from odradek.controller.znodes.topic_text import TopicText
from odradek.controller.znodes.znode_json import BadZnode
from odradek.controller.znodes.znodes import ProducerIdsBlock
from odradek.protocol.topic_partition import TopicPartition

OPERATIONS_PER_BATCH_MAX: Final = 1000
TOPICS_A_TURN: Final = 8
"""Topic nodes that are decoded before the event loop gets a turn; a topic of 1,000 partitions takes a millisecond."""
CONFIGS_AT_ONCE: Final = 500
"""Configs that are read before the event loop gets a turn; each takes about 5 microseconds."""

_NO_PARTITIONS: Final[Mapping[int, ReplicaAssignment]] = MappingProxyType({})

logger = logging.getLogger("odradek.controller")

ResultT = TypeVar("ResultT")


async def submit_all(tree: Nodes, operations: Sequence[Operation[ResultT]]) -> list[ResultT | TreeError]:
    """Apply any number of operations, in batches, so that operations of others are applied in between."""
    results: list[ResultT | TreeError] = []
    for start in range(0, len(operations), OPERATIONS_PER_BATCH_MAX):
        results += await tree.submit(operations[start : start + OPERATIONS_PER_BATCH_MAX])
    return results


class MetadataClient:
    """Kafka's nodes of a tree. The caller passes the fencing token to every fenced write."""

    def __init__(self, tree: MetadataTree) -> None:
        self.tree = tree
        self._last_topic: tuple[bytes, TopicIdReplicaAssignment] | None = None
        """The topic node that was read or written last. A reassignment changes the partitions of a topic one by one,
        and its watcher reads the whole node after each change."""
        self._last_text: tuple[TopicIdReplicaAssignment, TopicText] | None = None
        """The text of that node, if it was written last."""

    # Building blocks

    async def create_recursive(self, path: str, data: bytes | None = None) -> None:
        """Create a persistent node and its missing parents. An existing node is not changed."""
        missing = [path]  # below the nearest one that exists; the deepest first. Clients choose how many there are.
        while missing:
            nearest = missing[-1]
            try:
                await self.tree.run(Create(nearest, data if nearest == path else None))
            except NodeExists:
                pass
            except NoNode:
                if nearest == "/":
                    raise
                missing.append(parent_path(nearest))
                continue
            missing.pop()

    async def create_all(self, paths: Iterable[str]) -> None:
        """Create persistent nodes and their missing parents, in one batch."""
        needed: dict[str, None] = {}
        for path in paths:
            names = path[1:].split("/")
            for depth in range(1, len(names) + 1):
                needed["/" + "/".join(names[:depth])] = None
        for result in await self.tree.submit([Create(path) for path in needed]):
            if isinstance(result, TreeError) and not isinstance(result, NodeExists):
                raise result

    async def delete_recursive(self, path: str, epoch_zk_version: int) -> None:
        """Delete a node and all nodes below it, fenced. A missing node is no error."""
        paths = await self.subtree(path)
        for result in await write_fenced(self.tree, epoch_zk_version, [Delete(p) for p in reversed(paths)]):
            if isinstance(result, NotEmpty):
                # Another client has created a node below it meanwhile.
                await self.delete_recursive(path, epoch_zk_version)
                return
            if isinstance(result, TreeError) and not isinstance(result, NoNode):
                raise result

    async def subtree(self, path: str) -> list[str]:
        """The node and all nodes below it, parents first."""
        paths: list[str] = []
        level = [path]
        while level:
            answers = await submit_all(self.tree, [GetChildren(p) for p in level])
            below: list[str] = []
            for parent, children in zip(level, answers, strict=True):
                if isinstance(children, TreeError):
                    if not isinstance(children, NoNode):
                        raise children
                    continue
                paths.append(parent)
                below += [f"{parent}/{name}" for name in children.names]
            level = below
        return paths

    async def children(self, path: str, watcher: Watcher | None = None) -> tuple[str, ...]:
        """The names of the children; none if the node does not exist."""
        try:
            return (await self.tree.run(GetChildren(path, watcher))).names
        except NoNode:
            return ()

    async def get(self, path: str, watcher: Watcher | None = None) -> DataAndStat | None:
        try:
            return await self.tree.run(GetData(path, watcher))
        except NoNode:
            return None

    async def exists(self, path: str, watcher: Watcher | None = None) -> bool:
        return await self.tree.run(Exists(path, watcher)) is not None

    async def watch_existence(self, path: str, watcher: Watcher) -> bool:
        """Call the watcher when the node is created, changed or deleted. Returns whether it exists now.

        Kafka: KafkaZkClient.registerZNodeChangeHandlerAndCheckExistence.
        """
        return await self.exists(path, watcher)

    async def _get_all(
        self, paths: Sequence[str], watchers: Mapping[str, Watcher] | None = None
    ) -> list[DataAndStat | None]:
        watchers = watchers or {}
        operations: list[Operation[DataAndStat]] = [GetData(path, watchers.get(path)) for path in paths]
        found: list[DataAndStat | None] = []
        for answer in await submit_all(self.tree, operations):
            if isinstance(answer, TreeError):
                if not isinstance(answer, NoNode):
                    raise answer
                found.append(None)
            else:
                found.append(answer)
        return found

    async def write(self, epoch_zk_version: int, operation: WriteOperation) -> WriteResult:
        return value_of(*await write_fenced(self.tree, epoch_zk_version, (operation,)))

    # Controller and brokers

    async def controller(self, watcher: Watcher | None = None) -> tuple[int, int, int] | None:
        """The current controller: its broker id, KRaft epoch and the version of its node."""
        node = await self.get(znodes.CONTROLLER, watcher)
        if node is None:
            return None
        broker_id, kraft_epoch = znodes.decode_controller(node.data)
        return broker_id, kraft_epoch, node.stat.version

    async def controller_epoch(self) -> tuple[int, int] | None:
        """The controller epoch and the version of its node."""
        node = await self.get(znodes.CONTROLLER_EPOCH)
        return None if node is None else (znodes.decode_controller_epoch(node.data), node.stat.version)

    async def brokers_and_epochs(self, watcher: Watcher | None = None) -> dict[Broker, int]:
        """Every registered broker with its epoch; the watcher is called when a broker registers or leaves.

        Kafka: KafkaZkClient.getAllBrokerAndEpochsInCluster.
        """
        broker_ids = [int(name) for name in await self.children(znodes.BROKER_IDS, watcher)]
        nodes = await self._get_all([znodes.broker_id_path(broker_id) for broker_id in broker_ids])
        return {
            broker_node.decode_broker(broker_id, node.data).broker: node.stat.czxid
            for broker_id, node in zip(broker_ids, nodes, strict=True)
            if node is not None
        }

    async def broker(self, broker_id: int, watcher: Watcher | None = None) -> Broker | None:
        node = await self.get(znodes.broker_id_path(broker_id), watcher)
        return None if node is None else broker_node.decode_broker(broker_id, node.data).broker

    # Topics

    async def topics(self, watcher: Watcher | None = None) -> set[str]:
        return set(await self.children(znodes.TOPICS, watcher))

    async def topic_assignments(
        self, topics: Iterable[str], watchers: Mapping[str, Watcher] | None = None
    ) -> list[TopicIdReplicaAssignment]:
        """Ids and replicas of topics; topics without a node are left out. `watchers`: by topic.

        Kafka: KafkaZkClient.getReplicaAssignmentAndTopicIdForTopics.
        """
        names = sorted(topics)
        by_path = {znodes.topic_path(topic): watcher for topic, watcher in (watchers or {}).items()}
        nodes = await self._get_all([znodes.topic_path(topic) for topic in names], by_path)
        return [
            self._topic_in(topic, node.data)
            async for topic, node in in_turns(zip(names, nodes, strict=True), TOPICS_A_TURN)
            if node is not None
        ]

    async def topic_partition_counts(self, topics: Iterable[str]) -> dict[str, int]:
        """The number of partitions of each topic that has a node. Kafka: KafkaZkClient.getTopicPartitionCount."""
        return {found.topic: len(found.assignment) for found in await self.topic_assignments(topics)}

    async def partition_count(self, topic: str) -> int | None:
        """The number of partitions of a topic; 0 if its node cannot be read, None without a node."""
        try:
            return (await self.topic_partition_counts([topic])).get(topic)
        except BadZnode:
            return 0

    async def set_topic_assignment(
        self, topic: str, topic_id: bytes | None, assignment: Mapping[int, ReplicaAssignment], epoch_zk_version: int
    ) -> None:
        data = topic_nodes.encode_topic(topic_id, assignment)
        await self.write(epoch_zk_version, SetData(znodes.topic_path(topic), data))

    async def change_topic_assignment(
        self,
        topic: str,
        changed: Mapping[int, ReplicaAssignment],
        epoch_zk_version: int,
        topic_id: bytes | None = None,
        known: Mapping[int, ReplicaAssignment] = _NO_PARTITIONS,
    ) -> None:
        """Write the replicas of some partitions; the others stay, also those that were just added by another broker.

        A node without an id gets `topic_id`, the one that the controller knows: tools of Kafka before 2.8 lose it.
        Partitions that the controller knows and the node has lost are written again.

        Kafka: KafkaController.updateReplicaAssignmentForPartition.
        """
        while True:
            node = await self.tree.run(GetData(znodes.topic_path(topic)))
            try:
                found = self._topic_in(topic, node.data)
            except BadZnode as error:
                logger.warning("The node of topic %s is written anew: %s", topic, error)
                found = TopicIdReplicaAssignment(topic, None)
            if not known.keys() <= found.assignment.keys():
                found = replace(found, assignment=dict(sorted({**known, **found.assignment}.items())))
            if found.topic_id is None and topic_id is not None:
                found = replace(found, topic_id=topic_id)
            text = self._take_text(found)
            for partition, replicas in changed.items():
                text.change(partition, replicas)
            data = text.encode()
            try:
                await self.write(epoch_zk_version, SetData(znodes.topic_path(topic), data, node.stat.version))
            except BadVersion:
                continue
            assignment = {**found.assignment, **changed}
            if not changed.keys() <= found.assignment.keys():
                assignment = dict(sorted(assignment.items()))
            written = TopicIdReplicaAssignment(topic, found.topic_id, assignment)
            self._last_topic, self._last_text = (data, written), (written, text)
            return

    def _take_text(self, found: TopicIdReplicaAssignment) -> TopicText:
        """The text of a topic node, for a change. A change that is not written does not give it back."""
        last, self._last_text = self._last_text, None
        if last is not None and last[0] is found:
            return last[1]
        return TopicText(found.topic_id, found.assignment)

    def _topic_in(self, topic: str, data: bytes | None) -> TopicIdReplicaAssignment:
        """The decoded topic node; not decoded again if it is equal to the one decoded or written last."""
        last = self._last_topic
        if last is not None and last[0] == data and last[1].topic == topic:
            return last[1]
        found = topic_nodes.decode_topic(topic, data)
        if data is not None:
            self._last_topic = data, found
        return found

    async def topic_deletions(self, watcher: Watcher | None = None) -> set[str]:
        return set(await self.children(znodes.DELETE_TOPICS, watcher))

    async def remove_topic_deletions(self, topics: Iterable[str], epoch_zk_version: int) -> None:
        await self._delete_all([znodes.delete_topic_path(topic) for topic in sorted(topics)], epoch_zk_version)

    async def delete_topic(self, topic: str, epoch_zk_version: int) -> None:
        """Delete the topic's nodes, its config, and the deletion request, in this order."""
        await self.delete_recursive(znodes.topic_path(topic), epoch_zk_version)
        await self._delete_all([znodes.entity_config_path(f"topics/{topic}")], epoch_zk_version)
        await self._delete_all([znodes.delete_topic_path(topic)], epoch_zk_version)

    async def _delete_all(self, paths: Sequence[str], epoch_zk_version: int) -> None:
        for result in await write_fenced(self.tree, epoch_zk_version, [Delete(path) for path in paths]):
            if isinstance(result, TreeError) and not isinstance(result, NoNode):
                raise result

    # Configs

    async def entity_config(self, entity_path: str) -> dict[str, str]:
        node = await self.get(znodes.entity_config_path(entity_path))
        return {} if node is None else znodes.decode_entity_config(node.data)

    async def entity_configs(self, entity_type: str, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """The configs of entities of one type; empty for an entity without a config.

        Raises: BadZnode if one of them has a value that is no string, as Kafka: ConfigEntityZNode.decode.
        """
        configs = {}
        for name, config in (await self.entity_configs_or_errors(entity_type, names)).items():
            if isinstance(config, BadZnode):
                raise config
            configs[name] = config
        return configs

    async def entity_configs_or_errors(
        self, entity_type: str, names: Sequence[str]
    ) -> dict[str, dict[str, str] | BadZnode]:
        """As `entity_configs`, with an error in place of each config that has a value that is no string.

        They are read in groups, with turns of the event loop in between.
        """
        configs: dict[str, dict[str, str] | BadZnode] = {}
        for start in range(0, len(names), CONFIGS_AT_ONCE):
            some = names[start : start + CONFIGS_AT_ONCE]
            nodes = await self._get_all([znodes.entity_config_path(f"{entity_type}/{name}") for name in some])
            for name, node in zip(some, nodes, strict=True):
                try:
                    configs[name] = {} if node is None else znodes.decode_entity_config(node.data)
                except BadZnode as error:
                    configs[name] = BadZnode(f"The config of {entity_type}/{name} has {error}")
        return configs

    # Notifications and legacy requests

    async def numbered_children(self, path: str, watcher: Watcher | None = None) -> list[str]:
        """The names of the sequential nodes below a path, oldest first."""
        return sorted(await self.children(path, watcher))

    async def datas(self, paths: Sequence[str]) -> list[bytes | None]:
        """The data of several nodes; None for a node that is missing or, which is logged, cannot be read."""
        operations = [GetData(path) for path in paths]
        datas: list[bytes | None] = []
        for path, answer in zip(paths, await submit_all(self.tree, operations), strict=True):
            if isinstance(answer, UNANSWERED):
                raise answer
            if isinstance(answer, TreeError) and not isinstance(answer, NoNode):
                logger.error("The node %s cannot be read: %s", path, answer)
            datas.append(None if isinstance(answer, TreeError) else answer.data)
        return datas

    async def propagate_log_dir_event(self, broker_id: int) -> None:
        """Notify the controller that a log directory of a broker has failed."""
        path = f"{znodes.LOG_DIR_EVENT_NOTIFICATION}/{znodes.LOG_DIR_EVENT_PREFIX}"
        data = znodes.encode_log_dir_event(broker_id)
        await self.tree.run(Create(path, data, CreateMode.PERSISTENT_SEQUENTIAL))

    async def delete_children(self, path: str, names: Iterable[str], epoch_zk_version: int) -> None:
        await self._delete_all([f"{path}/{name}" for name in names], epoch_zk_version)

    async def partition_reassignment(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The targets in `/admin/reassign_partitions`; none without the node, or if it cannot be read.

        Kafka: KafkaZkClient.getPartitionReassignment.
        """
        node = await self.get(znodes.REASSIGN_PARTITIONS)
        try:
            return {} if node is None else znodes.decode_reassignment(node.data)
        except BadZnode as error:
            logger.warning("Ignoring partition reassignment due to invalid json: %s", error)
            return {}

    async def set_or_create_partition_reassignment(
        self, targets: Mapping[TopicPartition, Iterable[int]], epoch_zk_version: int
    ) -> None:
        data = znodes.encode_reassignment(targets)
        try:
            await self.write(epoch_zk_version, SetData(znodes.REASSIGN_PARTITIONS, data))
        except NoNode:
            await self.create_recursive(znodes.ADMIN)
            await self.write(epoch_zk_version, Create(znodes.REASSIGN_PARTITIONS, data))

    async def preferred_replica_election(self) -> tuple[TopicPartition, ...]:
        """The partitions in `/admin/preferred_replica_election`; none without the node, or if it cannot be read."""
        node = await self.get(znodes.PREFERRED_REPLICA_ELECTION)
        try:
            return () if node is None else znodes.decode_partitions(node.data)
        except BadZnode as error:
            logger.warning("Ignoring preferred replica election due to invalid json: %s", error)
            return ()

    async def delete_node(self, path: str, epoch_zk_version: int) -> None:
        await self._delete_all([path], epoch_zk_version)

    # Producer ids

    async def next_producer_ids_block(self, broker_id: int, size: int) -> ProducerIdsBlock:
        """Allocate the next block of producer ids. If another broker gets it first, try the block after it.

        A node that was made without data has no block yet. Raises: BadZnode for any other data that is no block, also
        for empty data: ids from 0 on could be those of producers that exist.

        Kafka: ZkProducerIdManager.getNewProducerIdBlock.
        """
        while True:
            node = await self.tree.run(GetData(znodes.LATEST_PRODUCER_ID_BLOCK))
            start = 0 if node.data is None else znodes.decode_producer_ids_block(node.data).block_end + 1
            block = ProducerIdsBlock(broker_id, start, start + size - 1)
            write = SetData(znodes.LATEST_PRODUCER_ID_BLOCK, znodes.encode_producer_ids_block(block), node.stat.version)
            try:
                await self.tree.run(write)
            except BadVersion:
                continue
            return block


def stat_of(result: WriteResult) -> Stat:
    """The stat that is the result of a SetData."""
    if not isinstance(result, Stat):
        raise TypeError(f"{result!r} is not a stat")
    return result
