from __future__ import annotations

import pytest

from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.data.consume_options import (
    consumer_config,
    consumer_settings,
    parse_consume,
    record_format,
    subscription,
)
from odradek.broker.tools.data.consumer.consumer import ConsumerConfig
from odradek.broker.tools.data.consumer.offset_choice import BEGINNING, END, OffsetChoice, Origin
from odradek.broker.tools.data.records.record_format import ConsumedRecord
from odradek.protocol.records.record import Record

RECORD = ConsumedRecord("t", 0, Record(7, 5, None, b"v"), 0)


def config(*arguments: str) -> ConsumerConfig:
    options = parse_consume(["-t", "t", *arguments])
    return consumer_config(consumer_settings(options), options)


def printed(*arguments: str) -> bytes:
    return record_format(parse_consume(["-t", "t", *arguments]))(RECORD)


def test_where_it_begins() -> None:
    assert config().start == END
    assert config("--from-beginning").start == BEGINNING
    assert config("-o", "beginning").start == BEGINNING
    assert config("--offset", "17", "--partition", "0").start == OffsetChoice(Origin.OFFSET, 17)
    assert config("--follow").start == OffsetChoice(Origin.TAIL, 10)
    assert config("--follow", "-o", "-3").start == OffsetChoice(Origin.TAIL, 3)
    assert config("-G", "g", "-o", "stored").start == END
    assert config("-G", "g", "-X", "auto.offset.reset=earliest").start == BEGINNING


def test_where_it_ends() -> None:
    assert config().ends == ()
    assert config("-e", "-o", "e@5", "-o", "s@1").ends == (OffsetChoice(Origin.TIMESTAMP, 5), END)


def test_settings() -> None:
    found = config(
        "-G", "g", "--isolation-level", "read_committed", "-X", "group.instance.id=i", "-X", "session.timeout.ms=7",
        "--consumer-property", "enable.auto.commit=false", "-X", "fetch.wait.max.ms=9",
    )  # fmt: skip
    assert found.group is not None
    assert (found.group.group_id, found.group.group_instance_id, found.group.session_timeout_ms) == ("g", "i", 7)
    assert (found.fetch.read_committed, found.enable_auto_commit, found.fetch.fetch_max_wait_ms) == (True, False, 9)
    assert found.group.assignors == ("range", "roundrobin", "sticky", "cooperative-sticky")
    strategy = "partition.assignment.strategy"
    cooperative = config("-G", "g", "-X", f"{strategy}=cooperative-sticky").group
    assert cooperative is not None
    assert cooperative.is_cooperative
    with pytest.raises(CommandFailed, match=f"{strategy}: 'other' is no assignor that is known here"):
        config("-G", "g", "-X", f"{strategy}=other")
    assert config().group is None
    assert not config().fetch.read_committed


@pytest.mark.parametrize("expression", ["^(", "^a{9999999999}"])
def test_an_expression_that_cannot_be_compiled(expression: str) -> None:
    with pytest.raises(CommandFailed, match="is no regular expression"):
        subscription(parse_consume([expression]))


def test_topics() -> None:
    found = subscription(parse_consume(["a", "^b.*", "-t", "c", "--include", "d|e", "-p", "1", "-p", "2"]))
    assert (found.topics, found.partitions) == ({"a", "c"}, {1, 2})
    assert found.matching(["a", "b1", "c", "cb", "d", "e", "f", "de"]) == {"a", "b1", "c", "d", "e"}


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["t", "-G", "g", "-p", "0"],
        ["t", "--from-beginning", "-o", "5"],
        ["t", "-o", "stored"],
        ["t", "-G", "g", "-o", "5"],
        ["t", "-o", "x"],
        ["t", "-J", "-f", "%s"],
    ],
)
def test_options_that_do_not_go_together(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse_consume(arguments)


def test_values_that_contradict_each_other() -> None:
    with pytest.raises(CommandFailed, match=r"Can't simultaneously specify --from-beginning and 'auto.offset.reset"):
        config("--from-beginning", "-X", "auto.offset.reset=latest")
    with pytest.raises(CommandFailed, match="group ids"):
        config("-G", "g", "-X", "group.id=h")


def test_forms() -> None:
    assert printed() == b"v\n"
    assert printed("-K", ":", "-Z", "-D", "|") == b"NULL:v|"
    assert printed("-f", r"%o\n") == b"7\n"
    assert printed("--property", "print.key=true", "--property", "print.offset=true") == b"Offset:7\tnull\tv\n"
    assert printed("--formatter", "org.apache.kafka.tools.consumer.NoOpMessageFormatter") == b""
    assert printed("--formatter", "kafka.tools.DefaultMessageFormatter") == b"v\n"
    assert printed("-J").startswith(b'{"topic":"t"')
    assert b"\x1b[" in printed("--pretty", "--color", "always")
    assert b"\x1b[" not in printed("--follow", "--color", "auto")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-f", "%x"], "%x is not a token"),
        (["--property", "print.all=true"], "print.all is not known"),
        (["--formatter", "com.example.F"], "com.example.F is a Java class"),
        (["--value-deserializer", "com.example.D"], "is no deserializer"),
    ],
)
def test_forms_that_are_not_there(arguments: list[str], message: str) -> None:
    with pytest.raises(CommandFailed, match=message):
        printed(*arguments)


def test_deserializers() -> None:
    options = parse_consume(["t", "--value-deserializer", "org.apache.kafka.common.serialization.IntegerDeserializer"])
    assert record_format(options)(RECORD._replace(record=Record(0, 0, None, b"\0\0\1\0"))) == b"256\n"


def test_packed_fields() -> None:
    found = ConsumedRecord("t", 0, Record(7, 5, b"\0\1", b"\0\0\0\5"), 0)

    def form(*arguments: str) -> bytes:
        return record_format(parse_consume(["-t", "t", *arguments]))(found)

    assert form("-s", "key=h$", "-s", "value=i$") == b"5\n"
    assert form("-s", "b", "-f", "%k %s %K %S") == b"0 0 2 4"
    assert form("-s", "key=h", "-K", ":") == b"1:\0\0\0\5\n"
    assert form("-s", "i", "--json") == form("--json"), "as in kcat"
    assert form("-s", "h", "--pretty").endswith(b" 1 0\n")
    with pytest.raises(CommandFailed, match="'x' is no letter"):
        form("-s", "key=x")
    with pytest.raises(CommandFailed, match="-s cannot be combined"):
        form("-s", "i", "--property", "print.key=true")
