"""The daemon with links to other brokers that can be cut: `-m tests.conformance.cluster.faults.cut_links serve ...`.

A cut concerns requests of a broker to another one: the request does not arrive, or the answer does not come back, and
the sender waits until its time-out. The file named by ODRADEK_CUT_LINKS says which ports cannot be reached (`requests`)
and which send no answers (`answers`).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.odradek_process import OdradekBroker

if TYPE_CHECKING:
    from odradek.broker.inter_broker.ports import BrokerLink, MakeLink
    from odradek.controller.model.broker_info import EndPoint

VARIABLE = "ODRADEK_CUT_LINKS"
POLL_INTERVAL_S = 0.05


class CuttableBroker(OdradekBroker):
    """A broker whose links are cut from outside."""

    module = "tests.conformance.cluster.faults.cut_links"
    python_path = (REPOSITORY / "src", REPOSITORY)

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None, port: int = 0) -> None:
        super().__init__(directory, settings, port)
        self._cuts = directory / "cut-links.json"
        self.prefix = ("env", f"{VARIABLE}={self._cuts}")
        self.cut()

    def cut(self, *, requests: Collection[int] = (), answers: Collection[int] = ()) -> None:
        """Cut the links to the brokers on these ports, and heal all others."""
        written = self._cuts.with_suffix(".new")
        written.write_text(json.dumps({"requests": [*requests], "answers": [*answers]}))
        written.replace(self._cuts)


class CuttableLink:
    """Implements `links.BrokerLink` around another one."""

    def __init__(self, link: BrokerLink, port: int, cuts: Path) -> None:
        self._link = link
        self._port = port
        self._cuts = cuts
        self._turn = asyncio.Lock()
        self._is_closed = False

    async def exchange(self, request: Any, response_type: Any, *, version: int | None, timeout_ms: int) -> Any:
        async with self._turn:
            deadline = time.monotonic() + timeout_ms / 1000
            await self._pass("requests", deadline)
            remaining_ms = max(1, int((deadline - time.monotonic()) * 1000))
            answer = await self._link.exchange(request, response_type, version=version, timeout_ms=remaining_ms)
            await self._pass("answers", deadline)
            return answer

    def close(self) -> None:
        self._is_closed = True
        self._link.close()

    async def _pass(self, direction: str, deadline: float) -> None:
        while self._port in json.loads(self._cuts.read_text())[direction]:
            if self._is_closed:
                raise ConnectionAbortedError("the link was closed")
            if time.monotonic() > deadline:
                raise TimeoutError("the link is cut")
            await asyncio.sleep(POLL_INTERVAL_S)


def install(cuts: Path) -> None:
    """Let every broker of this process make its links through the cuts."""
    from odradek.broker import server

    make_links = server.SocketLinks

    def cuttable(*arguments: Any) -> MakeLink:
        make_link = make_links(*arguments)

        def make(end_point: EndPoint, /, *, client_id: str) -> BrokerLink:
            return CuttableLink(make_link(end_point, client_id=client_id), end_point.port, cuts)

        return make

    server.SocketLinks = cuttable  # type: ignore[misc,assignment]


if __name__ == "__main__":
    install(Path(os.environ[VARIABLE]))
    from odradek.broker.cli import main

    sys.exit(main())
