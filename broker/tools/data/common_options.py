"""Options that `produce`, `consume` and `top` share."""

from __future__ import annotations

import argparse

from odradek.broker.tools.command.client_config import DEFAULT_BOOTSTRAP
from odradek.broker.tools.data.records.escapes import unescape


def add_cluster_options(parser: argparse.ArgumentParser, kind: str) -> None:
    """Options for the cluster and the client; `kind` is producer, consumer or client."""
    group = parser.add_argument_group("the cluster")
    group.add_argument(
        "-b",
        "--bootstrap-server",
        "--broker-list",
        metavar="HOST:PORT,...",
        help=f"brokers to ask first; default {DEFAULT_BOOTSTRAP}",
    )
    group.add_argument(
        "--command-config", f"--{kind}.config", "-F", metavar="FILE", help="a properties file for the client"
    )
    group.add_argument(
        "-X",
        f"--{kind}-property",
        dest="properties",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"a property of the {kind}; it comes before the file. Names of Apache Kafka, or of librdkafka",
    )


def delimiter(text: str) -> bytes:
    """The bytes of a delimiter, with escapes. Raises: argparse.ArgumentTypeError."""
    try:
        found = unescape(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not found:
        raise argparse.ArgumentTypeError("the delimiter is empty")
    return found
