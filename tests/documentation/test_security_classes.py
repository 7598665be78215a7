"""The classes of docs/security.md are modules that a broker loads, and they decide what the page says."""

from __future__ import annotations

import hashlib
import hmac
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.security.principal_builder import AuthenticationContext, build_principal
from odradek.broker.security.principal_builder import load_principal_builder as load_builder
from odradek.broker.security.sasl.mechanisms import SaslParts, enabled_mechanisms
from odradek.broker.security.sasl.ports import SaslAuthenticationError, SaslClient, SaslServer
from odradek.broker.security.sasl.scram import ScramSaslClient
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.controller.model.scram_mechanism import ScramMechanism
from odradek.storage.disk.ports import InlineIoPool
from odradek.timer.clock import ManualClock
from tests.documentation.pages import REPOSITORY
from tests.support.async_test import async_test
from tests.support.in_process.security.sasl_contexts import Credentials, slots

EXAMPLE = re.compile(r"`([\w.-]+)=(\w+:\w+)` with this file as `(\w+)\.py`:\n\n```python\n(.*?)```", re.DOTALL)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The keys of the page, with files and JAAS entries that fit."""
    found = EXAMPLE.findall((REPOSITORY / "docs" / "security.md").read_text("utf-8"))
    for _, _, module, code in found:
        (tmp_path / f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    salt = "0a0b"
    hashed = hashlib.scrypt(b"secret", salt=bytes.fromhex(salt), n=2**14, r=8, p=1).hex()
    (tmp_path / "users").write_text(f"alice:{salt}:{hashed}\n")
    plain, scram = (f"org.apache.kafka.common.security.{name}" for name in ("plain.Plain", "scram.Scram"))
    yield {
        **{key: path for key, path, _, _ in found},
        "listeners": "PLAIN://:1,SCRAM://:2,SSL://:3",
        "listener.security.protocol.map": "PLAIN:SASL_PLAINTEXT,SCRAM:SASL_PLAINTEXT,SSL:SSL",
        "inter.broker.listener.name": "SSL",
        "listener.name.plain.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.plain.plain.sasl.jaas.config": f'{plain}LoginModule required file="{tmp_path / "users"}";',
        "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.scram.scram-sha-256.sasl.jaas.config": f'{scram}LoginModule required key="k";',
    }
    for _, _, module, _ in found:
        sys.modules.pop(module, None)


def server(settings: dict[str, str], listener: str, mechanism: str) -> SaslServer:
    parts = SaslParts(ManualClock(), InlineIoPool(), bytes, Credentials(), None, slots())
    return enabled_mechanisms(BrokerConfig(settings), listener, parts)[mechanism].make_server()


async def exchange(server: SaslServer, client: SaslClient) -> None:
    challenge = b""
    while (token := client.evaluate_challenge(challenge)) is not None:
        answer = server.evaluate_response(token)
        challenge = answer if isinstance(answer, bytes) else await answer


@async_test
async def test_the_password_file(settings: dict[str, str]) -> None:
    one = server(settings, "PLAIN", "PLAIN")
    answer = one.evaluate_response(b"\0alice\0secret")
    assert not isinstance(answer, bytes)
    assert await answer == b""
    assert (one.is_complete, one.authorization_id) == (True, "alice")
    for token in (b"\0alice\0wrong", b"\0nobody\0secret"):
        answer = one.evaluate_response(token)
        assert not isinstance(answer, bytes)
        with pytest.raises(SaslAuthenticationError, match="Invalid username or password"):
            await answer


@async_test
async def test_the_derived_secrets(settings: dict[str, str]) -> None:
    one = server(settings, "SCRAM", "SCRAM-SHA-256")
    password = hmac.digest(b"k", b"service-a", "sha256").hex()
    await exchange(one, ScramSaslClient(ScramMechanism.SCRAM_SHA_256, "service-a", password, "nonce"))
    assert (one.is_complete, one.authorization_id) == (True, "service-a")


@pytest.mark.parametrize(
    ("user", "name", "principal"),
    [
        ("alice", "CN=billing,OU=services,O=example", "User:alice"),
        (None, "CN=billing,OU=services,O=example", "Service:billing"),
        (None, "CN=billing,O=example", "User:CN=billing,O=example"),
        (None, None, "User:ANONYMOUS"),
    ],
)
def test_the_names_of_services(settings: dict[str, str], user: str | None, name: str | None, principal: str) -> None:
    builder = load_builder(BrokerConfig(settings), "SSL")
    assert builder is not None
    context = AuthenticationContext("SSL", SecurityProtocol.SSL, "10.0.0.1", b"", name, user and "PLAIN", user)
    assert build_principal(builder, context) == principal
