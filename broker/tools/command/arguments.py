"""Options that all commands have: the servers, the client's configuration, the form of the output."""

from __future__ import annotations

import argparse

from odradek.broker.tools.command.client_config import DEFAULT_BOOTSTRAP
from odradek.broker.tools.command.help_format import HelpFormat


def command_parser(name: str, description: str, *, examples: str = "") -> argparse.ArgumentParser:
    """The parser of `odradek NAME`, without options. `examples` is printed at the end of the help, as it is."""
    return argparse.ArgumentParser(
        prog=f"odradek {name}",
        description=description,
        epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=HelpFormat,
    )


def add_client_options(parser: argparse.ArgumentParser) -> None:
    """The options of a command that talks to brokers; `admin_client.run` reads them."""
    group = parser.add_argument_group("the cluster")
    group.add_argument(
        "--bootstrap-server", metavar="HOST:PORT,...", help=f"brokers to ask first; default {DEFAULT_BOOTSTRAP}"
    )
    group.add_argument("--command-config", metavar="FILE", help="a properties file for the client, as in Apache Kafka")
    add_output_options(parser)


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """The options that choose the form of the output; `Output.of` reads them."""
    form = parser.add_argument_group("output").add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument(
        "--table", action="store_true", help="print tables also when the output is not a terminal, else plain lines"
    )


def add_subcommand(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    """A subcommand that takes the options of `add_client_options` too, before or after its name."""
    # Without a default here, an option before the name is not reset by the options after it.
    parser = commands.add_parser(
        name, help=text, description=text, argument_default=argparse.SUPPRESS, formatter_class=HelpFormat
    )
    add_client_options(parser)
    return parser


def add_actions(parser: argparse.ArgumentParser, actions: dict[str, str]) -> None:
    """Options `--NAME` of which a command takes one, as `options.action`. `actions`: name -> help."""
    group = parser.add_argument_group("actions").add_mutually_exclusive_group(required=True)
    for name, text in actions.items():
        group.add_argument(f"--{name}", dest="action", action="store_const", const=name, help=text)


def file_text(path: str) -> str:
    """The text of a file on the command line. Raises: argparse.ArgumentTypeError."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error
