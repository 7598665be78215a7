"""Sends the requests of producers and consumers: to leaders, to coordinators, and to any broker for metadata.

Each broker has one link for each purpose, so that a fetch that waits for records delays no heartbeat. What is answered
at once, metadata and ListOffsets, has one link together. Metadata is asked from any broker that is known, the bootstrap
servers last.

Kafka: NetworkClient, ConsumerNetworkClient.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Protocol, TypeVar

from odradek.broker.tools.command.addresses import Address, parse_addresses
from odradek.broker.tools.command.failures import CommandFailed, error_text
from odradek.broker.tools.command.socket_loop import sleep
from odradek.broker.tools.data.client.cluster_view import ClusterView
from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import RETRIABLE, ErrorCode
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

if TYPE_CHECKING:
    from odradek.broker.tools.command.client_config import ClientConfig
    from odradek.broker.tools.command.socket_loop import Event
    from odradek.protocol.codec.schema import Request
    from odradek.timer.clock import Clock

ResponseT = TypeVar("ResponseT", bound=Response)


class DataLink(Protocol):
    """One connection with one request under way: a `SocketLink`."""

    async def exchange(
        self, request: Request, response_type: type[ResponseT], timeout_ms: int, *, version: int | None = None
    ) -> ResponseT:
        """Send a request, in the highest common version unless one is given. Raises: OSError."""

    async def send(self, request: Request, timeout_ms: int) -> None:
        """Send a request without an answer, in the highest common version. Raises: OSError."""

    def close(self) -> None: ...


MakeDataLink = Callable[["Address", "ClientConfig", "Clock"], DataLink]


class Unavailable(CommandFailed):
    """No broker answers, or there is no coordinator, at present. Work that has begun goes on when there is one."""


class DataClient:
    """Links to the brokers of a cluster, and what is known of it."""

    def __init__(self, config: ClientConfig, make_link: MakeDataLink, clock: Clock) -> None:
        """Raises: CommandFailed if a bootstrap server is no host:port."""
        self.config = config
        self.clock = clock
        self.cluster = ClusterView()
        self._bootstrap = parse_addresses(config.bootstrap)
        self._make_link = make_link
        self._links: dict[tuple[Address, str], DataLink] = {}

    def link(self, node_id: int, purpose: str) -> DataLink:
        """The link to a broker for one purpose. Raises: ConnectionError if the broker is not known."""
        address = self.cluster.nodes.get(node_id)
        if address is None:
            raise ConnectionRefusedError(f"broker {node_id} is not alive")
        return self._link(address, purpose)

    def _link(self, address: Address, purpose: str) -> DataLink:
        found = self._links.get((address, purpose))
        if found is None:
            found = self._links[address, purpose] = self._make_link(address, self.config, self.clock)
        return found

    async def ask(
        self,
        node_id: int,
        request: Request,
        response_type: type[ResponseT],
        *,
        purpose: str,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> ResponseT:
        """A broker's response. Raises: OSError."""
        timeout_ms = self.config.request_timeout_ms if timeout_ms is None else timeout_ms
        return await self.link(node_id, purpose).exchange(request, response_type, timeout_ms, version=version)

    async def ask_any(self, request: Request, response_type: type[ResponseT]) -> ResponseT:
        """The response of the first broker that answers. Raises: Unavailable if none does."""
        failures: dict[Address, str] = {}
        for address in (*self.cluster.nodes.values(), *self._bootstrap):
            if address in failures:
                continue
            link = self._link(address, "metadata")
            try:
                return await link.exchange(request, response_type, self.config.request_timeout_ms)
            except OSError as error:
                failures[address] = str(error)
        raise Unavailable(f"no bootstrap server answers: {'; '.join(failures.values())}")

    async def refresh(self, topics: Collection[str] | None, *, create: bool = False) -> None:
        """Ask for the metadata of these topics, or of all (None). `create`: a broker may create missing topics.

        Raises: Unavailable if no broker answers.
        """
        named = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        response = await self.ask_any(MetadataRequest(topics=named, allow_auto_topic_creation=create), MetadataResponse)
        self.cluster.update(response)
        if topics is None:
            self.cluster.forget_missing(topic.name or "" for topic in response.topics)

    async def await_topic(self, topic: str, *, create: bool, timeout_ms: int) -> int:
        """The number of partitions of a topic, which may be created by this. Raises: CommandFailed."""
        began_ms = self.clock.monotonic_ms()
        while True:
            try:
                await self.refresh([topic], create=create)
            except Unavailable:
                if self.clock.monotonic_ms() - began_ms >= timeout_ms:
                    raise
                await self.back_off()
                continue
            code = self.cluster.error(topic)
            if code == ErrorCode.NONE and (count := self.cluster.partition_count(topic)):
                return count
            is_final = code not in RETRIABLE or (code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not create)
            if is_final or self.clock.monotonic_ms() - began_ms >= timeout_ms:
                raise CommandFailed(f"topic {topic}: {error_text(code)}")
            await self.back_off()

    async def find_coordinator(self, key: str, key_type: int) -> int:
        """The broker that coordinates a group (key type 0) or a transactional id (1).

        Retries while there is none. Raises: Unavailable in the end; CommandFailed for an error that stays.
        """
        began_ms = self.clock.monotonic_ms()
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        while True:
            try:
                (found,) = (await self.ask_any(request, FindCoordinatorResponse)).coordinators
                if found.error_code == ErrorCode.NONE:
                    if found.node_id not in self.cluster.nodes:
                        await self.refresh(())
                    if found.node_id in self.cluster.nodes:
                        return found.node_id
                elif found.error_code not in RETRIABLE:
                    raise CommandFailed(f"coordinator of {key}: {error_text(found.error_code, found.error_message)}")
                reason = error_text(found.error_code, found.error_message)
            except Unavailable as error:
                reason = str(error)
            if self.clock.monotonic_ms() - began_ms >= self.config.api_timeout_ms:
                raise Unavailable(f"{key} has no coordinator: {reason}")
            await self.back_off()

    async def back_off(self) -> None:
        """Wait a moment before asking again."""
        await self.wait(self.config.retry_backoff_ms)

    async def wait(self, delay_ms: int, event: Event | None = None) -> None:
        """Wait for a time, but no longer than until the event has happened."""
        until_ms = self.clock.monotonic_ms() + delay_ms
        await (sleep(until_ms) if event is None else event.wait(until_ms))

    def close(self) -> None:
        for link in self._links.values():
            link.close()
