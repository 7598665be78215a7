"""The commands over TLS, with a client certificate."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.security.conftest import Certificates
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port


@pytest.fixture(scope="module")
def broker(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekBroker]:
    port = free_port()
    settings = certificates.broker_settings(
        **{"listeners": f"SSL://127.0.0.1:{port}", "security.inter.broker.protocol": "SSL"}
    )
    broker = OdradekBroker(tmp_path_factory.mktemp("commands"), settings, port)
    broker.start()
    yield broker
    broker.stop_cleanly()


def odradek(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "odradek", *arguments], input=stdin, capture_output=True, timeout=60, check=False
    )


def test_commands(broker: OdradekBroker, certificates: Certificates) -> None:
    properties = str(certificates.java_properties())
    admin = ("--bootstrap-server", broker.bootstrap, "--command-config", properties)
    created = odradek("topics", *admin, "--create", "--topic", "t")
    assert created.returncode == 0, created.stderr
    client = ("-b", broker.bootstrap, "-F", properties, "-t", "t")
    lines = [b"one", b"x" * 200_000, b"three"]
    produced = odradek("produce", *client, stdin=b"\n".join(lines))
    assert produced.returncode == 0, produced.stderr
    consumed = odradek("consume", *client, "-o", "beginning", "-e")
    assert consumed.stdout.splitlines() == lines, consumed.stderr
    assert odradek("health", broker.bootstrap, "--command-config", properties).returncode == 0


def test_a_client_that_does_not_trust_the_broker(
    broker: OdradekBroker, certificates: Certificates, tmp_path: Path
) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text("security.protocol=SSL\n")
    refused = odradek("topics", "--bootstrap-server", broker.bootstrap, "--command-config", str(properties), "--list")
    assert refused.returncode == 1
    assert b"certificate verify failed" in refused.stderr
    assert odradek("health", broker.bootstrap).returncode == 1
