"""Requests with the ids of replicas, brokers and controllers: refused in every version, whoever sends them and how.

Once over each kind of listener and with each mechanism, the same on both kinds of brokers.
"""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from odradek.broker.config.keys.sasl import VALIDATOR
from odradek.broker.security.sasl.oauth.client_response import ClientInitialResponse
from odradek.broker.security.sasl.oauth.oauthbearer import LOGIN_MODULE as OAUTH_MODULE
from odradek.broker.security.sasl.plain import PlainSaslClient
from odradek.broker.security.sasl.scram import ScramSaslClient
from odradek.controller.model.scram_mechanism import SCRAM_MECHANISMS
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import ErrorCode
from tests.conformance.security.conftest import Certificates
from tests.support.broker import Broker
from tests.support.jwt import jwks, rsa_jwk, rsa_key, signed
from tests.support.loads.hostile.forged_identities import errors_in
from tests.support.loads.hostile.forged_replica_ids import Topics, forged_requests
from tests.support.processes.ports import free_port
from tests.support.processes.sasl_listeners import PLAIN_MODULE, SCRAM_MODULE
from tests.support.transcripts.secured import ACL_AUTHORIZER
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.raw_topics import make_topic
from tests.support.wire.requests import batch, build
from tests.support.wire.sasl_client import authenticate, handshake, log_in

pytestmark = pytest.mark.oracle

HOST: Final = "127.0.0.1"
PROTOCOLS: Final = {"PLAINTEXT": "PLAINTEXT", "AUTH": "SASL_PLAINTEXT", "TLSAUTH": "SASL_SSL", "CERT": "SSL"}
SHARED: Final = "shared"
FOREIGN: Final = "foreign"
USER: Final = "mallory"
PASSWORD: Final = "of-mallory"
KEY_ID: Final = "key-1"
AUDIENCE: Final = "kafka-test"
SASL: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


class Entrances:
    """A broker with a listener of each security protocol."""

    def __init__(self, broker: Broker, ports: dict[str, int], context: ssl.SSLContext) -> None:
        self.broker = broker
        self._ports = ports
        self._context = context
        with RawClient(HOST, broker.port) as client:
            answer: Any = client.call(build(ApiKey.METADATA, topics=[{"name": SHARED}]), 12)
        self.topics = Topics(SHARED, answer.topics[0].topic_id, FOREIGN)

    def connection(self, listener: str) -> RawClient:
        """Without TLS on AUTH; the certificate of mallory is shown where it is asked for."""
        return RawClient(HOST, self._ports[listener], tls=None if listener == "AUTH" else self._context)

    def state(self) -> list[Response]:
        """What no forged request may change."""
        asked = [{"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]} for name in (SHARED, FOREIGN)]
        with RawClient(HOST, self.broker.port) as client:
            return [
                client.call(build(ApiKey.METADATA, topics=None), 12),
                client.call(build(ApiKey.LIST_OFFSETS, replica_id=-1, topics=asked), 5),
                client.call(build(ApiKey.DESCRIBE_CLUSTER), 1),
            ]


@pytest.fixture(scope="module")
def entrances(
    make_broker: Callable[..., Any], certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Entrances]:
    directory = tmp_path_factory.mktemp("entrances")
    (directory / "jwks.json").write_bytes(jwks(rsa_jwk(rsa_key(), kid=KEY_ID, alg="RS256", use="sig")))
    ports = {name: free_port() for name in PROTOCOLS}
    settings = certificates.broker_settings(
        **{
            "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in PROTOCOLS.items()),
            "sasl.enabled.mechanisms": ",".join(SASL),
            "ssl.principal.mapping.rules": "RULE:^.*CN=([^,]+).*$/$1/",
            "sasl.oauthbearer.jwks.endpoint.url": f"file:{directory}/jwks.json",
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "authorizer.class.name": ACL_AUTHORIZER,
            "super.users": "User:ANONYMOUS",
            "auto.create.topics.enable": "false",
        }
    )
    for listener in ("auth", "tlsauth"):
        prefix = f"listener.name.{listener}."
        settings |= {
            f"{prefix}plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_{USER}="{PASSWORD}";',
            f"{prefix}scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
            f"{prefix}scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
            f"{prefix}oauthbearer.sasl.jaas.config": f"{OAUTH_MODULE} required;",
            f"{prefix}oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
        }
    process = make_broker(directory / "broker", settings)
    process.port = ports["PLAINTEXT"]
    process.start()
    prepare(process)
    context = certificates.context(certificates.authority.issue(USER, organization="Org"))
    yield Entrances(process, ports, context)
    process.close()


def prepare(broker: Broker) -> None:
    """Two topics with a record; mallory has rights for one of them, and passwords."""
    with RawClient(HOST, broker.port) as client:
        for name in (SHARED, FOREIGN):
            make_topic(broker, name)
            data = [{"name": name, "partition_data": [{"index": 0, "records": batch(b"first")}]}]
            client.call(build(ApiKey.PRODUCE, acks=-1, timeout_ms=10_000, topic_data=data), 8)
        acl = {"resource_type": 2, "resource_name": SHARED, "resource_pattern_type": 3, "principal": f"User:{USER}"}
        creations = [{**acl, "host": "*", "operation": operation, "permission_type": 3} for operation in (3, 4)]
        client.call(build(ApiKey.CREATE_ACLS, creations=creations), 2)
        for number, mechanism in ((1, "SCRAM-SHA-256"), (2, "SCRAM-SHA-512")):
            salted = SCRAM_MECHANISMS[mechanism].salted_password(PASSWORD.encode(), b"salt", 4096)
            credential = {"name": USER, "mechanism": number, "iterations": 4096, "salt": b"salt"}
            upsertions = [{**credential, "salted_password": salted}]
            client.call(build(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, deletions=[], upsertions=upsertions), 0)


def logged_in(entrances: Entrances, listener: str, mechanism: str | None) -> RawClient | None:
    """A connection of mallory; None as long as the broker does not know the credential."""
    client = entrances.connection(listener)
    if mechanism is None:
        return client
    if mechanism == "OAUTHBEARER":
        now = int(time.time())
        claims = {"sub": USER, "iat": now, "exp": now + 300, "aud": AUDIENCE}
        token = signed(claims, rsa_key(), kid=KEY_ID)
        handshake(client, mechanism)
        answer = authenticate(client, ClientInitialResponse(token, "", {}).to_bytes())
    elif mechanism == "PLAIN":
        answer = log_in(client, mechanism, PlainSaslClient(USER, PASSWORD))
    else:
        answer = log_in(client, mechanism, ScramSaslClient(SCRAM_MECHANISMS[mechanism], USER, PASSWORD, "a-nonce"))
    if answer.error_code == ErrorCode.NONE:
        return client
    client.close()
    return None


@pytest.mark.parametrize(
    ("listener", "mechanism"),
    [("AUTH", "PLAIN"), *(("TLSAUTH", mechanism) for mechanism in SASL), ("CERT", None)],
)
def test_no_version_of_any_request_lets_a_client_be_a_replica(
    entrances: Entrances, listener: str, mechanism: str | None
) -> None:
    before = entrances.state()
    client = eventually(lambda: logged_in(entrances, listener, mechanism))
    assert client is not None
    seen: set[tuple[int, int]] = set()
    with client:
        for request, version, expected in forged_requests(entrances.topics, random.Random(7)):
            answer = client.call(request, version)
            assert errors_in(answer) - {ErrorCode.NONE} == expected, (request, version, answer)
            seen.add((request.API_KEY, version))
    assert {version for api, version in seen if api == ApiKey.FETCH} == set(range(18))
    assert entrances.state() == before
