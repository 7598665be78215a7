"""Logins that fail: many at once, which wait for their delayed answers, and their times for known and unknown users."""

from __future__ import annotations

import random
import ssl
import time
from base64 import b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

import psutil

from odradek.broker.security.sasl.plain import PlainSaslClient
from odradek.broker.security.sasl.ports import SaslClient
from odradek.broker.security.sasl.scram_messages import TOKEN_AUTH
from odradek.controller.model.scram_mechanism import SCRAM_MECHANISMS
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.loads.hostile.hostile_input import Watch
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build
from tests.support.wire.sasl_client import handshake, log_in


class Costs(NamedTuple):
    """What delayed logins cost a broker, as long as they wait."""

    memory_bytes: int
    descriptors_left: int
    """More than before, when all are over."""
    longest_s: float
    """The longest wait of another client for an answer."""
    soonest_s: float
    """The time until the first answer."""


def delayed_logins(broker: OdradekBroker, port: int, count: int) -> Costs:
    """So many clients with a wrong password at once. All are answered and closed."""
    process = psutil.Process(broker.pid)
    memory, descriptors = process.memory_info().rss, process.num_fds()
    watch = Watch(broker)
    with watch.looking():
        clients = [RawClient(broker.host, port, timeout_s=60) for _ in range(count)]
        for client in clients:
            handshake(client, "PLAIN")
        began_s = time.monotonic()
        for client in clients:
            client.send(build(ApiKey.SASL_AUTHENTICATE, auth_bytes=b"\0alice\0wrong"), 2)
        most = process.memory_info().rss
        soonest_s = 0.0
        for client in clients:
            answer = client.receive(ApiKey.SASL_AUTHENTICATE, 2)
            soonest_s = soonest_s or time.monotonic() - began_s
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED  # type: ignore[attr-defined]
            assert client.awaits_close()
            client.close()
    eventually(process.num_fds, accept=lambda number: number <= descriptors + 5)
    return Costs(most - memory, process.num_fds() - descriptors, watch.longest_s, soonest_s)


class WrongProof:
    """A client of SCRAM that sends random bytes in place of a proof, and so needs not compute one."""

    def __init__(self, mechanism: str, user: str, *, uses_token: bool) -> None:
        self.is_complete = False
        self._proof = b64encode(random.randbytes(SCRAM_MECHANISMS[mechanism].hash_bytes))
        extension = f",{TOKEN_AUTH}=true" if uses_token else ""
        self._first = f"n,,n={user},r={random.randrange(2**64):x}{extension}".encode()

    def evaluate_challenge(self, challenge: bytes, /) -> bytes | None:
        if not challenge:
            return self._first
        nonce, _, _ = challenge.partition(b",")
        return b"c=biws," + nonce + b",p=" + self._proof


def failing_client(mechanism: str, user: str, *, uses_token: bool) -> SaslClient:
    return (
        PlainSaslClient(user, "wrong") if mechanism == "PLAIN" else WrongProof(mechanism, user, uses_token=uses_token)
    )


def login_times(
    host: str,
    port: int,
    mechanism: str,
    users: tuple[str, str],
    count: int,
    rng: random.Random,
    tls: ssl.SSLContext | None = None,
    *,
    uses_token: bool = False,
) -> tuple[list[float], list[float]]:
    """The seconds of so many failed logins of each of two users, in random order. The broker answers without delay.
    `tls`: the listener has TLS, whose handshake is over before. `uses_token`: the users are ids of delegation tokens.
    """
    times: dict[str, list[float]] = {user: [] for user in users}
    order = list(users) * count
    rng.shuffle(order)
    for user in order:
        sasl = failing_client(mechanism, user, uses_token=uses_token)
        with RawClient(host, port, tls=tls) as client:
            client.call(build(ApiKey.API_VERSIONS), 0)
            began_s = time.perf_counter()
            answer = log_in(client, mechanism, sasl)
            times[user].append(time.perf_counter() - began_s)
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    return times[users[0]], times[users[1]]


def rank_score(one: Iterable[float], other: Iterable[float]) -> float:
    """How far two samples are from being of one distribution, in standard deviations (Mann and Whitney's U)."""
    first, second = list(one), sorted(other)
    wins = sum((bisect_left(second, value) + bisect_right(second, value)) / 2 for value in first)
    pairs = len(first) * len(second)
    deviation: float = (pairs * (len(first) + len(second) + 1) / 12) ** 0.5
    return (wins - pairs / 2) / deviation
