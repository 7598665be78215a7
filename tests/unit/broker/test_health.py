"""The health check prints one line that says what is wrong."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from odradek.broker import health
from odradek.broker.cli import main


@pytest.mark.parametrize(
    "failure", [ConnectionRefusedError("refused"), TimeoutError("timed out"), ValueError("garbage")]
)
def test_unhealthy_broker_is_status_one_and_one_line(
    failure: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def check(host: str, port: int, context: object) -> None:
        raise failure

    monkeypatch.setattr(health, "check", check)
    assert main(["health", "127.0.0.1:9092"]) == 1
    assert capsys.readouterr().err == f"odradek: no healthy broker at 127.0.0.1:9092: {failure}\n"


def test_healthy_broker_is_status_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    monkeypatch.setattr(health, "check", lambda host, port, context: asked.append((host, port)))
    assert main(["health", "[::1]:9092"]) == 0
    assert asked == [("::1", 9092)]


def test_address_without_a_port_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "somewhere"]) == 1
    assert capsys.readouterr().err.startswith("odradek: no healthy broker at somewhere: ")


def test_a_broker_with_tls(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    contexts: list[object] = []
    monkeypatch.setattr(health, "check", lambda host, port, context: contexts.append(context))
    properties = tmp_path / "client.properties"
    properties.write_text("security.protocol=SSL\n")
    assert main(["health", "localhost:9093", "--command-config", str(properties)]) == 0
    assert isinstance(contexts[0], ssl.SSLContext)
    properties.write_text("security.protocol=SSL\nssl.truststore.location=/no/such\n")
    assert main(["health", "localhost:9093", "--command-config", str(properties)]) == 1
    assert "Failed to load SSL keystore /no/such of type JKS" in capsys.readouterr().err
