"""The health check prints one line that says what is wrong."""

from __future__ import annotations

import pytest

from odradek.broker import health
from odradek.broker.cli import main


@pytest.mark.parametrize(
    "failure", [ConnectionRefusedError("refused"), TimeoutError("timed out"), ValueError("garbage")]
)
def test_unhealthy_broker_is_status_one_and_one_line(
    failure: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def check(host: str, port: int) -> None:
        raise failure

    monkeypatch.setattr(health, "check", check)
    assert main(["health", "127.0.0.1:9092"]) == 1
    assert capsys.readouterr().err == f"odradek: no healthy broker at 127.0.0.1:9092: {failure}\n"


def test_healthy_broker_is_status_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    monkeypatch.setattr(health, "check", lambda host, port: asked.append((host, port)))
    assert main(["health", "[::1]:9092"]) == 0
    assert asked == [("::1", 9092)]


def test_address_without_a_port_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "somewhere"]) == 1
    assert capsys.readouterr().err.startswith("odradek: no healthy broker at somewhere: ")
