"""`odradek top` in a terminal and for programs: the numbers on the screen are those of the cluster."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.processes.commands import command_line, run_command
from tests.support.processes.terminal import Terminal
from tests.support.wire.raw_topics import end_offset

pytestmark = pytest.mark.oracle


def row(lines: list[str], name: str) -> list[str]:
    """The cells of the line that begins with a name."""
    return next((line.split() for line in lines if line.split()[:1] == [name]), [])


def test_the_screen(new_broker: Callable[[], Broker], unique: Callable[[str], str]) -> None:
    broker = new_broker()  # the screen has no room for the topics of other tests
    topic, group = Admin(broker.bootstrap).create_topic(unique("top"), 2), unique("group")
    run_command(broker.bootstrap, "produce", "-t", topic, "-p", "0", stdin=b"x\n" * 1_500)
    run_command(broker.bootstrap, "consume", topic, "-G", group, "--from-beginning", "-c", "300", "-q")
    with Terminal(command_line(broker.bootstrap, "top", "--interval", "0.5")) as terminal:
        terminal.await_lines(lambda found: row(found, topic)[1:4] == ["2", "1", "0"])  # no replica is missing
        terminal.await_lines(lambda found: row(found, topic)[-1:] == ["1,500"])
        terminal.await_lines(lambda found: row(found, group)[1:3] == ["Empty", "0"])
        terminal.await_lines(lambda found: row(found, group)[-2:-1] == ["1,200"])  # the lag
        terminal.await_lines(lambda found: row(found, "0")[1:4] == [broker.bootstrap, "-", "*"])  # the controller
        run_command(broker.bootstrap, "produce", "-t", topic, "-p", "1", stdin=b"y\n" * 1_000)
        terminal.await_lines(lambda found: row(found, topic)[-1:] == ["2,500"])
        terminal.await_lines(lambda found: row(found, group)[-2:-1] == ["2,200"])  # it is at 0 in partition 1
        terminal.press(b"i")
        terminal.await_lines(lambda found: bool(row(found, "__consumer_offsets")))
        terminal.press(b"\tr")
        terminal.await_lines(lambda found: any(line.startswith("groups") for line in found))
        terminal.press(b"q")
        assert terminal.await_end() == 0


def test_rates_for_programs(broker: Broker, unique: Callable[[str], str]) -> None:
    """Records are seen while they are written, and not more of them than there are."""
    topic = Admin(broker.bootstrap).create_topic(unique("rate"))
    arguments = ("--num-records", "1000000", "--record-size", "100", "--throughput", "1000", "--topic", topic)
    command = [*command_line(broker.bootstrap, "perf")[:-2], "produce", *arguments, "-b", broker.bootstrap]
    with Terminal(command):  # it writes until the end of the block
        run_command(broker.bootstrap, "consume", topic, "-o", "beginning", "-c", "1")
        before = end_offset(broker, topic)
        done = run_command(broker.bootstrap, "top", "--once", "--json", "--interval", "2")
        after = end_offset(broker, topic)
    found = json.loads(done.stdout)
    (rate,) = [each["records_per_second"] for each in found["topics"] if each["topic"] == topic]
    assert 0 < rate * found["seconds"] <= after - before
    assert found["brokers"][0]["records_per_second"] >= rate
    plain = run_command(broker.bootstrap, "top", "--once", "--interval", "0.1").stdout.decode()
    total = int(row(plain.splitlines(), topic)[-1].replace(",", ""))
    assert after <= total <= end_offset(broker, topic)  # the last request of the load may be under way
