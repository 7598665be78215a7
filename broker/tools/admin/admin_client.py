"""Sends the requests of commands for a running cluster: to any broker, to a certain one, or to the controller.

`run` makes a client and runs a command with it.

Kafka: Admin, KafkaAdminClient.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from odradek.broker.inter_broker.broker_connection import BrokerConnection, LinkSettings
from odradek.broker.inter_broker.response_errors import error_codes
from odradek.broker.inter_broker.socket_links import connect_plaintext
from odradek.broker.machine.ticker import Ticker
from odradek.broker.machine.timed_waits import pause
from odradek.broker.network.frame_buffers import FrameBuffers
from odradek.controller.model.broker_info import EndPoint, SecurityProtocol
from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import DEFAULT_MESSAGES, ErrorCode
from odradek.protocol.framing import MAX_FRAME_BYTES
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import SystemClock
from odradek.timer.system_timer import SystemTimer

if TYPE_CHECKING:
    from odradek.broker.inter_broker.ports import BrokerLink, MakeLink
    from odradek.protocol.codec.schema import Request
    from odradek.timer.clock import Clock

REQUEST_TIMEOUT_MS: Final = 30_000
API_TIMEOUT_MS: Final = 60_000
"""To find the controller and to get its response."""

RETRY_BACKOFF_MS: Final = 100
CONNECTION_SETUP_TIMEOUT_MS: Final = 10_000
CLIENT_ID: Final = "odradek-admin"

ResponseT = TypeVar("ResponseT", bound=Response)
Ongoing = Mapping[TopicPartition, OngoingPartitionReassignment]


class CommandFailed(Exception):
    """Ends a command with exit status 1. The message is printed on stderr."""


def check(code: int, message: str | None, what: str) -> None:
    """Raises: CommandFailed for an error."""
    if code != ErrorCode.NONE:
        raise CommandFailed(f"{what}: {error_text(code, message)}")


def error_text(code: int, message: str | None) -> str:
    """The broker's message of an error, else the default message of its code."""
    return message or DEFAULT_MESSAGES[ErrorCode(code)]


class AdminClient:
    """Links to brokers, each made at its first use."""

    def __init__(self, make_link: MakeLink, bootstrap: Iterable[EndPoint], clock: Clock, timer: SystemTimer) -> None:
        self._bootstrap = [make_link(end_point, client_id=CLIENT_ID) for end_point in bootstrap]
        self._links: dict[EndPoint, BrokerLink] = {}
        self._make_link = make_link
        self._clock = clock
        self._timer = timer

    async def ask(self, request: Request, response_type: type[ResponseT]) -> ResponseT:
        """The response of the first bootstrap server that answers."""
        failures = []
        for link in self._bootstrap:
            try:
                return await link.exchange(request, response_type, version=None, timeout_ms=REQUEST_TIMEOUT_MS)
            except OSError as error:
                failures.append(str(error))
        raise CommandFailed(f"no bootstrap server answers: {'; '.join(failures)}")

    async def metadata(self, topics: Iterable[str] | None = ()) -> MetadataResponse:
        """The metadata of these topics, or of all (None)."""
        named = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        return await self.ask(MetadataRequest(topics=named, allow_auto_topic_creation=False), MetadataResponse)

    async def ask_broker(self, broker_id: int, request: Request, response_type: type[ResponseT]) -> ResponseT:
        """Raises: CommandFailed if the broker is not alive; OSError if it does not answer."""
        for node in (await self.metadata()).brokers:
            if node.node_id == broker_id:
                end_point = EndPoint(node.host, node.port, "", SecurityProtocol.PLAINTEXT)
                if end_point not in self._links:
                    self._links[end_point] = self._make_link(end_point, client_id=CLIENT_ID)
                link = self._links[end_point]
                return await link.exchange(request, response_type, version=None, timeout_ms=REQUEST_TIMEOUT_MS)
        raise CommandFailed(f"broker {broker_id} is not alive")

    async def ask_controller(self, request: Request, response_type: type[ResponseT]) -> ResponseT:
        """The controller's response. Retries while the controller changes. Raises: CommandFailed."""
        asked_ms = self._clock.monotonic_ms()
        reason = "the cluster has no controller"
        while self._clock.monotonic_ms() - asked_ms < API_TIMEOUT_MS:
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
            await self.back_off()
        raise CommandFailed(f"the controller does not answer: {reason}")

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

    async def back_off(self) -> None:
        """Wait a moment before asking again."""
        await pause(self._timer, RETRY_BACKOFF_MS)

    def close(self) -> None:
        for link in (*self._bootstrap, *self._links.values()):
            link.close()


def file_text(path: str) -> str:
    """The text of a file on the command line. Raises: argparse.ArgumentTypeError."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def run(bootstrap: str, work: Callable[[AdminClient], Awaitable[None]]) -> int:
    """Run a command. Returns the exit status."""
    try:
        asyncio.run(_run(parse_bootstrap(bootstrap), work))
    except (CommandFailed, OSError) as error:
        sys.stdout.flush()
        sys.stderr.write(f"odradek: {error}\n")
        return 1
    return 0


def parse_bootstrap(text: str) -> list[EndPoint]:
    """`host:port,host:port`; an IPv6 address in brackets. Raises: CommandFailed."""
    end_points = []
    for address in text.split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise CommandFailed(f"--bootstrap-server: {address!r} is not host:port")
        end_points.append(EndPoint(host.strip("[]"), int(port), "", SecurityProtocol.PLAINTEXT))
    return end_points


async def _run(bootstrap: list[EndPoint], work: Callable[[AdminClient], Awaitable[None]]) -> None:
    clock = SystemClock()
    timer = SystemTimer(clock)
    ticker = Ticker(asyncio.get_running_loop(), clock, timer)
    ticker.start()
    settings = LinkSettings(
        connect=connect_plaintext,
        timer=timer,
        max_frame_bytes=MAX_FRAME_BYTES,
        connection_setup_timeout_ms=CONNECTION_SETUP_TIMEOUT_MS,
        connection_setup_timeout_max_ms=CONNECTION_SETUP_TIMEOUT_MS,
        buffers=FrameBuffers(),
    )

    def make_link(end_point: EndPoint, /, *, client_id: str) -> BrokerConnection:
        return BrokerConnection(end_point, client_id=client_id, settings=settings)

    client = AdminClient(make_link, bootstrap, clock, timer)
    try:
        await work(client)
    finally:
        client.close()
        ticker.stop()
