"""What Apache Kafka answers about delegation tokens to an authenticated client with no, some and all rights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from odradek.controller.model.acls import WILDCARD, AclOperation, ResourceType
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Struct
from tests.conformance.conftest import golden_file, records
from tests.support.broker import Broker
from tests.support.processes.ports import free_port
from tests.support.tokens import create_token, expire_token, plain_client, settings_with_tokens
from tests.support.transcripts.rights import EVERYTHING, Right, cluster
from tests.support.transcripts.secured import ACL_AUTHORIZER, SecuredTranscript
from tests.support.transcripts.transcript import Plain
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

pytestmark = pytest.mark.oracle

Op = AclOperation
BOB = "User:bob"
RANDOM = ("token_id", "hmac")
TIMES = (
    *("issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms"),
    *("issue_timestamp", "expiry_timestamp", "max_timestamp"),
)


class SaslBroker(NamedTuple):
    process: Broker
    sasl_port: int


class TokenTranscript(SecuredTranscript):
    """The client is alice."""

    client_principal, client_host = "User:alice", WILDCARD
    sasl_port = 0

    def connect(self, client_id: str = "raw") -> RawClient:
        return plain_client(self.sasl_port, "alice")

    @property
    def client(self) -> RawClient:
        if self._client is None:
            self._client = self.connect()
        return self._client

    def plain(self, message: Struct, version: int) -> dict[str, Plain]:
        result = super().plain(message, version)
        hidden = {name: f"<{name}>" for name in RANDOM if result.get(name)}
        hidden |= {name: "<time>" for name in TIMES if name in result and result[name] != -1}
        return result | hidden


@pytest.fixture(scope="module")
def sasl_broker(make_broker: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslBroker]:
    """Who does not authenticate is a super user."""
    port, sasl_port = free_port(), free_port()
    settings = settings_with_tokens(port, sasl_port) | {
        "authorizer.class.name": ACL_AUTHORIZER,
        "super.users": "User:ANONYMOUS",
    }
    process = make_broker(tmp_path_factory.mktemp("rights-of-tokens"), settings)
    process.port = port
    process.start()
    yield SaslBroker(process, sasl_port)
    log = process.log_text()
    process.stop()
    assert process.target == "apache" or "Traceback" not in log, log


@pytest.fixture
def tokens(
    sasl_broker: SaslBroker, unique: Callable[[str], str], request: pytest.FixtureRequest, target: str
) -> Iterator[TokenTranscript]:
    record = records(request, target)
    written = TokenTranscript(sasl_broker.process, unique, golden_file(request, "authorization"))
    written.sasl_port = sasl_broker.sasl_port
    yield written
    written.finish(record=record)


def owner(name: str) -> dict[str, str]:
    return {"principal_type": "User", "principal_name": name}


def changes(t: TokenTranscript, label: str, whose: str, hmac: bytes) -> None:
    """Renews and ends a token in each version; a period of an hour leaves it there."""
    for version in range(3):
        renewing = build(ApiKey.RENEW_DELEGATION_TOKEN, hmac=hmac, renew_period_ms=3_600_000)
        t.call(f"renew that of {whose} v{version}: {label}", renewing, version)
        expiring = build(ApiKey.EXPIRE_DELEGATION_TOKEN, hmac=hmac, expiry_time_period_ms=3_600_000)
        t.call(f"expire that of {whose} v{version}: {label}", expiring, version)


def test_rights_of_tokens(tokens: TokenTranscript) -> None:
    t = tokens
    with plain_client(t.sasl_port, "bob") as bob, plain_client(t.sasl_port, "carol") as carol:
        of_bob = create_token(bob)
        of_carol = create_token(carol, renewers=[owner("alice")])
        t.hide(of_bob.token_id, "token of bob")

        def ask(label: str) -> None:
            for version in range(4):
                created = t.call(
                    f"create v{version}: {label}", build(ApiKey.CREATE_DELEGATION_TOKEN, max_lifetime_ms=-1), version
                )
                for whose, owners in (
                    ("all", None),
                    ("bob", [owner("bob")]),
                    ("alice", [owner("alice")]),
                    ("none", []),
                ):
                    described = build(ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=owners)
                    t.call(f"describe {whose} v{version}: {label}", described, version)
                expire_token(t.client, created.hmac)  # type: ignore[union-attr]
            fields = {"owner_principal_type": "User", "owner_principal_name": "bob", "max_lifetime_ms": -1}
            for_bob: Any = t.call(f"create for bob: {label}", build(ApiKey.CREATE_DELEGATION_TOKEN, **fields), 3)
            if for_bob.token_id:
                t.hide(for_bob.token_id, "token for bob")
            t.call(f"describe what there is then: {label}", build(ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=None), 3)
            expire_token(bob, for_bob.hmac)
            changes(t, label, "bob", of_bob.hmac)
            changes(t, label, "carol", of_carol.hmac)
            changes(t, label, "nobody", b"no such token")

        t.with_rights(
            {
                "nothing": (),
                "describe the token": [Right(Op.DESCRIBE, ResourceType.DELEGATION_TOKEN, of_bob.token_id)],
                "describe tokens of bob": [Right(Op.DESCRIBE_TOKENS, ResourceType.USER, BOB)],
                "create tokens of bob": [Right(Op.CREATE_TOKENS, ResourceType.USER, BOB)],
                "describe the cluster": [cluster(Op.DESCRIBE), cluster(Op.ALTER)],
                "everything": [*EVERYTHING, Right(Op.ALL, ResourceType.USER, WILDCARD)],
            },
            ask,
        )
