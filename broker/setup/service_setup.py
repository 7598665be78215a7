"""Makes the parts that request handlers use, and connects them. Starting and stopping them is the server's work.

Kafka: KafkaServer.startup.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.apis.services import Services
from odradek.broker.config.dynamic.dynamic_config import DynamicBrokerConfig
from odradek.broker.coordinators.add_partitions_to_txn_manager import AddPartitionsToTxnManager
from odradek.broker.coordinators.coordinator_setup import make_group_coordinator, make_transaction_coordinator
from odradek.broker.coordinators.transaction_verification import TransactionVerification
from odradek.broker.fetch.down_conversion import DownConverter
from odradek.broker.fetch.fetch_session import FETCHES_AT_ONCE, PartitionFetch
from odradek.broker.fetch.fetch_session_cache import FetchSessionCache
from odradek.broker.machine.logger_levels import LoggerLevels
from odradek.broker.metadata.consumer_offset_tree import ZnodeOffsets
from odradek.broker.metadata.first_metadata import FirstMetadata
from odradek.broker.metadata.internal_topics import AutoTopicCreationManager
from odradek.broker.metadata.topic_waits import TopicWaits
from odradek.broker.quotas.quota_managers import QuotaManagers
from odradek.broker.replica_manager.replication_setup import make_replica_manager
from odradek.broker.setup.controller_setup import controller_config_of
from odradek.controller.admin.config_admin import ConfigAdmin
from odradek.controller.admin.topic_admin import AdminManager
from odradek.controller.channels import ControllerChannels
from odradek.controller.controller import Controller
from odradek.controller.model.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.storage.log.offset_lookup import LongLookups
from odradek.timer.walks import Walks

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.config.dynamic.dynamic_config import StoreUpdates
    from odradek.broker.config.dynamic.dynamic_passwords import Passwords
    from odradek.broker.inter_broker.ports import MakeLink
    from odradek.broker.machine.machine import Machine
    from odradek.broker.metadata.metadata_cache import MetadataCache
    from odradek.broker.replica_manager.replica_manager import ReplicaManager
    from odradek.broker.security.authorizer.ports import Authorizer
    from odradek.broker.security.sasl.credential_cache import ScramCredentialCache
    from odradek.broker.security.tokens.token_manager import DelegationTokenManager
    from odradek.broker.setup.cluster_links import ClusterLinks
    from odradek.controller.admin.policies import Policies
    from odradek.controller.model.broker_info import BrokerInfo
    from odradek.controller.model.controller_config import ControllerConfig
    from odradek.controller.znodes.metadata_client import MetadataClient
    from odradek.coordinator.group.coordinator import GroupCoordinator
    from odradek.coordinator.transaction.coordinator import TransactionCoordinator
    from odradek.storage.manager.log_manager import LogManager
    from odradek.timer.clock import Clock
    from odradek.timer.sliced_work import SlicedWork
    from odradek.timer.system_timer import SystemTimer


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ServiceSetup:
    """What exists before the services: the logs are loaded, the ports are bound, the broker is not registered."""

    config: BrokerConfig
    cluster_id: str
    broker_info: BrokerInfo
    clock: Clock
    timer: SystemTimer
    slices: SlicedWork
    machine: Machine
    log_manager: LogManager
    client: MetadataClient
    cache: MetadataCache
    links: ClusterLinks
    make_link: MakeLink
    policies: Policies
    authorizer: Authorizer | None
    passwords: Passwords
    store_updates: Callable[[], StoreUpdates | None]
    scram_credentials: ScramCredentialCache
    token_manager: DelegationTokenManager | None
    spawn: Callable[[Coroutine[object, object, None]], None]
    """Runs a coroutine until the broker stops."""
    call_soon: Callable[[Callable[[], None]], object]
    """Calls a function in the next turn of the event loop."""

    def make(self, *, has_topics: bool, partition_counts: Mapping[str, int]) -> Services:
        """All services but `spawn` and `in_slices`, which the dispatcher has. `has_topics`: the tree names topics.
        `partition_counts`: of those topics of coordinators that exist.
        """
        config = self.config
        controller_config = controller_config_of(config)
        controller = self._controller(controller_config)
        replicas = self._replica_manager(controller)
        verification = TransactionVerification(config, replicas, AddPartitionsToTxnManager(self.links.inter_broker))
        topic_waits = TopicWaits(self.cache, self.timer)
        admin = self._admin(controller_config, topic_waits)
        return Services(
            config=config,
            broker_id=self.broker_info.broker.id,
            cluster_id=self.cluster_id,
            clock=self.clock,
            timer=self.timer,
            io_pool=self.machine.io_pool,
            log_manager=self.log_manager,
            replica_manager=replicas,
            metadata_cache=self.cache,
            first_metadata=FirstMetadata(self.timer, self.call_soon, has_topics=has_topics),
            fetch_sessions=self._fetch_sessions(),
            down_converter=DownConverter(self.machine.workers, self.clock.monotonic_ns),
            long_lookups=LongLookups(self.machine.workers),
            group_coordinator=self._group_coordinator(replicas, verification, partition_counts),
            transaction_coordinator=self._transaction_coordinator(replicas, controller, partition_counts),
            transaction_verification=verification,
            controller=controller,
            admin=admin,
            config_admin=self._config_admin(),
            topic_creator=AutoTopicCreationManager(config, admin, self.spawn),
            topic_waits=topic_waits,
            quotas=QuotaManagers(config, self.clock, self.timer),
            topic_overrides=lambda topics: self.client.entity_configs("topics", topics),
            topic_partition_counts=self.client.topic_partition_counts,
            slices=self.slices,
            logger_levels=LoggerLevels(),
            token_manager=self.token_manager,
            authorizer=self.authorizer,
            scram_credentials=self.scram_credentials,
        )

    def _controller(self, config: ControllerConfig) -> Controller:
        return Controller(
            tree=self.client.tree,
            broker_info=self.broker_info,
            config=config,
            clock=self.clock,
            timer=self.timer,
            channel=ControllerChannels(self.links.control_transport, self.timer),
            new_topic_id=self.machine.new_id,
        )

    def _replica_manager(self, controller: Controller) -> ReplicaManager:
        return make_replica_manager(
            self.config,
            self.log_manager,
            self.cache,
            self.clock,
            self.timer,
            broker_id=self.broker_info.broker.id,
            alter_partition=self.links.alter_partition(lambda: controller.broker_epoch),
            make_link=self.make_link,
            broker_epoch=lambda: controller.broker_epoch,
        )

    def _fetch_sessions(self) -> FetchSessionCache:
        return FetchSessionCache(
            self.config.max_incremental_fetch_session_cache_slots,
            self.machine.rng.randint,
            release=partial(Walks(self.timer, FETCHES_AT_ONCE).walk, visit=PartitionFetch.leave),
        )

    def _group_coordinator(
        self, replicas: ReplicaManager, verification: TransactionVerification, partition_counts: Mapping[str, int]
    ) -> GroupCoordinator:
        return make_group_coordinator(
            self.config,
            replicas,
            self.clock,
            self.timer,
            self.machine.io_pool,
            partition_count=partition_counts.get(GROUP_METADATA_TOPIC),
            consumer_offset_tree=ZnodeOffsets(self.client, self.spawn),
            verify_transaction=verification.of_topic(GROUP_METADATA_TOPIC),
        )

    def _transaction_coordinator(
        self, replicas: ReplicaManager, controller: Controller, partition_counts: Mapping[str, int]
    ) -> TransactionCoordinator:
        next_block = self.client.next_producer_ids_block
        return make_transaction_coordinator(
            self.config,
            replicas,
            self.clock,
            self.timer,
            self.machine.io_pool,
            partition_count=partition_counts.get(TRANSACTION_STATE_TOPIC),
            producer_ids=self.links.producer_ids(lambda: controller.broker_epoch, next_block).next,
            channel=self.links.inter_broker,
        )

    def _admin(self, config: ControllerConfig, topic_waits: TopicWaits) -> AdminManager:
        return AdminManager(
            client=self.client,
            config=config,
            ready=topic_waits,
            random_below=self.machine.rng.randrange,
            new_topic_id=self.machine.new_id,
            policies=self.policies,
        )

    def _config_admin(self) -> ConfigAdmin:
        config = self.config
        return ConfigAdmin(
            client=self.client,
            has_topic=self.cache.contains,
            broker_id=self.broker_info.broker.id,
            broker_configs=DynamicBrokerConfig(config, self.log_manager, self.passwords, self.store_updates),
            broker_settings=lambda: config.settings,
            policies=self.policies,
        )
