"""Delegation tokens in a cluster of both kinds of brokers: each takes the tokens of the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from odradek.protocol.errors import ErrorCode
from tests.support.processes.apache.apache import ApacheBroker, ZooKeeper
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.tokens import (
    HOST,
    create_token,
    describe_tokens,
    expire_token,
    plain_client,
    renew_token,
    settings_with_tokens,
    token_log_in,
)
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient

pytestmark = pytest.mark.oracle

Ports = tuple[int, int]


@pytest.fixture(scope="module")
def ports(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ports]:
    """The SASL ports of an Apache Kafka broker and of an Odradek broker of one cluster."""
    directory = tmp_path_factory.mktemp("tokens")
    chroot = zookeeper.new_chroot()
    plaintext, sasl = (free_port(), free_port()), (free_port(), free_port())
    settings = [
        {**settings_with_tokens(*pair), "broker.id": str(n)} for n, pair in enumerate(zip(plaintext, sasl, strict=True))
    ]
    apache = ApacheBroker(directory / "apache", chroot, settings[0], port=plaintext[0])
    odradek = OdradekBroker(directory / "odradek", {**settings[1], "zookeeper.connect": chroot}, port=plaintext[1])
    try:
        apache.start()
        odradek.start()
        yield sasl
    finally:
        odradek.close()
        apache.close()


def knows(port: int, token_id: str, expiry_ms: int | None) -> bool:
    with plain_client(port, "alice") as client:
        found = {token.token_id: token.expiry_timestamp for token in describe_tokens(client).tokens}
    return found.get(token_id) == expiry_ms


@pytest.mark.parametrize("is_made_by_apache", [True, False], ids=["from-apache", "from-odradek"])
def test_a_token_of_one_broker_is_one_of_the_other(ports: Ports, is_made_by_apache: bool) -> None:
    maker, other = ports if is_made_by_apache else ports[::-1]
    renewer = {"principal_type": "User", "principal_name": "CN=bob, O=x *"}
    with plain_client(maker, "alice") as client:
        created = create_token(client, renewers=[renewer], owner_principal_type="User", owner_principal_name="bob")
    eventually(lambda: knows(other, created.token_id, created.expiry_timestamp_ms))
    with plain_client(other, "bob") as client:
        (described,) = describe_tokens(client, ["bob"]).tokens
        assert described.hmac == created.hmac
        assert (described.principal_name, described.token_requester_principal_name) == ("bob", "alice")
        assert [one.principal_name for one in described.renewers] == ["CN=bob, O=x *"]
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        with RawClient(HOST, other) as client:
            assert token_log_in(client, created.token_id, created.hmac, mechanism).error_code == ErrorCode.NONE
    with plain_client(other, "bob") as client:
        renewed = renew_token(client, created.hmac, 3_600_000)
    eventually(lambda: knows(maker, created.token_id, renewed.expiry_timestamp_ms))
    with plain_client(maker, "bob") as client:
        assert expire_token(client, created.hmac).error_code == ErrorCode.NONE
    eventually(lambda: knows(other, created.token_id, None))
    with RawClient(HOST, other) as client:
        refused = token_log_in(client, created.token_id, created.hmac)
        assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
