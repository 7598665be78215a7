"""Sends the requests of commands for a running cluster: to any broker, to a certain one, or to the controller.

`run` makes a client and runs a command with it.

Kafka: Admin, KafkaAdminClient.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from odradek.broker.inter_broker.request_format import VersionMismatch
from odradek.broker.inter_broker.response_errors import error_codes
from odradek.broker.tools.command.addresses import Address, parse_addresses
from odradek.broker.tools.command.failures import CommandFailed, check
from odradek.broker.tools.command.running import config_of, run_command
from odradek.broker.tools.command.socket_link import SocketLink
from odradek.broker.tools.command.socket_loop import run as run_in_loop
from odradek.broker.tools.command.socket_loop import sleep
from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import SystemClock

if TYPE_CHECKING:
    import argparse

    from odradek.broker.tools.command.client_config import ClientConfig
    from odradek.broker.tools.command.output import Output
    from odradek.protocol.codec.schema import Request
    from odradek.protocol.messages.list_partition_reassignments import OngoingPartitionReassignment
    from odradek.timer.clock import Clock

ResponseT = TypeVar("ResponseT", bound=Response)
Work = Callable[["AdminClient", "Output", "argparse.Namespace"], Coroutine[object, object, None]]
"""What a command does with a client."""

Ongoing = Mapping[TopicPartition, "OngoingPartitionReassignment"]


class AdminClient:
    """Links to brokers, each made at its first use."""

    def __init__(self, config: ClientConfig, clock: Clock) -> None:
        """Raises: CommandFailed if a bootstrap server is no host:port."""
        self.config = config
        self.clock = clock
        self._links = {address: SocketLink(address, config, clock) for address in parse_addresses(config.bootstrap)}
        self._bootstrap = list(self._links.values())
        self._brokers: dict[int, Address] = {}
        """The brokers of the last metadata."""

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
        # Versions before 4 cannot forbid the creation of topics; no topic is created by a request that names none.
        request = MetadataRequest(topics=named, allow_auto_topic_creation=not named)
        response = await self.ask(request, MetadataResponse)
        self._brokers = {node.node_id: Address(node.host, node.port) for node in response.brokers}
        return response

    async def broker_ids(self) -> list[int]:
        """The brokers that are alive."""
        await self.metadata()
        return sorted(self._brokers)

    def address(self, broker_id: int) -> Address | None:
        """The address of a broker, from the last metadata."""
        return self._brokers.get(broker_id)

    async def ask_broker(self, broker_id: int, request: Request, response_type: type[ResponseT]) -> ResponseT:
        """Raises: CommandFailed if the broker is not alive; OSError if it does not answer."""
        if broker_id not in self._brokers:
            await self.metadata()
        if broker_id not in self._brokers:
            raise CommandFailed(f"broker {broker_id} is not alive")
        address = self._brokers[broker_id]
        if address not in self._links:
            self._links[address] = SocketLink(address, self.config, self.clock)
        try:
            return await self._exchange(self._links[address], request, response_type)
        except OSError:
            self._brokers.clear()  # the broker may have another address now
            raise

    async def ask_controller(self, request: Request, response_type: type[ResponseT]) -> ResponseT:
        """The controller's response. Retries while the controller changes. Raises: CommandFailed, VersionMismatch."""
        reason = "the cluster has no controller"
        async for _ in self.attempts():
            controller_id = (await self.metadata()).controller_id
            if controller_id >= 0:
                try:
                    response = await self.ask_broker(controller_id, request, response_type)
                except VersionMismatch:
                    raise
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
        """All ongoing reassignments. Raises: CommandFailed, Refused; VersionMismatch."""
        from odradek.protocol.messages.list_partition_reassignments import (
            ListPartitionReassignmentsRequest,
            ListPartitionReassignmentsResponse,
        )

        response = await self.ask_controller(
            ListPartitionReassignmentsRequest(topics=None), ListPartitionReassignmentsResponse
        )
        check(response.error_code, response.error_message, "Listing reassignments")
        return {
            TopicPartition(topic.name, partition.partition_index): partition
            for topic in response.topics
            for partition in topic.partitions
        }

    async def _exchange(self, link: SocketLink, request: Request, response_type: type[ResponseT]) -> ResponseT:
        timeout_ms = min(self.config.request_timeout_ms, self.config.api_timeout_ms)
        return await link.exchange(request, response_type, timeout_ms)

    async def back_off(self) -> None:
        """Wait a moment before asking again."""
        await sleep(self.clock.monotonic_ms() + self.config.retry_backoff_ms)

    def close(self) -> None:
        for link in self._links.values():
            link.close()


def run(options: argparse.Namespace, work: Work) -> int:
    """Run a command with the options of `add_client_options`. Returns the exit status."""
    clock = SystemClock()
    return run_command(options, lambda out: run_in_loop(_run(options, work, out, clock), clock))


async def _run(options: argparse.Namespace, work: Work, out: Output, clock: Clock) -> None:
    client = AdminClient(config_of(options), clock)
    try:
        await work(client, out, options)
    finally:
        client.close()
