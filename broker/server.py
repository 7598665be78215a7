"""Starts the parts of a broker in order and stops them in reverse order.

The order is Apache Kafka's: lock the log directories, read the cluster id from the metadata tree, load the logs, bind
the ports (a port in use ends the start before the broker registers), register, start the controller, accept clients.

Kafka: KafkaServer.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.config.dynamic.dynamic_config import DynamicBrokerConfig
from odradek.broker.config.dynamic.dynamic_passwords import Passwords
from odradek.broker.dispatch import Dispatcher
from odradek.broker.inter_broker.socket_links import SocketLinks
from odradek.broker.machine.machine import Machine
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.machine.ticker import Ticker
from odradek.broker.metadata.broker_identity import establish_identity, registered_info
from odradek.broker.metadata.metadata_cache import MetadataCache
from odradek.broker.metadata.metadata_tree_setup import WaitLimit, close_tree, open_acl_tree, open_metadata_tree
from odradek.broker.metadata.policy_setup import load_authorizer, load_policies
from odradek.broker.network.listeners.socket_server import SocketServer
from odradek.broker.network.requests.request_log_switch import RequestLogSwitch, secrets_of
from odradek.broker.quotas.request_throttle import RequestThrottle
from odradek.broker.replica_manager.replication_setup import make_log_manager
from odradek.broker.security.sasl.credential_cache import ScramCredentialCache
from odradek.broker.setup.background_work import BackgroundWork
from odradek.broker.setup.cluster_links import ClusterLinks
from odradek.broker.setup.config_handlers import ConfigHandlers
from odradek.broker.setup.service_setup import ServiceSetup
from odradek.controller.admin.config_changes import ConfigChangeListener
from odradek.controller.admin.feature_changes import FinalizedFeatureChangeListener
from odradek.controller.admin.policies import Policies
from odradek.controller.model.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.controller.tree.metadata_tree import MetadataTree, SetData, TreeError
from odradek.controller.znodes import znodes
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.controller.znodes.registration import RegistrationRefused, check_end_points_are_free
from odradek.controller.znodes.znode_json import BadZnode
from odradek.storage.config.config_def import ConfigError
from odradek.storage.disk.log_dir import LogDir, LogDirError
from odradek.timer.clock import SystemClock
from odradek.timer.sliced_work import SlicedWork
from odradek.timer.system_timer import SystemTimer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from odradek.broker.apis.services import Services
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.config.endpoint import EndPoint
    from odradek.broker.faults.faults import Faults
    from odradek.broker.inter_broker.ports import MakeLink
    from odradek.broker.machine.loop_monitor import LoopMonitor
    from odradek.broker.metadata.metadata_tree_setup import OpenTree
    from odradek.broker.metrics.metrics import Metrics
    from odradek.broker.network.authentication.authentication import Authentications
    from odradek.broker.network.sockets.listening_socket import OpenListening
    from odradek.broker.security.authorizer.ports import Authorizer
    from odradek.broker.security.sasl.mechanisms import SaslParts
    from odradek.broker.security.tls.store_updates import StoreUpdates
    from odradek.broker.security.tls.tls_contexts import TlsContexts
    from odradek.broker.security.tokens.token_manager import DelegationTokenManager
    from odradek.broker.setup.sockets import MakeSockets, Sockets
    from odradek.controller.controller import Controller
    from odradek.controller.model.broker_info import BrokerInfo
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.timer.clock import Clock
    from odradek.timer.task import TimerTask

logger = logging.getLogger(__name__)


class KafkaServer:
    """One broker. `failed` gets the error after which the broker must stop."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        make_sockets: MakeSockets | None = None,
        open_tree: OpenTree = open_metadata_tree,
        make_link: MakeLink | None = None,
        wrap_links: Callable[[MakeLink], MakeLink] = lambda make_link: make_link,
        machine: Machine | None = None,
        listen: OpenListening | None = None,
        prepare: Callable[[KafkaServer], Awaitable[None]] | None = None,
    ) -> None:
        self.config = config
        self.clock: Clock = SystemClock() if clock is None else clock
        self.timer = SystemTimer(self.clock, on_error=_log_timer_error)
        self.addresses: tuple[EndPoint, ...] = ()
        self.cluster_id = ""
        self.broker_id = config.broker_id
        self._loop = asyncio.get_running_loop()
        self.failed: asyncio.Future[None] = self._loop.create_future()
        self._ticker = Ticker(self._loop, self.clock, self.timer)
        self._slices = SlicedWork(self.timer, self.clock, in_turns=True)
        self._machine = Machine.of_process(self._loop) if machine is None else machine
        self._loop_monitor: LoopMonitor | None = None
        self._metrics: Metrics | None = None
        self.metrics_port = 0
        self._tls: TlsContexts | None = None
        self._passwords = Passwords(config, self._machine.io_pool)
        self._policies = Policies(self.clock)
        self._authorizer: Authorizer | None = None
        self._acl_tree: MetadataTree | None = None
        """The ZooKeeper of ACLs; None: they are in the metadata tree."""
        self._scram_credentials = ScramCredentialCache()
        self._log_manager = make_log_manager(config, self.clock, self.timer, self._machine)
        self._log_manager.on_log_dir_failure = self._on_log_dir_failure
        self._open_tree = open_tree
        self._make_link: MakeLink = wrap_links(
            make_link or SocketLinks(config, self.timer, self._tls_contexts, self._sasl_parts)
        )
        self._tree: MetadataTree | None = None
        self._services: Services | None = None
        self._links: ClusterLinks | None = None
        self._make_sockets: MakeSockets = make_sockets or partial(SocketServer, tls=self._tls_contexts, listen=listen)
        self._sockets: Sockets | None = None
        self._prepare = prepare
        """Called when all parts are there and no client is accepted yet."""
        self._dispatcher: Dispatcher | None = None
        self._faults: Faults | None = None
        self._token_manager: DelegationTokenManager | None = None
        self._config_changes: ConfigChangeListener | None = None
        self._features: FinalizedFeatureChangeListener | None = None
        self._has_started = False
        self._background = BackgroundWork(self._loop)

    @property
    def services(self) -> Services:
        """All that the handlers can reach; from the start to the stop."""
        assert self._services is not None, "the broker has not started"
        return self._services

    @property
    def faults(self) -> Faults:
        """Faults on command; made when they are first used, from `prepare` on."""
        if self._faults is None:
            from odradek.broker.faults.faults import Faults

            assert self._dispatcher is not None, "the broker has not started"
            self._faults = Faults(self._dispatcher, self.services)
        return self._faults

    def clock_moved(self) -> None:
        """The clock was set forward by more than the time that has passed."""
        self._ticker.clock_moved()

    def _tls_contexts(self) -> TlsContexts:
        """Made when the first listener or link with TLS needs them."""
        if self._tls is None:
            from odradek.broker.security.tls.tls_contexts import TlsContexts

            self._tls = TlsContexts(self.config)
        return self._tls

    def _store_updates(self) -> StoreUpdates | None:
        if self._tls is None:
            return None
        from odradek.broker.security.tls.store_updates import StoreUpdates

        return StoreUpdates(self._tls, self._machine.io_pool)

    # Start

    async def start(self) -> None:
        """Start; clients are served when it returns.

        Raises: StartupError with one line for an operator. Everything is stopped and unlocked by then.
        """
        try:
            await self._start()
        except (BadZnode, LogDirError, RegistrationRefused, TreeError) as error:
            await self.stop()
            raise StartupError(str(error)) from error
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        logger.info("[KafkaServer id=%d] starting", self.broker_id)
        self._log_manager.lock_dirs()
        self._tree = await self._open_tree(self.config, self.clock, self._fail)
        client = MetadataClient(self._tree)
        self.cluster_id, self.broker_id = await establish_identity(
            self.config, client, self._log_manager.live_log_dirs, self._machine.new_id
        )
        logger.info("[KafkaServer id=%d] Cluster ID = %s", self.broker_id, self.cluster_id)
        self.config.assign_broker_id(self.broker_id)
        self._ticker.start()
        self._watch_loop(self.config.odradek_event_loop_pause_ms)
        dynamic = await self._load_dynamic_configs(client)
        await self._load_classes(client)
        await self._start_token_manager(client)
        topics = sorted(await client.topics())
        overrides = await client.entity_configs("topics", topics)
        await self._load_logs(overrides)
        partition_counts = await client.topic_partition_counts({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC})
        cache = await self._make_metadata_cache(client)

        self._sockets = sockets = self._make_sockets(
            self.config, self.clock, self.timer, self._machine.io_pool, lambda *request: dispatcher.dispatch(*request)
        )
        if isinstance(sockets, SocketServer):
            sockets.make_authentications = partial(self._make_authentications, cache)
        self.addresses = await sockets.open()
        broker_info = registered_info(self.config, self.broker_id, self.addresses)
        self._links = links = ClusterLinks(
            self.config,
            self._make_link,
            cache,
            self.clock,
            self.timer,
            self._background.start,
            broker_id=self.broker_id,
        )
        self._services = services = self._make_services(
            client, broker_info, cache, links, has_topics=bool(topics), partition_counts=partition_counts
        )
        self._dispatcher = dispatcher = Dispatcher(
            services,
            self._background.start,
            services.first_metadata,
            self._slices,
            metadata_version=self.config.metadata_version,
            apis=self.config.apis,
        )
        if isinstance(sockets, SocketServer):
            sockets.dispatch = dispatcher.dispatch  # without the function in between, which each request would call
        links.serve(services, dispatcher)
        await self._start_metrics(services, sockets, dispatcher)
        services.spawn, services.in_slices = dispatcher.spawn, dispatcher.in_slices
        services.observe_requests = dispatcher.observe
        RequestLogSwitch(dispatcher, services.logger_levels, self.clock, secrets_of(self.config))
        services.quotas.when_enabled(lambda: dispatcher.observe(RequestThrottle(services.quotas)))
        handlers = ConfigHandlers(services, dynamic, sockets, broker_info)
        self._config_changes = ConfigChangeListener(client, self.clock, handlers.apply)
        await self._config_changes.start()
        services.replica_manager.startup()
        services.group_coordinator.startup()
        services.transaction_coordinator.startup()
        await check_end_points_are_free(client, broker_info)
        await services.controller.register()
        self._expire_tokens(services.controller)
        await services.controller.start()
        self._log_manager.start_background_tasks()
        if self._prepare is not None:
            await self._prepare(self)
        sockets.start_accepting()
        self._has_started = True
        logger.info("[KafkaServer id=%d] started", self.broker_id)

    async def _make_metadata_cache(self, client: MetadataClient) -> MetadataCache:
        cache = MetadataCache(self.broker_id)
        if self.config.metadata_version.has_features:
            self._features = FinalizedFeatureChangeListener(client, cache.update_features_epoch)
            await self._features.start()
        return cache

    async def _load_dynamic_configs(self, client: MetadataClient) -> DynamicBrokerConfig:
        """Apply the stored configs of the brokers and of this one, before listeners and logs are opened with them."""
        await self._re_encode_passwords(client)
        dynamic = DynamicBrokerConfig(self.config, self._log_manager, self._passwords, self._store_updates)
        names = (znodes.DEFAULT_ENTITY, str(self.broker_id))
        for name, stored in (await client.entity_configs("brokers", names)).items():
            await dynamic.entity_changed(name, stored)
        return dynamic

    async def _load_classes(self, client: MetadataClient) -> None:
        """Make the policies and the authorizer, which see the dynamic configs of the start, too.

        Kafka: KafkaConfig.originals.
        """
        self._policies = load_policies(self.config, self.clock)
        self._acl_tree = await open_acl_tree(self.config)
        acl_client = client if self._acl_tree is None else MetadataClient(self._acl_tree)
        self._authorizer = await load_authorizer(self.config, acl_client, self.clock, self.timer, self._machine.rng)

    async def _start_token_manager(self, client: MetadataClient) -> None:
        secret = self.config.delegation_token_secret
        if secret is not None:
            from odradek.broker.security.tokens.token_setup import make_token_manager

            self._token_manager = make_token_manager(self.config, client, self.clock, self._machine, secret)
            await self._token_manager.startup()

    def _expire_tokens(self, controller: Controller) -> None:
        if self._token_manager is not None:
            from odradek.broker.security.tokens.token_expiry import TokenExpiry

            interval_ms = self.config.delegation_token_expiry_check_interval_ms
            controller.while_active = TokenExpiry(self._token_manager, self.timer, interval_ms, self._background.start)

    async def _re_encode_passwords(self, client: MetadataClient) -> None:
        entity_path = f"brokers/{self.broker_id}"
        try:
            configs = await self._passwords.encoded_anew(await client.entity_config(entity_path))
        except (BadZnode, ConfigError) as error:
            raise StartupError(f"The passwords of {entity_path} cannot be re-encoded: {error}") from error
        if configs is not None:
            path = znodes.entity_config_path(entity_path)  # no other broker reads it; there may be no controller yet
            await client.tree.run(SetData(path, znodes.encode_entity_config(configs)))

    async def _load_logs(self, overrides: dict[str, dict[str, str]]) -> None:
        """Load all logs without blocking the event loop."""
        loaded = self._loop.create_future()

        def done(error: BaseException | None) -> None:
            if not loaded.done():
                loaded.set_result(error)

        self._log_manager.begin_startup(overrides, done)
        error = await loaded
        if error is not None:
            raise error

    async def _start_metrics(self, services: Services, sockets: Sockets, dispatcher: Dispatcher) -> None:
        if self.config.odradek_metrics_listener and isinstance(sockets, SocketServer):
            from odradek.broker.metrics.metrics import Metrics

            self._metrics = Metrics(services, sockets, dispatcher.count_with)
            self.metrics_port = await self._metrics.start()

    def _sasl_parts(self) -> SaslParts:
        from odradek.broker.setup.sasl_setup import make_sasl_parts  # imported for SASL alone

        return make_sasl_parts(self.clock, self._machine, self._scram_credentials, self._token_manager)

    def _make_authentications(self, cache: MetadataCache) -> Authentications:
        from odradek.broker.setup.sasl_setup import make_authentications

        return make_authentications(self.config, self._sasl_parts(), self.timer, self._background.start, cache)

    def _watch_loop(self, pause_ms: int) -> None:
        if pause_ms:
            from odradek.broker.machine.loop_monitor import LoopMonitor

            self._loop_monitor = LoopMonitor(self._loop, self.clock, pause_ms)
            self._loop_monitor.start()

    def _make_services(
        self,
        client: MetadataClient,
        broker_info: BrokerInfo,
        cache: MetadataCache,
        links: ClusterLinks,
        *,
        has_topics: bool,
        partition_counts: Mapping[str, int],
    ) -> Services:
        setup = ServiceSetup(
            config=self.config,
            cluster_id=self.cluster_id,
            broker_info=broker_info,
            clock=self.clock,
            timer=self.timer,
            slices=self._slices,
            machine=self._machine,
            log_manager=self._log_manager,
            client=client,
            cache=cache,
            links=links,
            make_link=self._make_link,
            policies=self._policies,
            authorizer=self._authorizer,
            passwords=self._passwords,
            store_updates=self._store_updates,
            scram_credentials=self._scram_credentials,
            token_manager=self._token_manager,
            spawn=self._background.start,
            call_soon=self._loop.call_soon,
        )
        return setup.make(has_topics=has_topics, partition_counts=partition_counts)

    # While it runs

    def _on_log_dir_failure(self, log_dir: LogDir, partitions: list[TopicPartition]) -> None:
        if self._services is not None:
            self._services.replica_manager.handle_log_dir_failure(partitions)
        if not (self._log_manager.live_log_dirs and self.config.metadata_version.survives_log_dir_failure):
            self._fail(log_dir.failure or OSError(f"log directory {log_dir.path} failed"))
        elif self._services is not None:
            # The controller asks this broker for the state of its replicas and elects other leaders.
            client = self._services.controller.client
            self._background.start(client.propagate_log_dir_event(self.broker_id))

    def _fail(self, error: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)

    # Stop

    async def stop(self) -> None:
        """Stop serving clients, write the files of a clean shutdown, release every directory and port."""
        if self._has_started:
            logger.info("[KafkaServer id=%d] shutting down", self.broker_id)
        services, sockets = self._services, self._sockets
        wait_limit = None if self._tree is None else WaitLimit(self._tree)
        if services is not None and wait_limit is not None and self._has_started and not self.failed.done():
            await self._controlled_shutdown(services, wait_limit)
        if sockets is not None:
            sockets.stop_accepting()
        if self._metrics is not None:
            await self._metrics.close()
        if self._features is not None:
            self._features.stop()
        if self._config_changes is not None:
            await self._config_changes.shutdown()
        if self._token_manager is not None:
            await self._token_manager.shutdown()
        if sockets is not None:
            await sockets.close()
        if self._faults is not None:
            self._faults.close()
        await self._background.cancel()
        self._slices.close()
        self._shut_down_services()
        self._ticker.stop()
        if self._loop_monitor is not None:
            self._loop_monitor.stop()
        await self._shut_down_logs()
        if self._tree is not None and wait_limit is not None:
            await close_tree(self._tree, wait_limit, None if services is None else services.controller.shutdown())
        if self._acl_tree is not None:
            await self._acl_tree.close()
        self._machine.io_pool.close()
        if self._has_started:
            logger.info("[KafkaServer id=%d] shut down completed", self.broker_id)

    async def _shut_down_logs(self) -> None:
        if self._log_manager.is_started:
            # A flush that fails takes its directory offline, which then gets no marker of a clean stop. The kernel
            # reports the error once: the flush of the shutdown would not see it. Kafka: KafkaScheduler.shutdown.
            await self._machine.io_pool.settled()
        # Before the locks are released: another broker may lock the directories then.
        self._machine.workers.close()
        self._log_manager.shutdown()

    def _shut_down_services(self) -> None:
        services = self._services
        if services is not None:
            services.first_metadata.close()
            services.group_coordinator.shutdown()
            services.transaction_coordinator.shutdown()
            services.replica_manager.shutdown()
        if self._links is not None:
            self._links.close()
        # The classes of operators, after the last request that this broker can get: it may come from itself.
        self._policies.close()
        if self._authorizer is not None:
            try:
                self._authorizer.close()
            except Exception:
                logger.exception("Cannot close the authorizer %s", type(self._authorizer).__qualname__)
        if services is not None:
            services.quotas.close()

    async def _controlled_shutdown(self, services: Services, wait_limit: WaitLimit) -> None:
        """Run the controlled shutdown, unless ZooKeeper is unreachable: no controller can move leaders then."""
        services.replica_manager.fetchers.begin_shutdown()
        assert self._links is not None
        shutdown = asyncio.ensure_future(self._links.controlled_shutdown(lambda: services.controller.broker_epoch))
        if not await wait_limit.wait(shutdown):
            logger.warning("Proceeding without a controlled shutdown: the metadata tree is unreachable")
            shutdown.cancel()
            await asyncio.wait({shutdown})
        if not shutdown.cancelled():
            shutdown.result()


def _log_timer_error(task: TimerTask, error: Exception) -> None:
    logger.error("Error in timer task %r", task, exc_info=error)
