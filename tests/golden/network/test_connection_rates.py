"""Replays connection_rates.txt, written by CaptureConnectionRates.java: the delays of Kafka's ConnectionQuotas.

`at MS LISTENER IP DELAY DELAY_OF_IP` is a connection, MS after the one before; other lines change a limit, and
`new WINDOWS SECONDS` begins a scenario.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.network.listeners.connection_rates import UNLIMITED, ConnectionRates
from odradek.timer.clock import ManualClock

CAPTURED = Path(__file__).with_name("connection_rates.txt")


def scenarios() -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    for line in CAPTURED.read_text().splitlines():
        if line.startswith("new "):
            found.append((line, []))
        else:
            found[-1][1].append(line)
    return found


class Replay:
    """Our rates of a broker whose clients do what the lines say."""

    def __init__(self, window_count: str, window_seconds: str) -> None:
        self.clock = ManualClock()
        self.config = BrokerConfig(
            {
                "listeners": "CLIENTS://:9092,BROKERS://:9093",
                "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
                "inter.broker.listener.name": "BROKERS",
                "quota.window.num": window_count,
                "quota.window.size.seconds": window_seconds,
            }
        )
        limit = "max.connection.creation.rate"
        self.limits = {f"listener.name.{name}.{limit}": str(UNLIMITED) for name in ("clients", "brokers")}
        """Of each listener, so that a line of the broker changes the limit of the broker only."""
        self.config.apply_dynamic(broker=self.limits, default={})
        self.rates = ConnectionRates(self.config, self.clock)

    def step(self, kind: str, *words: str) -> tuple[int, int] | None:
        """The delays of a connection; None for a limit that changes."""
        match kind:
            case "broker" | "listener":
                prefix = f"listener.name.{words[0].lower()}." if kind == "listener" else ""
                self.limits[f"{prefix}max.connection.creation.rate"] = words[-1]
                self.config.apply_dynamic(broker=self.limits, default={})
            case "ip":
                self.rates.update_quota(words[0], None if words[1] == "none" else int(words[1]))
            case "ips":
                self.rates.update_quota(None, int(words[0]))
            case _:
                self.clock.advance(int(words[0]))
                _, listener, address, *_ = words
                is_protected = listener == "BROKERS"
                delay_ms = self.rates.record_connection(listener, is_protected=is_protected)
                return delay_ms, self.rates.record_address(address, listener, is_protected=is_protected)
        return None


@pytest.mark.parametrize(("start", "lines"), scenarios())
def test_kafka_delays_as_long(start: str, lines: list[str]) -> None:
    _, window_count, window_seconds = start.split()
    replay = Replay(window_count, window_seconds)
    for number, line in enumerate(lines):
        words = line.split()
        delays = replay.step(*words)
        if delays is not None:
            assert delays == (int(words[4]), int(words[5])), f"{start}, line {number}: {line}"


def test_the_scenarios_have_all_that_can_happen() -> None:
    lines = [line.split() for _, lines in scenarios() for line in lines]
    assert {words[0] for words in lines} == {"at", "broker", "listener", "ip", "ips"}
    connections = [words for words in lines if words[0] == "at"]
    assert sum(words[4] != "0" for words in connections) > 100
    assert sum(words[5] != "0" for words in connections) > 100
