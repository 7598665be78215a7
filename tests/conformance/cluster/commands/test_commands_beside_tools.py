"""Each command next to Apache's tool of the same kind, on the same broker: the same facts.

All tools of a test run in one JVM. The commands run in this process.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import confluent_kafka
import pytest

from odradek.broker import cli
from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.loads.clients import Message
from tests.support.loads.group_member import Member, await_shares, partitions_of
from tests.support.loads.transactional_clients import ConfluentTransactions
from tests.support.processes.apache.tool_runs import Printed, run_in_one_jvm
from tests.support.processes.apache.tools import TOOL_CLASSES

pytestmark = pytest.mark.oracle

TOOLS = {
    "groups": "consumer-groups",
    "api-versions": "broker-api-versions",
    **{name: name for name in ("configs", "get-offsets", "delete-records", "log-dirs", "transactions")},
}
"""Command -> Apache's tool."""

Both = Callable[..., Iterator[tuple[Printed, Printed]]]

MESSAGES = 12
FIRST_TIME_MS = 1_700_000_000_000


def ours(command: str, *arguments: str) -> Printed:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main([command, *arguments])
    return Printed(status, out.getvalue(), err.getvalue())


@pytest.fixture
def both(broker: Broker) -> Both:
    """Runs each command here and as Apache's tool: our output, then theirs."""
    at = ("--bootstrap-server", broker.bootstrap)

    def run(*runs: Sequence[str], theirs: Sequence[Sequence[str]] = ()) -> Iterator[tuple[Printed, Printed]]:
        """`theirs`: the arguments for Apache's tools if they are not the same."""
        tools = [[TOOL_CLASSES[TOOLS[command]], *at, *arguments] for command, *arguments in theirs or runs]
        printed = run_in_one_jvm(tools)
        for (command, *arguments), apaches in zip(runs, printed, strict=True):
            print(command, arguments)  # a failure shows it
            yield ours(command, *at, *arguments), apaches

    return run


def lines(printed: str) -> list[list[str]]:
    return [line.split() for line in printed.splitlines() if line.strip()]


def about(printed: str, *groups: str) -> list[list[str]]:
    """The headers, and the lines of these groups: those of other tests change while the tools run."""
    return sorted(line for line in lines(printed) if line[0] in (*groups, "GROUP"))


def cells(printed: str, *header: str) -> list[tuple[str, ...]]:
    """The rows below a header. Kafka's tool prints the rows of a reset in one line."""
    words = printed.split()
    while words[: len(header)] != list(header):
        words.pop(0)
    rows = words[len(header) :]
    return sorted(tuple(rows[index : index + len(header)]) for index in range(0, len(rows), len(header)))


@pytest.fixture
def filled(broker: Broker, unique: Callable[[str], str]) -> str:
    """A topic with three partitions; a record in every second of partition 0, and none in partition 2."""
    topic = Admin(broker.bootstrap).create_topic(unique("beside"), 3)
    for partition, count in ((0, MESSAGES), (1, 3)):
        messages = [
            Message(key=None, value=b"%d" % index, timestamp=FIRST_TIME_MS + 1000 * index) for index in range(count)
        ]
        produce(broker, topic, partition, messages)
    return topic


def produce(broker: Broker, topic: str, partition: int, messages: Sequence[Message]) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    for message in messages:
        producer.produce(topic, message.value, partition=partition, timestamp=message.timestamp or 0)
    assert producer.flush(30) == 0


def commit(broker: Broker, group: str, topic: str, offsets: dict[int, int]) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    partitions = [confluent_kafka.TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
    consumer.commit(offsets=partitions, asynchronous=False)
    consumer.close()


RESETS = (
    ("--topic", "{t}", "--to-earliest"),
    ("--topic", "{t}", "--to-latest"),
    ("--topic", "{t}", "--to-current"),
    ("--topic", "{t}", "--to-offset", "4"),
    ("--topic", "{t}:0,2", "--to-offset", "100"),
    ("--all-topics", "--shift-by", "-3"),
    ("--topic", "{t}:0", "--topic", "{t}:1", "--shift-by", "1"),
    ("--topic", "{t}", "--to-datetime", "2023-11-14T22:13:24.500"),
    ("--topic", "{t}", "--to-datetime", "2023-11-14T23:13:24.500+01:00"),
    ("--topic", "{t}", "--by-duration", "P1D"),
    ("--topic", "{t}", "--by-duration", "P10000DT1H"),
)


def test_groups_are_listed_and_described(broker: Broker, both: Both, filled: str, unique: Callable[[str], str]) -> None:
    active, idle = unique("active"), unique("idle")
    commit(broker, idle, filled, {0: 5, 2: 0})
    with Member(broker.bootstrap, active, [filled], client_id="one", group_instance_id="static") as member:
        await_shares([member], partitions_of({filled: 3}), [3])
        found = both(
            ("groups", "--list"),
            ("groups", "--list", "--state"),
            ("groups", "--list", "--state", "empty", "--type", "classic"),
            ("groups", "--describe", "--group", active),
            ("groups", "--describe", "--group", idle, "--offsets"),
            ("groups", "--describe", "--group", active, "--members", "--verbose"),
            ("groups", "--describe", "--group", active, "--state"),
            ("groups", "--describe", "--group", active, "--group", idle, "--state"),
        )
        for mine, apaches in found:
            assert about(mine.stdout, active, idle) == about(apaches.stdout, active, idle)
            assert mine.status == apaches.status == 0
    ((mine, apaches),) = both(("groups", "--describe", "--group", unique("nobody")))
    assert "does not exist" in mine.stderr
    assert "does not exist" in apaches.stdout
    assert (mine.status, apaches.status) == (1, 0)


def test_resets_find_the_same_offsets(broker: Broker, both: Both, filled: str, unique: Callable[[str], str]) -> None:
    group = unique("reset")
    commit(broker, group, filled, {0: 5, 1: 2})
    resets = [tuple(word.format(t=filled) for word in reset) for reset in RESETS]
    action = ("groups", "--reset-offsets", "--group", group, "--dry-run")
    header = ("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")
    exports = [(*action, *reset, "--export") for reset in resets[:2]]
    # Those of other tests are among all groups. Without --dry-run and --execute nothing is changed either.
    of_all = ("groups", "--reset-offsets", "--all-groups", "--topic", filled, "--to-earliest")
    without_action = (*action[:-1], "--topic", filled, "--to-earliest")
    *found, all_groups, undecided = both(
        *((*action, *reset) for reset in resets), *exports, (*of_all, "--dry-run"), without_action
    )
    for mine, apaches in found[: len(resets)]:
        assert cells(mine.stdout, *header) == cells(apaches.stdout, *header)
        assert (mine.status, apaches.status) == (0, 0)
    for mine, apaches in found[len(resets) :]:
        assert sorted(mine.stdout.split()) == sorted(apaches.stdout.split())
        assert len(mine.stdout.split()) == 3
    rows = [[row for row in cells(printed.stdout, *header) if row[0] == group] for printed in all_groups]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 3
    mine, apaches = undecided
    assert cells(mine.stdout, *header) == cells(apaches.stdout, *header)


def test_groups_are_changed_alike(
    broker: Broker,
    both: Both,
    filled: str,
    unique: Callable[[str], str],
    tmp_path: Path,
) -> None:
    """What a command does to one group, Apache's tool does to another. A plan that either exports, the other reads."""
    mine, apaches = unique("ours"), unique("apaches")
    for group in (mine, apaches):
        commit(broker, group, filled, {0: 5, 1: 2})
    plan = tmp_path / "plan.csv"
    plan.write_text(f"{filled},0,7\n{filled},2,0\n")

    def actions(group: str) -> list[tuple[str, ...]]:
        return [
            ("groups", "--reset-offsets", "--group", group, "--topic", filled, "--to-latest", "--execute"),
            ("groups", "--describe", "--group", group),
            ("groups", "--reset-offsets", "--group", group, "--from-file", str(plan), "--execute"),
            ("groups", "--describe", "--group", group),
            ("groups", "--delete-offsets", "--group", group, "--topic", f"{filled}:0,1"),
            ("groups", "--describe", "--group", group),
            ("groups", "--delete", "--group", group),
            ("groups", "--delete", "--group", group),
        ]

    found = [*both(*actions(mine), theirs=actions(apaches))]
    for we, they in found[:-1]:
        assert we.status == they.status == 0
        assert sorted(we.stdout.replace(mine, "G").split()) == sorted(they.stdout.replace(apaches, "G").split())
    gone, theirs = found[-1]
    assert gone.stderr.replace(mine, "G").splitlines()[-1] == (
        "* Group 'G' could not be deleted due to: The group id does not exist."
    )
    assert "The group id does not exist." in theirs.stdout


def test_offsets_records_and_log_directories(
    both: Both, filled: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    entries = [{"topic": filled, "partition": partition, "offset": offset} for partition, offset in ((0, 4), (1, -1))]
    plan.write_text(json.dumps({"partitions": entries, "version": 1}))
    found = [
        *both(
            ("get-offsets", "--topic", filled),
            ("get-offsets", "--topic-partitions", f"{filled}:0-2,nothing", "--time", "-2"),
            ("get-offsets", "--topic-partitions", f"{filled}:-1", "--time", "max-timestamp"),
            ("get-offsets", "--topic", filled, "--partitions", "0,1", "--time", str(FIRST_TIME_MS + 2500)),
            ("get-offsets", "--topic", filled, "--time", "earliest-local"),
        ),
        *both(
            ("delete-records", "--offset-json-file", str(plan)),
            ("get-offsets", "--topic", filled, "--time", "earliest"),
            ("get-offsets", "--topic", unique("nothing")),
            ("log-dirs", "--describe", "--topic-list", filled),
        ),
    ]
    for mine, apaches in found[:-2]:
        assert sorted(lines(mine.stdout)) == sorted(lines(apaches.stdout))
        assert mine.status == apaches.status == 0
    mine, apaches = found[-1]
    assert mine.stdout.splitlines()[:2] == apaches.stdout.splitlines()[:2]
    assert directories(mine) == directories(apaches)
    mine, apaches = found[-2]
    assert mine.status == apaches.status == 1
    why = "Could not match any topic-partitions with the specified filters"
    assert mine.stderr == f"odradek: {why}\n"
    assert why in apaches.stderr


def directories(printed: Printed) -> object:
    value = json.loads(printed.stdout.splitlines()[2])
    for broker in value["brokers"]:
        for directory in broker["logDirs"]:
            directory["partitions"].sort(key=lambda partition: partition["partition"])
    return value


def test_configs(both: Both, filled: str, broker: Broker, unique: Callable[[str], str]) -> None:
    topic = ("--entity-type", "topics", "--entity-name", filled)
    other = Admin(broker.bootstrap).create_topic(unique("beside"))
    found = both(
        ("configs", "--describe", "--topic", filled),
        ("configs", "--describe", *topic, "--all"),
        ("configs", "--describe", "--broker", "0", "--all"),
        ("configs", "--describe", "--entity-type", "brokers"),
        ("configs", "--describe", "--broker-defaults"),
        ("configs", "--describe", "--entity-type", "users"),
        ("configs", "--describe", "--entity-type", "ips"),
        ("configs", "--describe", "--entity-type", "clients", "--entity-default"),
    )
    for mine, apaches in found:
        assert mine.stdout.splitlines() == apaches.stdout.splitlines()
        assert mine.status == apaches.status == 0
    ((mine, apaches),) = both(("configs", "--describe", "--broker-logger", "0"))
    assert {*apaches.stdout.splitlines()} <= {*mine.stdout.splitlines()}, "a broker makes loggers as it needs them"

    def changes(name: str) -> list[tuple[str, ...]]:
        which = ("configs", "--alter", "--entity-type", "topics", "--entity-name", name)
        return [
            (*which, "--add-config", "retention.ms=86400000,cleanup.policy=[compact,delete]"),
            ("configs", "--describe", "--topic", name),
            (*which, "--delete-config", "cleanup.policy"),
            ("configs", "--describe", "--topic", name),
            (*which, "--delete-config", "cleanup.policy"),
            (*which, "--add-config", "segment.bytes=1"),
            (*which, "--add-config", "a"),
        ]

    changed = [*both(*changes(filled), theirs=changes(other))]
    for mine, apaches in changed[:4]:
        assert mine.stdout.replace(filled, "T") == apaches.stdout.replace(other, "T")
        assert mine.status == apaches.status == 0
    for mine, apaches in changed[4:]:
        assert mine.status == apaches.status == 1
    for index in (4, 6):
        mine, apaches = changed[index]
        assert mine.stderr.removeprefix("odradek: ") == apaches.stderr.removeprefix("requirement failed: ")


def test_quotas(broker: Broker, both: Both, unique: Callable[[str], str]) -> None:
    """Quotas that either sets, both describe; names with characters that ZooKeeper paths do not have."""
    ours_, apaches_ = unique("ours/*"), unique("apaches/*")

    def changes(user: str, ip: str) -> list[tuple[str, ...]]:
        return [
            (
                "configs",
                "--alter",
                "--user",
                user,
                "--add-config",
                "producer_byte_rate=10485760,request_percentage=0.5",
            ),
            ("configs", "--alter", "--user", user, "--client-defaults", "--add-config", "consumer_byte_rate=1"),
            (
                "configs",
                "--alter",
                "--entity-type",
                "clients",
                "--entity-name",
                user,
                "--add-config",
                "controller_mutation_rate=3",
            ),
            ("configs", "--alter", "--ip", ip, "--add-config", "connection_creation_rate=7"),
            ("configs", "--alter", "--user", user, "--delete-config", "request_percentage"),
            ("configs", "--alter", "--user", user, "--delete-config", "request_percentage"),
            ("configs", "--alter", "--user", user, "--add-config", "producer_byte_rate=fast"),
        ]

    mine, apaches = zip(*both(*changes(ours_, "10.9.8.7"), theirs=changes(apaches_, "10.9.8.6")), strict=True)
    assert [run.status for run in mine] == [run.status for run in apaches] == [0, 0, 0, 0, 0, 1, 1]
    assert [run.stdout.replace(ours_, "U").replace("8.7", "8.6") for run in mine] == [
        run.stdout.replace(apaches_, "U") for run in apaches
    ]
    described = [
        *both(
            ("configs", "--describe", "--entity-type", "users"),
            ("configs", "--describe", "--entity-type", "users", "--entity-type", "clients"),
            ("configs", "--describe", "--entity-type", "clients"),
            ("configs", "--describe", "--entity-type", "ips"),
            ("configs", "--describe", "--user", ours_, "--client-defaults"),
        )
    ]
    for we, they in described:
        # Quotas of an entity are in the order of a hash table there.
        assert sorted(re.split(r"[, ]+|\n", we.stdout)) == sorted(re.split(r"[, ]+|\n", they.stdout))
    assert described[0][0].stdout.count("producer_byte_rate=1.048576E7") == 2
    at = ("--bootstrap-server", broker.bootstrap)
    rows = json.loads(ours("quotas", *at, "--user", apaches_, "--json").stdout)
    assert [(row["client"], row["quota"], row["value"]) for row in rows] == [
        ("*", "consumer_byte_rate", 1.0),
        (None, "producer_byte_rate", 10485760.0),
    ]
    for user in (ours_, apaches_):
        assert ours("quotas", *at, "--user", user, "--remove", "produce").status == 0
        assert ours("quotas", *at, "--user", user, "--default-client", "--remove", "consume").status == 0
        assert ours("quotas", *at, "--client", user, "--remove", "mutations").status == 0
    for ip in ("10.9.8.7", "10.9.8.6"):
        assert ours("quotas", *at, "--ip", ip, "--remove", "connections").status == 0
    assert json.loads(ours("quotas", *at, "--json").stdout) == []


def test_transactions_and_producers(broker: Broker, both: Both, filled: str, unique: Callable[[str], str]) -> None:
    name = unique("txn")
    producer = ConfluentTransactions().producer(broker.bootstrap, name)
    producer.begin()
    producer.send(filled, "open")
    partition = ("--topic", filled, "--partition", "0")
    found = [
        *both(
            ("transactions", "list"),
            ("transactions", "describe-producers", *partition),
            ("transactions", "find-hanging", "--topic", filled),
            ("transactions", "describe", "--transactional-id", name),
            ("transactions", "describe", "--transactional-id", unique("nobody")),
            ("transactions", "abort", *partition, "--start-offset", "0"),
        )
    ]
    for mine, apaches in found[:3]:
        assert sorted(mine.stdout.splitlines()) == sorted(apaches.stdout.splitlines())
        assert mine.status == apaches.status == 0
    mine, apaches = found[3]
    duration = re.compile(r"\t\d+ *\t(?=[^\t]*\t$)", re.MULTILINE)
    assert name in mine.stdout
    assert duration.sub("\t", mine.stdout).split() == duration.sub("\t", apaches.stdout).split()
    for mine, apaches in found[4:]:
        assert mine.status == apaches.status == 1
        assert mine.stderr.removeprefix("odradek: ")[:60] == apaches.stderr[:60]
    at = ("--bootstrap-server", broker.bootstrap)
    rows = json.loads(ours("producers", *at, "--topic", filled, "--open", "--json").stdout)
    assert [(row["topic"], row["partition"], row["transaction_start_offset"]) for row in rows] == [
        (filled, 0, MESSAGES)
    ]
    fenced = ours("transactions", *at, "forceTerminateTransaction", "--transactional-id", name)
    assert fenced.status == 0
    assert json.loads(ours("producers", *at, "--topic", filled, "--open", "--json").stdout) == []
    with pytest.raises(Exception, match=r"(?i)fenced|state|epoch"):
        producer.commit()
    producer.close()


def test_api_versions(both: Both) -> None:
    ((mine, apaches),) = both(("api-versions",))
    assert mine.stdout.splitlines() == apaches.stdout.splitlines()
    assert mine.status == apaches.status == 0
