"""Which node a facade starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.testing.node.ports import Node


def make_node(settings: Mapping[str, str], *, own_process: bool) -> Node:
    """A broker in a thread of this process, or in a process of its own."""
    if own_process:
        from odradek.testing.node.fork_server import FORK_SERVERS

        FORK_SERVERS.start()  # first: it imports the broker while this process imports the rest
        from odradek.testing.node.process_node import ProcessNode

        return ProcessNode(settings)
    from odradek.testing.node.thread_node import ThreadNode

    return ThreadNode(settings)
