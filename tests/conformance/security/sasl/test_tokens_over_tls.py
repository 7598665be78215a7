"""Java's clients and tools, and Odradek's commands, with delegation tokens over TLS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conformance.security.conftest import Certificates
from tests.support.broker import Broker
from tests.support.processes.apache import newer_client
from tests.support.processes.apache.tool_runs import run_in_one_jvm
from tests.support.processes.apache.tools import TOOL_CLASSES, Tools
from tests.support.processes.commands import run_command
from tests.support.processes.ports import free_port
from tests.support.tokens import HOST, PLAIN_MODULE, SCRAM_MODULE, settings_with_tokens

pytestmark = pytest.mark.oracle

REFUSED = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512"
COMMAND_VALUE, TOOL_VALUE = b"from a command", b"from a tool"


class Token(NamedTuple):
    token_id: str
    hmac: str
    """In base64: the password of the client."""


class TlsBroker(NamedTuple):
    """`address`: of the SASL_SSL listener."""

    process: Broker
    address: str
    ca: Path

    def properties(self, path: Path, mechanism: str, jaas: str) -> Path:
        """A file for clients and tools."""
        path.write_text(
            f"bootstrap.servers={self.address}\nsecurity.protocol=SASL_SSL\nsasl.mechanism={mechanism}\n"
            f"sasl.jaas.config={jaas}\nssl.truststore.type=PEM\nssl.truststore.location={self.ca}\n"
        )
        return path

    def with_password(self, directory: Path) -> Path:
        jaas = f'{PLAIN_MODULE} required username="carol" password="carol-secret";'
        return self.properties(directory / "carol.properties", "PLAIN", jaas)

    def with_token(self, directory: Path, token: Token, mechanism: str) -> Path:
        jaas = f'{SCRAM_MODULE} required username="{token.token_id}" password="{token.hmac}" tokenauth="true";'
        return self.properties(directory / f"{mechanism}.properties", mechanism, jaas)


@pytest.fixture(scope="module")
def broker(
    make_broker: Callable[..., Broker], certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TlsBroker]:
    """Carol may use topics; nobody else may do anything."""
    port, sasl_port = free_port(), free_port()
    settings = certificates.broker_settings(**settings_with_tokens(port, sasl_port)) | {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_SSL",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:ANONYMOUS;User:carol",
    }
    process = make_broker(tmp_path_factory.mktemp("tokens-over-tls"), settings)
    process.port = port  # type: ignore[misc]
    process.start()
    yield TlsBroker(process, f"{HOST}:{sasl_port}", certificates.ca)
    log = process.log_text()
    process.stop()
    assert process.target == "apache" or "Traceback" not in log, log


@pytest.fixture
def token(broker: TlsBroker, tools: Tools, tmp_path: Path) -> Token:
    """Made by Apache's tool over TLS."""
    at = ("--bootstrap-server", broker.address, "--command-config", str(broker.with_password(tmp_path)))
    created = tools.run("delegation-tokens", *at, "--create", "--max-life-time-period", "-1").lines[-1].split()
    assert created[2:4] == ["User:carol", "User:carol"]
    return Token(*created[:2])


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_clients_with_a_token(
    broker: TlsBroker, token: Token, mechanism: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    """Each writes a record, and reads those of all."""
    topic, config = unique("tokens"), str(broker.with_token(tmp_path, token, mechanism))
    run_command(broker.address, "topics", "--create", "--topic", topic, "--command-config", config)
    run_command(broker.address, "produce", "-t", topic, "-F", config, stdin=COMMAND_VALUE + b"\n")
    payload = tmp_path / "payload"
    payload.write_bytes(TOOL_VALUE)
    values = {COMMAND_VALUE, TOOL_VALUE, newer_client.VALUE}
    at = ("--bootstrap-server", broker.address, "--topic", topic)
    [written] = run_in_one_jvm(
        [
            (
                TOOL_CLASSES["producer-perf-test"],
                *("--topic", topic, "--num-records", "1", "--throughput", "-1", "--payload-file", str(payload)),
                *("--producer.config", config, "--producer-props", f"bootstrap.servers={broker.address}"),
            )
        ]
    )
    assert written.status == 0, written.stderr
    assert newer_client.write_and_read(Path(config), topic, 3) == values
    listed, read = run_in_one_jvm(
        [
            (TOOL_CLASSES["topics"], "--bootstrap-server", broker.address, "--command-config", config, "--list"),
            (
                TOOL_CLASSES["console-consumer"],
                *(*at, "--consumer.config", config, "--from-beginning", "--max-messages", "3"),
                *("--timeout-ms", "20000"),
            ),
        ]
    )
    assert topic in listed.stdout.split()
    assert set(read.stdout.encode().splitlines()) == values, read.stderr
    consumed = run_command(broker.address, "consume", "-t", topic, "-F", config, "-o", "beginning", "-e")
    assert set(consumed.stdout.splitlines()) == values


def test_a_token_that_has_ended_and_one_that_was_made_up(
    broker: TlsBroker, token: Token, tools: Tools, tmp_path: Path
) -> None:
    password = str(broker.with_password(tmp_path))
    at = ("--bootstrap-server", broker.address, "--command-config", password)
    tools.run("delegation-tokens", *at, "--expire", "--expiry-time-period", "-1", "--hmac", token.hmac)
    configs = []
    for number, refused in enumerate((token, Token("made-up", token.hmac))):
        (directory := tmp_path / str(number)).mkdir()
        configs.append(str(broker.with_token(directory, refused, "SCRAM-SHA-512")))
    tool = (TOOL_CLASSES["topics"], "--bootstrap-server", broker.address, "--list", "--command-config")
    for config, printed in zip(configs, run_in_one_jvm([(*tool, config) for config in configs]), strict=True):
        assert (printed.status, REFUSED in printed.stdout) == (1, True), printed
        told = run_command(broker.address, "topics", "--list", "--command-config", config, status=1)
        assert REFUSED in told.stderr
        assert token.hmac not in printed.stdout + printed.stderr + told.stderr
    assert token.hmac not in broker.process.log_text()
