"""The metrics of a broker, from its start to its stop: what counts, what measures, and the endpoint.

Imported only where `odradek.metrics.listener` is set.
"""

from __future__ import annotations

import asyncio
from itertools import chain
from typing import TYPE_CHECKING

from odradek.broker.config.keys.validators import host_and_port
from odradek.broker.meters.broker_topic_stats import BrokerTopicStats
from odradek.broker.meters.connection_meters import ConnectionMeters
from odradek.broker.meters.verification_stats import VerificationStats
from odradek.broker.metrics.endpoint import MetricsEndpoint, ScrapeFailedError
from odradek.broker.metrics.families.families import FAMILIES
from odradek.broker.metrics.loop_delay import GENERATION_MS, LoopDelay
from odradek.broker.metrics.request_metrics import RequestMeters
from odradek.broker.metrics.text import Text, content_type
from odradek.broker.metrics.view import Limits, Sources, View
from odradek.broker.network.responses.response_sender import SentBytes
from odradek.coordinator.load_times import LoadTimes
from odradek.timer.sliced_work import SlicedWork

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.apis.services import Services
    from odradek.broker.network.listeners.socket_server import SocketServer
    from odradek.broker.network.requests.request import RequestCounters
    from odradek.timer.sliced_work import Steps


class Metrics:
    """The parts that exist only while metrics are on."""

    def __init__(
        self, services: Services, sockets: SocketServer, count_with: Callable[[RequestCounters], None]
    ) -> None:
        config = services.config
        requests, topic_stats, sent_bytes = RequestMeters(), BrokerTopicStats(), SentBytes()
        self._sources = Sources(
            services=services,
            sockets=sockets,
            requests=requests,
            topic_stats=topic_stats,
            loop_delay=LoopDelay(services.clock, services.timer, requests.adjust),
            sent_bytes=sent_bytes,
            connections=ConnectionMeters(services.clock),
            verifications=VerificationStats(services.clock),
            group_loads=LoadTimes(services.clock),
            transaction_loads=LoadTimes(services.clock),
            started_ms=services.clock.time_ms(),
            limits=Limits(
                partitions=config.odradek_metrics_max_partitions,
                topics=config.odradek_metrics_max_topics,
                groups=config.odradek_metrics_max_groups,
            ),
        )
        self._listener = host_and_port("odradek.metrics.listener", config.odradek_metrics_listener)
        services.replica_manager.partitions.topic_stats = topic_stats
        services.transaction_verification.manager.stats = self._sources.verifications
        services.group_coordinator.ownership.load_times = self._sources.group_loads
        services.transaction_coordinator.states.ownership.load_times = self._sources.transaction_loads
        sockets.sent_bytes, sockets.connection_meters = sent_bytes, self._sources.connections
        count_with(requests)
        self._text = Text(FAMILIES)
        self._generation_ends_ms = 0
        self._slices = SlicedWork(services.timer, services.clock, in_turns=True)
        self._endpoint = MetricsEndpoint(self.render, services.timer)

    async def start(self) -> int:
        """Serve; returns the port. Raises: StartupError."""
        self._sources.loop_delay.start()
        return await self._endpoint.start(*self._listener)

    async def close(self) -> None:
        await self._endpoint.close()
        self._sources.loop_delay.stop()
        self._slices.close()

    async def render(self, accept: str) -> tuple[str, list[bytes]]:
        """The content type and the text of one scrape. It ends early when the caller is cancelled.

        Raises: ScrapeFailedError.
        """
        self._begin_generation()
        self._sources.requests.settle()
        rendered: asyncio.Future[list[bytes]] = asyncio.get_running_loop().create_future()

        def steps() -> Steps:
            parts: list[bytes] = []
            is_complete = False
            try:
                view = View(self._sources)
                for _ in chain(view.prepare(), self._text.steps(view, accept, parts)):
                    if rendered.cancelled():
                        return
                    yield None
                is_complete = True
            finally:
                if not rendered.done():
                    if is_complete:
                        rendered.set_result(parts)
                    else:
                        rendered.set_exception(ScrapeFailedError("a metric could not be read"))

        self._slices.submit(steps())
        return content_type(accept), await rendered

    def _begin_generation(self) -> None:
        """Once a minute, drop the oldest minute of the histograms."""
        now_ms = self._sources.services.clock.monotonic_ms()
        if now_ms >= self._generation_ends_ms:
            self._generation_ends_ms = now_ms + GENERATION_MS
            events = self._sources.services.controller.events
            flushes = self._sources.services.log_manager.environment.flush_times_ms
            zookeeper = self._sources.services.controller.zookeeper_latency_ms
            controllership = self._sources.services.controller.controllership
            verifications = self._sources.verifications.times_ms
            channels = () if controllership is None else controllership.channel.queue_times_ms.values()
            times = (events.queue_time_ms, *events.times_ms.values(), flushes, zookeeper, verifications, *channels)
            for histogram in times:
                if histogram is not None:
                    histogram.begin_generation()
