"""Automatic creation of topics: for a client's Metadata request, and the internal topics of the coordinators.

Creation runs in the background. The client gets LEADER_NOT_AVAILABLE or COORDINATOR_NOT_AVAILABLE and retries. A topic
whose creation is in progress is not created a second time.

Kafka: AutoTopicCreationManager, DefaultAutoTopicCreationManager.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from odradek.controller.model.topic_names import (
    GROUP_METADATA_TOPIC,
    INTERNAL_TOPICS,
    TRANSACTION_STATE_TOPIC,
    is_valid_topic_name,
)
from odradek.controller.tree.metadata_tree import TreeError
from odradek.controller.znodes.znode_json import BadZnode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from odradek.protocol.messages.metadata import MetadataResponseTopic

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.controller.admin.topic_admin import AdminManager, RecordMutations

log = logging.getLogger(__name__)


class AutoTopicCreationManager:
    """Creates topics through the controller. `spawn` runs a coroutine until the broker stops."""

    def __init__(
        self,
        config: BrokerConfig,
        admin: AdminManager,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._config = config
        self._admin = admin
        self._spawn = spawn
        self._in_flight: set[str] = set()

    async def create_automatically(
        self, names: Sequence[str], record_mutations: RecordMutations
    ) -> list[MetadataResponseTopic]:
        """Start the creation of `names`; return their entries for the Metadata response.

        `record_mutations` counts the partitions for the quota of the client.
        """
        errors: dict[str, ErrorCode] = {}
        creatable = []
        for name in names:
            if not is_valid_topic_name(name):
                errors[name] = ErrorCode.INVALID_TOPIC_EXCEPTION
            elif name in self._in_flight:
                errors[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                creatable.append(self._topic(name))
        if creatable:
            started = [topic.name for topic in creatable]
            self._in_flight.update(started)
            try:
                errors.update(await self._admin.auto_create_topics(creatable, record_mutations))
            finally:
                self._in_flight.difference_update(started)
        return [
            MetadataResponseTopic(error_code=errors[name], name=name, is_internal=name in INTERNAL_TOPICS)
            for name in names
        ]

    def create_in_background(self, name: str, record_mutations: RecordMutations) -> None:
        """Start the creation of an internal topic, unless it is in progress."""
        if name not in self._in_flight:
            # Before the task starts: one request may name the topic many times.
            self._in_flight.add(name)
            self._spawn(self._create(name, record_mutations))

    async def _create(self, name: str, record_mutations: RecordMutations) -> None:
        try:
            errors = await self._admin.auto_create_topics([self._topic(name)], record_mutations)
        except (TreeError, BadZnode) as error:  # the next client that needs the topic starts the creation again
            log.warning("Creating %s failed: %s", name, error)
            return
        finally:
            self._in_flight.discard(name)
        if errors[name] != ErrorCode.LEADER_NOT_AVAILABLE:
            log.warning("Creating %s failed: %s", name, errors[name].name)

    def _topic(self, name: str) -> CreatableTopic:
        config = self._config
        if name == GROUP_METADATA_TOPIC:
            return CreatableTopic(
                name=name,
                num_partitions=config.offsets_topic_num_partitions,
                replication_factor=config.offsets_topic_replication_factor,
                configs=_configs(
                    {
                        "cleanup.policy": "compact",
                        "segment.bytes": str(config.offsets_topic_segment_bytes),
                        "compression.type": "producer",
                    }
                ),
            )
        if name == TRANSACTION_STATE_TOPIC:
            return CreatableTopic(
                name=name,
                num_partitions=config.transaction_state_log_num_partitions,
                replication_factor=config.transaction_state_log_replication_factor,
                configs=_configs(
                    {
                        "compression.type": "uncompressed",
                        "cleanup.policy": "compact",
                        "min.insync.replicas": str(config.transaction_state_log_min_isr),
                        "segment.bytes": str(config.transaction_state_log_segment_bytes),
                        "unclean.leader.election.enable": "false",
                    }
                ),
            )
        return CreatableTopic(
            name=name, num_partitions=config.num_partitions, replication_factor=config.default_replication_factor
        )


def _configs(values: dict[str, str]) -> list[CreatableTopicConfig]:
    return [CreatableTopicConfig(name=name, value=value) for name, value in values.items()]
