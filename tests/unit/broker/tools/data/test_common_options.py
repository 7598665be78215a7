from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from odradek.broker.tools.data.common_options import add_cluster_options, delimiter


def test_names_of_both_tools() -> None:
    parser = argparse.ArgumentParser()
    add_cluster_options(parser, "consumer")
    for names in (("-b", "-F", "-X"), ("--bootstrap-server", "--consumer.config", "--consumer-property")):
        options = parser.parse_args([part for name in names for part in (name, "a=b")])
        assert (options.bootstrap_server, options.command_config, options.properties) == ("a=b", "a=b", ["a=b"])


def test_a_delimiter() -> None:
    assert delimiter(r"\t|") == b"\t|"
    with pytest.raises(argparse.ArgumentTypeError, match="the delimiter is empty"):
        delimiter("")


def test_consume_imports_neither_the_producer_nor_the_configuration_of_a_broker() -> None:
    code = "import sys, odradek.broker.tools.data.consume; print(*sys.modules, sep='\\n')"
    modules = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert "odradek.broker.tools.data.consumer.consumer" in modules
    assert not modules & {
        "odradek.broker.tools.data.producer.producer",
        "odradek.storage.config.config_def",
        "odradek.broker.network.sockets.listening_socket",
        "uuid",
    }
