"""Creates a broker's links to the other brokers, with the listener, the client id and the time-out of each.

Requests of the controller and requests to the controller use `control.plane.listener.name` if it is set; everything
else uses the inter-broker listener. Each purpose has links of its own, so that no request waits for the response to a
request of another purpose.

Kafka: KafkaServer.startup, ControllerChannelManager.addNewBroker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.inter_broker.alter_partition_manager import AlterPartitionManager
from odradek.broker.inter_broker.broker_links import BrokerLinks
from odradek.broker.inter_broker.control_transport import LinkTransport, NoListener
from odradek.broker.inter_broker.own_link import OwnLink
from odradek.broker.inter_broker.producer_ids import OwnBlocks, ProducerIdManager
from odradek.broker.inter_broker.to_controller import NodeToControllerChannelManager
from odradek.broker.transaction_channel import InterBrokerChannel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from odradek.broker.apis.services import Services
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.dispatch import Dispatcher
    from odradek.broker.inter_broker.ports import MakeLink, ToController
    from odradek.broker.metadata.metadata_cache import MetadataCache
    from odradek.controller.channels import ControlTransport
    from odradek.controller.model.broker_info import Broker
    from odradek.controller.znodes.znodes import ProducerIdsBlock
    from odradek.timer.clock import Clock
    from odradek.timer.system_timer import SystemTimer


class ClusterLinks:
    """`spawn` runs a coroutine until the broker stops."""

    def __init__(
        self,
        config: BrokerConfig,
        make_link: MakeLink,
        cache: MetadataCache,
        clock: Clock,
        timer: SystemTimer,
        spawn: Callable[[Coroutine[object, object, None]], None],
        *,
        broker_id: int,
    ) -> None:
        self._config = config
        self._make_link = make_link
        self._cache = cache
        self._clock = clock
        self._timer = timer
        self._spawn = spawn
        self._broker_id = broker_id
        self.own_link = OwnLink(broker_id, config.listeners.control.name, timer)
        self._controller_channels: list[NodeToControllerChannelManager] = []
        self.inter_broker = InterBrokerChannel(
            self._inter_broker_links(f"broker-{broker_id}-txn-marker-sender"),
            self._inter_broker_links(f"AddPartitionsManager-client-{broker_id}"),
            spawn,
            config.request_timeout_ms,
            config.metadata_version.write_txn_markers_request_version,
        )

    def serve(self, broker: Services, dispatcher: Dispatcher) -> None:
        """From now on this broker handles the requests that it sends to itself."""
        self.own_link.serve(dispatcher.serve)
        self.inter_broker.serve(broker)

    def control_transport(self, broker: Broker) -> ControlTransport:
        """How the controller sends requests to `broker`."""
        config = self._config
        timeout_ms = config.request_timeout_ms
        if broker.id == self._broker_id:
            return LinkTransport(self.own_link, timeout_ms, config.metadata_version)
        end_point = broker.end_point(config.listeners.control.name)
        if end_point is None:
            return NoListener(broker.id, config.listeners.control.name)
        # The protocol that this broker is configured with, not the one that the other broker has registered.
        end_point = end_point._replace(security_protocol=config.listeners.control.security_protocol)
        link = self._make_link(end_point, client_id=str(self._broker_id))
        return LinkTransport(link, timeout_ms, config.metadata_version)

    def to_controller(self) -> ToController:
        """A new channel to the controller, with its own queue of requests."""
        config = self._config
        links = BrokerLinks(
            self._make_link,
            self.own_link,
            self._cache,
            broker_id=self._broker_id,
            listener=config.listeners.control,
            client_id=str(self._broker_id),
        )
        channel = NodeToControllerChannelManager(
            links, self._cache, self._clock, self._timer, config.controller_socket_timeout_ms
        )
        self._controller_channels.append(channel)
        return channel

    def alter_partition(self, broker_epoch: Callable[[], int]) -> AlterPartitionManager:
        """The manager that sends the ISR changes of this broker's partitions to the controller."""
        return AlterPartitionManager(
            self.to_controller(),
            self._timer,
            self._spawn,
            broker_id=self._broker_id,
            broker_epoch=broker_epoch,
            metadata_version=self._config.metadata_version,
        )

    def producer_ids(
        self, broker_epoch: Callable[[], int], next_block: Callable[[int, int], Awaitable[ProducerIdsBlock]]
    ) -> ProducerIdManager:
        """The source of producer ids. `next_block` reserves a block in the metadata tree, for versions before 3.0."""
        asks_controller = self._config.metadata_version.has_producer_id_allocation
        return ProducerIdManager(
            self.to_controller() if asks_controller else OwnBlocks(next_block),
            self._timer,
            self._spawn,
            broker_id=self._broker_id,
            broker_epoch=broker_epoch,
            timeout_ms=self._config.request_timeout_ms,
        )

    async def controlled_shutdown(self, broker_epoch: Callable[[], int]) -> None:
        """Ask the controller to move the leaderships away, with retries. A single node (no ZooKeeper) does nothing."""
        if not (self._config.uses_zookeeper and self._config.controlled_shutdown_enable):
            return
        from odradek.broker.inter_broker.controlled_shutdown import ControlledShutdown

        links = self._inter_broker_links(str(self._broker_id))
        request = ControlledShutdown(
            self._config, links, self._cache, self._timer, broker_id=self._broker_id, broker_epoch=broker_epoch
        )
        try:
            await request.run()
        finally:
            links.close()

    def close(self) -> None:
        """Close all links but those of `control_transport`, which the controller closes. This broker takes no request
        from its own controller any more."""
        self.own_link.end()
        self.inter_broker.close()
        for channel in self._controller_channels:
            channel.close()

    def _inter_broker_links(self, client_id: str) -> BrokerLinks:
        return BrokerLinks(
            self._make_link,
            self.own_link,
            self._cache,
            broker_id=self._broker_id,
            listener=self._config.listeners.inter_broker,
            client_id=client_id,
        )
