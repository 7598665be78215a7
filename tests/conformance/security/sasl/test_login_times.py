"""The time of a failed login does not tell whether its user, or its delegation token, exists.

A rank test over logins in random order, which other work on the machine disturbs alike. Whether the work is the same,
call by call, is in `tests/unit/broker/security/sasl/test_work_of_failed_logins.py`. OAUTHBEARER has no users: a name is
in a token, and nothing is looked up for it.
"""

from __future__ import annotations

import random
import ssl
from collections.abc import Iterator
from typing import Any, Final

import pytest

from odradek.protocol.api import ApiKey
from tests.conformance.security.conftest import Certificates
from tests.support.loads.hostile.failed_logins import login_times, rank_score
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.processes.ports import free_port
from tests.support.processes.sasl_listeners import PLAIN_MODULE, SCRAM_MODULE
from tests.support.tokens import create_token
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build
from tests.support.wire.sasl_client import authenticate, handshake

HOST: Final = "127.0.0.1"
FEW: Final = 200
FULL: Final = 5_000
STANDARD_DEVIATIONS_MAX: Final = 6
"""A larger difference between two samples of one distribution occurs once in 500 million runs."""
KNOWN, UNKNOWN = "alice", "nobby"
PASSWORD: Final = "secret"
LISTENERS: Final = ("AUTH", "TLSAUTH")
SCRAM: Final = {"SCRAM-SHA-256": (1, 32), "SCRAM-SHA-512": (2, 64)}
"""Number of the type, and bytes of a hash."""


class Target:
    def __init__(self, broker: OdradekBroker, ports: dict[str, int], context: ssl.SSLContext) -> None:
        self.broker = broker
        self.ports = ports
        self._context = context
        self.token_id = ""

    def tls(self, listener: str) -> ssl.SSLContext | None:
        return self._context if listener == "TLSAUTH" else None


@pytest.fixture(scope="module")
def target(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    plain, *sasl = (free_port() for _ in range(3))
    ports = dict(zip(LISTENERS, sasl, strict=True))
    settings = certificates.broker_settings(
        **{
            "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in {"PLAINTEXT": plain, **ports}.items()),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,AUTH:SASL_PLAINTEXT,TLSAUTH:SASL_SSL",
            "sasl.enabled.mechanisms": ",".join(("PLAIN", *SCRAM)),
            "connection.failed.authentication.delay.ms": "0",
            "delegation.token.secret.key": "key",
        }
    )
    for listener in LISTENERS:
        prefix = f"listener.name.{listener.lower()}"
        settings[f"{prefix}.plain.sasl.jaas.config"] = f'{PLAIN_MODULE} required user_{KNOWN}="{PASSWORD}";'
        settings |= {f"{prefix}.{name.lower()}.sasl.jaas.config": f"{SCRAM_MODULE} required;" for name in SCRAM}
    with running(OdradekBroker(tmp_path_factory.mktemp("logins"), settings, plain)) as broker:
        found = Target(broker, ports, certificates.context(certificates.client))
        found.token_id = prepare(found)
        yield found


def prepare(target: Target) -> str:
    """The credentials of the known user. Returns the id of a token."""
    with RawClient(HOST, target.broker.port) as client:
        for number, size in SCRAM.values():
            credential = {"name": KNOWN, "mechanism": number, "iterations": 4096, "salt": b"s" * 26}
            upsertions = [{**credential, "salted_password": b"p" * size}]
            client.call(build(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, deletions=[], upsertions=upsertions), 0)
    with RawClient(HOST, target.ports["AUTH"]) as client:
        handshake(client, "PLAIN")
        assert authenticate(client, f"\0{KNOWN}\0{PASSWORD}".encode()).error_code == 0
        created: Any = eventually(lambda: create_token(client), accept=lambda answer: answer.error_code == 0)
    return str(created.token_id)


@pytest.mark.parametrize("count", [FEW, pytest.param(FULL, marks=pytest.mark.soak)], ids=["few", "full"])
@pytest.mark.parametrize(
    ("listener", "mechanism", "uses_token"),
    [
        ("AUTH", "PLAIN", False),
        ("AUTH", "SCRAM-SHA-256", False),
        ("TLSAUTH", "PLAIN", False),
        ("TLSAUTH", "SCRAM-SHA-512", False),
        ("TLSAUTH", "SCRAM-SHA-256", True),
        ("TLSAUTH", "SCRAM-SHA-512", True),
    ],
)
def test_the_time_of_a_failed_login_does_not_tell_whether_the_user_exists(
    target: Target, listener: str, mechanism: str, uses_token: bool, count: int
) -> None:
    names = (target.token_id, target.token_id[::-1]) if uses_token else (KNOWN, UNKNOWN)
    known, unknown = login_times(
        HOST,
        target.ports[listener],
        mechanism,
        names,
        count,
        random.Random(random.randrange(2**32)),
        target.tls(listener),
        uses_token=uses_token,
    )
    score = rank_score(known, unknown)
    print(f"{listener} {mechanism}: {score:+.1f} standard deviations between {count} logins of each")
    assert abs(score) < STANDARD_DEVIATIONS_MAX
