from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.data.client.properties import CODECS, Properties, gather
from odradek.protocol.records.compression import CompressionType


def test_pairs_come_before_the_file_and_librdkafkas_names_are_known(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("acks=1\nlinger.ms=7\nkey.serializer=org.example.S\n")
    assert gather(str(file), ["request.required.acks=all", "compression.codec = zstd"]) == {
        "acks": "all",
        "linger.ms": "7",
        "compression.type": "zstd",
    }


def test_a_pair_needs_a_name() -> None:
    with pytest.raises(CommandFailed, match="Invalid property: =1"):
        gather(None, ["=1"])


def test_values() -> None:
    found = Properties({"a": "5", "b": "TRUE", "c": "Zstd", "acks": "all", "compression.zstd.level": "9"})
    assert (found.number("a", 1), found.number("x", 1)) == (5, 1)
    assert (found.boolean("b", False), found.boolean("x", True)) == (True, True)
    assert (found.text("a", ""), found.text("x", "d")) == ("5", "d")
    assert (found.acks(1), Properties({}).acks(1)) == (-1, 1)
    assert found.compression("zstd") == (CompressionType.ZSTD, 9)
    assert found.compression("none") == (CompressionType.NONE, None)


@pytest.mark.parametrize("text", ["x", "-1", "2147483648"])
def test_numbers_that_are_none(text: str) -> None:
    with pytest.raises(CommandFailed, match=f"Invalid value {text} for configuration n"):
        Properties({"n": text}).number("n", 0)


def test_a_number_of_64_bits() -> None:
    assert Properties({"max.block.ms": "9223372036854775807"}).number("max.block.ms", 0) == 2**63 - 1
    with pytest.raises(CommandFailed, match=r"configuration max\.block\.ms: Not a number of type LONG"):
        Properties({"max.block.ms": "9223372036854775808"}).number("max.block.ms", 0)


def test_choices() -> None:
    with pytest.raises(CommandFailed, match="Invalid value 2 for configuration acks: String must be one of"):
        Properties({"acks": "2"}).acks(1)
    with pytest.raises(CommandFailed, match="String must be one of: a, b"):
        Properties({"c": "x"}).choice("c", "a", ("a", "b"))
    with pytest.raises(CommandFailed, match="Expected value to be either true or false"):
        Properties({"b": "yes"}).boolean("b", True)


@pytest.mark.parametrize(
    ("codec", "lowest", "highest"), [("gzip", -1, 9), ("gzip", 1, 9), ("lz4", 1, 17), ("zstd", -131072, 22)]
)
def test_levels_are_bounded(codec: str, lowest: int, highest: int) -> None:
    for level in (lowest, highest):
        found = Properties({"compression.type": codec, f"compression.{codec}.level": str(level)})
        assert found.compression("none") == (CODECS[codec], level)
    for level in (0 if codec == "gzip" else lowest - 1, highest + 1):
        found = Properties({"compression.type": codec, f"compression.{codec}.level": str(level)})
        with pytest.raises(CommandFailed, match=f"Invalid value {level} for configuration compression.{codec}.level"):
            found.compression("none")
