from __future__ import annotations

from odradek.testing.node.making import make_node
from odradek.testing.node.process_node import ProcessNode
from odradek.testing.node.thread_node import ThreadNode


def test_a_broker_runs_in_a_thread_or_in_a_process() -> None:
    thread = make_node({}, own_process=False)
    assert isinstance(thread, ThreadNode)
    thread._loop.close()
    assert isinstance(make_node({}, own_process=True), ProcessNode)
