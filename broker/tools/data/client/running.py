"""Runs a command of records with a client: links, signals, errors, exit status."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Final

from odradek.broker.tools.command.client_config import ClientConfig, client_config
from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.command.running import EXIT_DONE, EXIT_FAILED
from odradek.broker.tools.command.socket_link import SocketLink
from odradek.broker.tools.command.socket_loop import run
from odradek.broker.tools.data.client.data_client import DataClient
from odradek.broker.tools.data.client.interrupts import Interrupted, Interrupts
from odradek.timer.clock import Clock, SystemClock

Work = Callable[[DataClient, Interrupts], Coroutine[object, None, None]]
STDIN: Final = 0
STDOUT: Final = 1


def run_with_client(
    make_work: Callable[[], tuple[Work, Mapping[str, str]]],
    bootstrap: str | None,
    *,
    client_id: str,
    also: Collection[str],
) -> int:
    """Run the work with a client that has these settings. `also`: the keys that the work reads itself.

    Returns the exit status. Raises: BrokenPipeError when nobody reads the output.
    """
    try:
        work, settings = make_work()
        config = client_config(bootstrap, settings, client_id=client_id, also=also)
        clock = SystemClock()
        run(_run(work, config, clock), clock)
    except BrokenPipeError:
        raise
    except Interrupted as interrupted:
        return interrupted.status
    except (CommandFailed, OSError) as error:
        sys.stderr.write(f"odradek: {error}\n")
        return EXIT_FAILED
    return EXIT_DONE


async def _run(work: Work, config: ClientConfig, clock: Clock) -> None:
    interrupts = Interrupts()
    with interrupts.installed():
        client = DataClient(config, SocketLink, clock)
        try:
            await work(client, interrupts)
        finally:
            client.close()
