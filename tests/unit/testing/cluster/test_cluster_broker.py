from __future__ import annotations

import asyncio
import signal

import pytest

from odradek.testing import AsyncBroker
from odradek.testing.cluster.cluster_broker import ClusterBroker
from odradek.testing.node.process_node import ProcessNode


def test_what_does_not_run_can_be_killed_and_not_paused() -> None:
    broker = ClusterBroker(7, {}, own_process=True)
    assert broker.state == "stopped"
    broker.kill()
    with pytest.raises(RuntimeError, match="broker 7 does not run"):
        broker.pause()


def test_a_paused_process_is_told_by_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(ProcessNode, "send_signal", lambda node, number: sent.append(number))
    broker = ClusterBroker(7, {}, own_process=True)
    broker._node = ProcessNode({})
    broker.pause()
    assert (broker.state, broker.is_running) == ("paused", False)
    broker.stop()
    assert broker.state == "stopped"
    assert sent == [signal.SIGSTOP, signal.SIGCONT]
    broker._node = ProcessNode({})
    broker.pause()
    asyncio.run(AsyncBroker.of(broker).stop())
    assert broker.state == "stopped"
    assert sent == [signal.SIGSTOP, signal.SIGCONT] * 2
