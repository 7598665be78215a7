"""A cluster for tests of commands: the test sets the answers of brokers 1, 2 and 3, and no connection is opened."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, cast

import pytest

from odradek.broker.tools.admin.client.admin_client import AdminClient, run
from odradek.broker.tools.command.addresses import Address
from odradek.broker.tools.command.client_config import ClientConfig
from odradek.broker.tools.command.output import Output
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.timer.clock import Clock

Answer = Callable[[int, Request], Response]
R = TypeVar("R", bound=Request)
T = TypeVar("T")
TOPIC_ID = bytes(range(16))


def topic(name: str, *replicas: Sequence[int], is_internal: bool = False) -> MetadataResponseTopic:
    """A topic whose partitions have these replicas, all in sync and led by the first."""
    return MetadataResponseTopic(
        name=name,
        topic_id=TOPIC_ID,
        is_internal=is_internal,
        partitions=[
            MetadataResponsePartition(
                partition_index=index, leader_id=found[0], replica_nodes=[*found], isr_nodes=[*found]
            )
            for index, found in enumerate(replicas)
        ],
    )


class AdminLink:
    """Stands in for `SocketLink`."""

    def __init__(self, address: Address, answer: Callable[[Address, Request], Response]) -> None:
        self._address = address
        self._answer = answer

    async def exchange(self, request: Request, response_type: type[Response], timeout_ms: int) -> Response:
        assert timeout_ms >= 0
        response = self._answer(self._address, request)
        assert isinstance(response, response_type)
        return response

    def close(self) -> None: ...


class AdminCluster:
    """Broker N listens on port 9000 + N; broker 2 is the controller."""

    def __init__(self) -> None:
        self.controller_id = 2
        self.racks: dict[int, str | None] = {1: None, 2: None, 3: None}
        self.topics: dict[str, MetadataResponseTopic] = {}
        self.unreachable: set[int] = set()
        self.asked: list[tuple[int, Request]] = []
        self.answers: dict[type[Request], Answer] = {MetadataRequest: self._metadata}

    def on(self, request_type: type[R], answer: Callable[[int, R], Response]) -> None:
        """Answer this kind of request so."""
        self.answers[request_type] = cast("Answer", answer)

    def requests(self, request_type: type[R]) -> list[tuple[int, R]]:
        """Those of a kind, with the broker that was asked."""
        return [(broker_id, request) for broker_id, request in self.asked if isinstance(request, request_type)]

    def has(self, *topics: MetadataResponseTopic) -> None:
        self.topics |= {found.name or "": found for found in topics}

    def make_link(self, address: Address, config: ClientConfig, clock: Clock) -> AdminLink:
        assert address.host == "host"
        return AdminLink(address, self.answer)

    def answer(self, address: Address, request: Request) -> Response:
        broker_id = address.port - 9000
        if broker_id in self.unreachable:
            raise ConnectionRefusedError(f"broker {broker_id} is down")
        self.asked.append((broker_id, request))
        return self.answers[type(request)](broker_id, request)

    def _metadata(self, broker_id: int, request: Request) -> Response:
        topics = cast("MetadataRequest", request).topics
        names = self.topics if topics is None else [wanted.name or "" for wanted in topics]
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return MetadataResponse(
            cluster_id="cluster",
            controller_id=self.controller_id,
            brokers=[
                MetadataResponseBroker(node_id=found, host="host", port=9000 + found, rack=rack)
                for found, rack in self.racks.items()
            ],
            topics=[self.topics.get(name, MetadataResponseTopic(name=name, error_code=unknown)) for name in names],
        )


def outcome(
    work: Callable[[AdminClient], Awaitable[T]], status: int = 0, bootstrap: str = "host:9001,host:9003"
) -> list[T]:
    """The result of some work with a client, unless it fails; the exit status must be as said."""
    found: list[T] = []

    async def keep(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
        found.append(await work(client))

    options = argparse.Namespace(bootstrap_server=bootstrap, command_config=None, json=False, table=False)
    assert run(options, keep) == status
    return found


async def no_wait(client: AdminClient) -> None:
    """In place of `AdminClient.back_off` where there is nothing to wait for."""
    raise AssertionError("a wait of retry.backoff.ms")


Main = Callable[[Sequence[str]], int]
Outcome = tuple[int, list[str], str]


class Command:
    """Runs a command against the cluster."""

    def __init__(self, cluster: AdminCluster, capsys: pytest.CaptureFixture[str]) -> None:
        self.cluster = cluster
        self._capsys = capsys

    def __call__(self, main: Main, *arguments: str, bootstrap: str = "host:9001,host:9003") -> Outcome:
        """Exit status, lines on stdout, what is on stderr."""
        status = main(["--bootstrap-server", bootstrap, *arguments])
        printed = self._capsys.readouterr()
        return status, printed.out.splitlines(), printed.err
