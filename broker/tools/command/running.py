"""Runs the body of a command: errors become one line on stderr, and an exit status."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.command.client_config import ClientConfig, client_config, read_properties, resolved
from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.command.output import Output
from odradek.broker.tools.command.terminal_text import write

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Collection

EXIT_DONE: Final = 0
EXIT_FAILED: Final = 1
EXIT_INTERRUPTED: Final = 130
"""As a shell reports a process that SIGINT has ended."""


def run_command(options: argparse.Namespace, body: Callable[[Output], None]) -> int:
    """Run a command that has the options of `add_output_options`. Returns the exit status.

    Raises: BrokenPipeError when nobody reads the output.
    """
    out = Output.of(options)
    try:
        try:
            body(out)
        finally:
            out.close()
    except BrokenPipeError:
        raise
    except (CommandFailed, OSError) as error:
        write(sys.stderr, f"odradek: {error}\n")
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return EXIT_DONE


def config_of(options: argparse.Namespace, *, also: Collection[str] = ()) -> ClientConfig:
    """The client's configuration from the options of `add_client_options`; `also`: other keys that the command reads.

    Raises: CommandFailed.
    """
    settings = {} if options.command_config is None else resolved(read_properties(options.command_config))
    return client_config(options.bootstrap_server, settings, also=also)
