"""What a request handler can reach. Wired once, in server.py; handlers get it as their first argument."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odradek.broker.config import BrokerConfig
    from odradek.broker.fetch_session import FetchSessionCache
    from odradek.broker.internal_topics import TopicCreator
    from odradek.broker.metadata_cache import MetadataCache
    from odradek.broker.producer_ids import ProducerIdManager
    from odradek.broker.replica_manager import ReplicaManager
    from odradek.controller.controller import Controller
    from odradek.coordinator.group.coordinator import GroupCoordinator
    from odradek.storage.log_manager import LogManager
    from odradek.storage.ports import IoPool
    from odradek.timer.clock import Clock
    from odradek.timer.system_timer import SystemTimer


@dataclass(slots=True, kw_only=True)
class Services:
    config: BrokerConfig
    broker_id: int
    cluster_id: str
    clock: Clock
    timer: SystemTimer
    io_pool: IoPool
    log_manager: LogManager
    replica_manager: ReplicaManager
    metadata_cache: MetadataCache
    fetch_sessions: FetchSessionCache
    group_coordinator: GroupCoordinator
    controller: Controller
    topic_creator: TopicCreator
    producer_ids: ProducerIdManager
    spawn: Callable[[Coroutine[Any, Any, None]], None]
    """Runs a coroutine in the server's task group: for handlers that wait for the controller."""
