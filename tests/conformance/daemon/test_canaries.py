"""No secret leaves a broker: not in its logs, answers, metrics and errors, nor, in plain text, in its files."""

from __future__ import annotations

import socket
import ssl
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.conformance.daemon.canaries import (
    AUTH_BYTES,
    DYNAMIC,
    KEY_PASSWORD,
    REFUSED,
    SASL_LISTENER,
    STATIC,
    UNKNOWN,
    WRONG_LOGINS,
    all_secrets,
    canary,
    forms,
    forms_of,
    objects,
    refused_starts,
    requests,
    tls_listener,
)
from tests.support.certificates import Authority
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.processes.process import ProcessError
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.raw_topics import make_topic
from tests.support.wire.requests import batch, build

BROKER, BROKER_LOGGER = 4, 8
LONG_BYTES = 200_000
"""Of a record that a worker compresses."""
IN_THE_FILES = {canary("unknown-config")}
"""Secrets that the metadata holds as they are, as in Apache Kafka."""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a broker with secrets of all kinds gives out, by where."""
    directory = tmp_path_factory.mktemp("canaries")
    found: dict[str, bytes] = {}
    served = Authority().issue("broker")
    lines_of_the_key = served.key_pem(KEY_PASSWORD).splitlines()[1:-1]
    for log_format in ("text", "json"):
        port, plain_port, sasl_port, tls_port = free_port(), free_port(), free_port(), free_port()
        listeners = {"PLAINTEXT": plain_port, "SASL_PLAINTEXT": sasl_port, "SSL": tls_port}
        settings = {
            **STATIC,
            **SASL_LISTENER,
            **tls_listener(served),
            "odradek.metrics.listener": f"127.0.0.1:{port}",
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items()),
        }
        in_environment = settings.pop("password.encoder.secret")
        broker = OdradekBroker(directory / "broker", {"listeners": settings["listeners"]}, plain_port)
        broker.prefix = ("env", f"KAFKA_PASSWORD_ENCODER_SECRET={in_environment}")
        broker.options = (properties(directory, settings), "--log-level", "TRACE", "--log-format", log_format)
        broker.start()
        try:
            answers = ask_all(broker)
            hmac = log_in(broker.host, sasl_port)
            shake_hands(broker.host, tls_port)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as metrics:
                found["metrics"] = metrics.read()
            found["processes"] = processes(broker)
            broker.stop()
            found[f"{log_format} log"] = broker.log_text().encode()
        finally:
            broker.close()
        found["answers"] = answers.encode()
        places = {place for place, text in found.items() if any(form in text for form in (hmac, *forms_of(hmac)))}
        assert not places, "the HMAC of a token"
        places = {place for place, text in found.items() for line in lines_of_the_key if line.encode() in text}
        assert not places, "a served key"
    found["files"] = b"".join(
        path.read_bytes() for path in (directory / "broker" / "logs").rglob("*") if path.is_file()
    )
    found["refused starts"] = b"".join(
        refused_start(directory / f"refused-{number}", settings) for number, settings in enumerate(refused_starts())
    )
    return found


def properties(directory: Path, settings: dict[str, str]) -> str:
    """The path of a file with these settings."""
    path = directory / "server.properties"
    escaped = {name: text.replace("\\", "\\\\").replace("\n", "\\n") for name, text in settings.items()}
    path.write_text("".join(f"{name}={text}\n" for name, text in escaped.items()))
    return str(path)


def processes(broker: OdradekBroker) -> bytes:
    """The command lines of a broker and of a worker that it starts, and the environment of the worker, which is not
    the one that an operator has made.
    """
    make_topic(broker, "compressed", {"compression.type": "gzip"})
    data = [{"name": "compressed", "partition_data": [{"index": 0, "records": batch(bytes(LONG_BYTES))}]}]
    with RawClient(broker.host, broker.port) as client:
        produced: Any = client.call(build(ApiKey.PRODUCE, acks=1, timeout_ms=10_000, topic_data=data), 8)
        assert produced.responses[0].partition_responses[0].error_code == 0
    workers = psutil.Process(broker.pid).children()
    assert workers
    files = [Path(f"/proc/{process.pid}/{name}") for process in workers for name in ("cmdline", "environ")]
    return b"\n".join(path.read_bytes() for path in (Path(f"/proc/{broker.pid}/cmdline"), *files))


def shake_hands(host: str, port: int) -> None:
    """The listener with TLS works: its key was opened."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((host, port), 10) as plain, context.wrap_socket(plain) as connection:
        assert connection.getpeercert(True)


def log_in(host: str, port: int) -> bytes:
    """Log in with right and wrong passwords. Returns the HMAC of a new token."""
    for mechanism, data in (*WRONG_LOGINS, ("PLAIN", AUTH_BYTES)):
        with RawClient(host, port) as client:
            assert client.call(build(ApiKey.SASL_HANDSHAKE, mechanism=mechanism), 1).error_code == 0  # type: ignore[attr-defined]
            answer: Any = client.call(build(ApiKey.SASL_AUTHENTICATE, auth_bytes=data), 2)
            if data is not AUTH_BYTES:
                assert mechanism != "PLAIN" or answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
                continue
            assert answer.error_code == 0, answer
            token: Any = client.call(build(ApiKey.CREATE_DELEGATION_TOKEN, renewers=[], max_lifetime_ms=60_000), 2)
            assert token.error_code == 0, token
    return bytes(token.hmac)


def ask_all(broker: OdradekBroker) -> str:
    """The answers to all requests, with the request log at its lowest level."""
    answers = []
    with RawClient(broker.host, broker.port) as client:
        loggers = [{"name": name, "config_operation": 0, "value": "TRACE"} for name in ("kafka.request.logger", "ROOT")]
        for logger in loggers:
            resource = {"resource_type": BROKER_LOGGER, "resource_name": "0", "configs": [logger]}
            client.call(build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[resource]), 1)
    for request, version in requests():
        with RawClient(broker.host, broker.port) as client:
            answers.append(repr(client.call(request, version)))
    resource = {"resource_type": BROKER, "resource_name": "0", "configuration_keys": None}
    described = build(ApiKey.DESCRIBE_CONFIGS, resources=[resource], include_synonyms=True, include_documentation=True)
    with RawClient(broker.host, broker.port) as client:
        answers.append(
            eventually(
                lambda: repr(client.call(described, 4)), accept=lambda text: all(name in text for name in UNKNOWN)
            )
        )
        answers.append(repr(client.call(build(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, users=None), 0)))
        answers.append(repr(client.call(build(ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=None), 2)))
    return "\n".join(answers)


def refused_start(directory: Path, settings: dict[str, str]) -> bytes:
    broker = OdradekBroker(directory, settings)
    with pytest.raises(ProcessError):
        broker.start()
    return broker.log_text().encode()


def test_the_secrets_were_there(outputs: dict[str, bytes]) -> None:
    """Else nothing is shown by their absence."""
    answers = outputs["answers"].decode()
    for name in (*STATIC, *DYNAMIC, *UNKNOWN):
        assert name in answers, name
    assert all(name in answers for name in REFUSED), "the refusals name the keys"
    for place in ("text log", "json log"):
        assert b"AlterUserScramCredentials" in outputs[place] or b"ALTER_USER_SCRAM_CREDENTIALS" in outputs[place]
    assert canary("unknown-config").encode() in outputs["files"]
    assert b"odradek.storage.disk.worker" in outputs["processes"]
    assert outputs["refused starts"].count(b"odradek: ") == len([*refused_starts()])


@pytest.mark.parametrize("secret", all_secrets())
def test_no_secret_is_given_out(outputs: dict[str, bytes], secret: str) -> None:
    places = {place for place, text in outputs.items() if any(form in text for form in forms(secret))}
    assert places <= ({"files"} if secret in IN_THE_FILES else set())


def test_reprs_have_no_secrets() -> None:
    secret = canary("object")
    for held in objects(secret):
        assert secret not in repr(held), type(held)
