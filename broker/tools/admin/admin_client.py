"""Sends the requests of commands for a running cluster: to any broker, to a certain one, or to the controller.

`run` makes a client and runs a command with it.

Kafka: Admin, KafkaAdminClient.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from odradek.broker.inter_broker.response_errors import error_codes
from odradek.broker.machine.timed_waits import pause
from odradek.broker.tools.command.failures import CommandFailed, check
from odradek.broker.tools.command.links import links_of
from odradek.broker.tools.command.running import config_of, run_command
from odradek.controller.model.broker_info import EndPoint, SecurityProtocol
from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    import argparse

    from odradek.broker.inter_broker.ports import BrokerLink, MakeLink
    from odradek.broker.tools.command.client_config import ClientConfig
    from odradek.broker.tools.command.output import Output
    from odradek.protocol.codec.schema import Request
    from odradek.timer.clock import Clock
    from odradek.timer.system_timer import SystemTimer

ResponseT = TypeVar("ResponseT", bound=Response)
Work = Callable[["AdminClient", "Output", "argparse.Namespace"], Awaitable[None]]
"""What a command does with a client."""

Ongoing = Mapping[TopicPartition, OngoingPartitionReassignment]


class AdminClient:
    """Links to brokers, each made at its first use."""

    def __init__(self, config: ClientConfig, make_link: MakeLink, clock: Clock, timer: SystemTimer) -> None:
        """Raises: CommandFailed if a bootstrap server is no host:port."""
        self.config = config
        self._bootstrap = [
            make_link(end_point, client_id=config.client_id) for end_point in parse_bootstrap(config.bootstrap)
        ]
        self._links: dict[EndPoint, BrokerLink] = {}
        self._brokers: dict[int, EndPoint] = {}
        """The brokers of the last metadata."""
        self._make_link = make_link
        self.clock = clock
        self._timer = timer

    async def ask(self, request: Request, response_type: type[ResponseT]) -> ResponseT:
        """The response of the first bootstrap server that answers."""
        failures = []
        for link in self._bootstrap:
            try:
                return await self._exchange(link, request, response_type)
            except OSError as error:
                failures.append(str(error))
        raise CommandFailed(f"no bootstrap server answers: {'; '.join(failures)}")

    async def metadata(self, topics: Iterable[str] | None = ()) -> MetadataResponse:
        """The metadata of these topics, or of all (None)."""
        named = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=named, allow_auto_topic_creation=False)
        response = await self.ask(request, MetadataResponse)
        self._brokers = {
            node.node_id: EndPoint(node.host, node.port, "", SecurityProtocol.PLAINTEXT) for node in response.brokers
        }
        return response

    async def broker_ids(self) -> list[int]:
        """The brokers that are alive."""
        await self.metadata()
        return sorted(self._brokers)

    def address(self, broker_id: int) -> EndPoint | None:
        """The address of a broker, from the last metadata."""
        return self._brokers.get(broker_id)

    async def ask_broker(self, broker_id: int, request: Request, response_type: type[ResponseT]) -> ResponseT:
        """Raises: CommandFailed if the broker is not alive; OSError if it does not answer."""
        if broker_id not in self._brokers:
            await self.metadata()
        if broker_id not in self._brokers:
            raise CommandFailed(f"broker {broker_id} is not alive")
        end_point = self._brokers[broker_id]
        if end_point not in self._links:
            self._links[end_point] = self._make_link(end_point, client_id=self.config.client_id)
        try:
            return await self._exchange(self._links[end_point], request, response_type)
        except OSError:
            self._brokers.clear()  # the broker may have another address now
            raise

    async def ask_controller(self, request: Request, response_type: type[ResponseT]) -> ResponseT:
        """The controller's response. Retries while the controller changes. Raises: CommandFailed."""
        reason = "the cluster has no controller"
        async for _ in self.attempts():
            controller_id = (await self.metadata()).controller_id
            if controller_id >= 0:
                try:
                    response = await self.ask_broker(controller_id, request, response_type)
                except OSError as error:
                    reason = str(error)
                else:
                    if ErrorCode.NOT_CONTROLLER not in error_codes(response):
                        return response
                    reason = f"broker {controller_id} is not the controller"
        raise CommandFailed(f"the controller does not answer: {reason}")

    async def attempts(self) -> AsyncIterator[None]:
        """An element at once, and one after each `retry.backoff.ms`, until `default.api.timeout.ms` has passed."""
        began_ms = self.clock.monotonic_ms()
        while True:
            yield
            if self.clock.monotonic_ms() - began_ms >= self.config.api_timeout_ms:
                return
            await self.back_off()

    async def reassignments(self) -> Ongoing:
        """All ongoing reassignments. Raises: CommandFailed."""
        response = await self.ask_controller(
            ListPartitionReassignmentsRequest(topics=None), ListPartitionReassignmentsResponse
        )
        check(response.error_code, response.error_message, "Listing reassignments")
        return {
            TopicPartition(topic.name, partition.partition_index): partition
            for topic in response.topics
            for partition in topic.partitions
        }

    async def _exchange(self, link: BrokerLink, request: Request, response_type: type[ResponseT]) -> ResponseT:
        timeout_ms = min(self.config.request_timeout_ms, self.config.api_timeout_ms)
        return await link.exchange(request, response_type, version=None, timeout_ms=timeout_ms)

    async def back_off(self) -> None:
        """Wait a moment before asking again."""
        await pause(self._timer, self.config.retry_backoff_ms)

    def close(self) -> None:
        for link in (*self._bootstrap, *self._links.values()):
            link.close()


def run(options: argparse.Namespace, work: Work) -> int:
    """Run a command with the options of `add_client_options`. Returns the exit status."""
    return run_command(options, lambda out: asyncio.run(_run(options, work, out)))


def parse_bootstrap(text: str) -> list[EndPoint]:
    """`host:port,host:port`; an IPv6 address in brackets. Raises: CommandFailed."""
    end_points = []
    for address in text.split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise CommandFailed(f"--bootstrap-server: {address!r} is not host:port")
        end_points.append(EndPoint(host.strip("[]"), int(port), "", SecurityProtocol.PLAINTEXT))
    return end_points


async def _run(options: argparse.Namespace, work: Work, out: Output) -> None:
    config = config_of(options)
    with links_of(config) as links:
        client = AdminClient(config, links.make_link, links.clock, links.timer)
        try:
            await work(client, out, options)
        finally:
            client.close()
