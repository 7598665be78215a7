"""One broker of a local cluster: a child process whose lines go to the log of the cluster, with the broker's id."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import Callable, Sequence
from typing import Final

LISTENING: Final = re.compile(r"listening on\s+\S+://(\S+)")
"""Of the banner, which a broker prints when it has started. The log may be without lines of that level."""
_CHUNK_BYTES: Final = 1 << 16
_LINE_BYTES_MAX: Final = 1 << 20
"""A longer line is cut: brokers limit their lines themselves."""


class BrokerProcess:
    """`started` ends when the broker serves, or with False if its process ends before."""

    def __init__(self, broker_id: int, command: Sequence[str], write_line: Callable[[str], None]) -> None:
        self.broker_id = broker_id
        self.address = ""
        self._command = list(command)
        self._write_line = write_line
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self.started: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        """The exit status; negative: the number of the signal that ended the process."""

    async def start(self) -> None:
        """Begin to start. A session of its own: Ctrl-C is for the supervisor, which stops the brokers in order.

        The broker stops when its standard input ends, so it does not outlive the supervisor.
        """
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        self._reading = asyncio.create_task(self._read(self._process))

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        rest = b""
        while chunk := await process.stdout.read(_CHUNK_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._line(line)
            rest = rest[:_LINE_BYTES_MAX]
        if rest:
            self._line(rest)
        status = await process.wait()
        if not self.started.done():
            self.started.set_result(False)
        self.ended.set_result(status)

    def _line(self, raw: bytes) -> None:
        line = raw.decode("utf-8", "replace").rstrip("\r")
        self._write_line(tagged(self.broker_id, line))
        if not self.started.done() and (found := LISTENING.search(line)):
            self.address = found[1].rstrip(",")
            self.started.set_result(True)


def tagged(broker_id: int, line: str) -> str:
    """A line with the id of its broker: as a field of a JSON object, else in front."""
    if line.startswith('{"'):
        return f'{{"broker": {json.dumps(broker_id)}, {line[1:]}'
    return f"[broker {broker_id}] {line}"
