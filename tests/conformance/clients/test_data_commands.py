"""`odradek produce` and `consume` on a broker of either kind, beside Apache's console tools and other clients."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from odradek.protocol.api import ApiKey
from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.loads.clients import Confluent, Message
from tests.support.loads.group_member import Member
from tests.support.processes.apache.jvm import java_command
from tests.support.processes.apache.tools import TOOL_CLASSES, Tools
from tests.support.processes.commands import Finished, RunningCommand, run_command
from tests.support.processes.process import ManagedProcess
from tests.support.waiting import eventually
from tests.support.wire.fault_proxy import behind_proxy
from tests.support.wire.faults import NoFaults

pytestmark = pytest.mark.oracle

Run = Callable[..., Finished]
MakeBroker = Callable[[Path, dict[str, str]], Broker]
EVERYTHING = ("-o", "beginning", "-e", "-q")


@pytest.fixture
def run(broker: Broker) -> Run:
    return lambda command, *arguments, **options: run_command(broker.bootstrap, command, *arguments, **options)


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Admin:
    return Admin(broker.bootstrap)


def test_beside_the_console_tools(
    broker: Broker, run: Run, admin: Admin, tools: Tools, unique: Callable[[str], str]
) -> None:
    """The same input and options give the same records, and the same records the same output."""
    ours, apaches = admin.create_topic(unique("ours"), 3), admin.create_topic(unique("apaches"), 3)
    lines = b"".join(b"h1:v%d,h2:NULL\tkey-%d\tvalue %d\n" % (i, i, i) for i in range(30)) + b"h:1\tNULL\tNULL\n"
    options = ["--property", "parse.key=true", "--property", "parse.headers=true", "--property", "null.marker=NULL"]
    run("produce", "--topic", ours, *options, stdin=lines)
    tools.run("console-producer", "--bootstrap-server", broker.bootstrap, "--topic", apaches, *options, stdin=lines)
    form = ("-f", "%p %k %s %h\n")
    written = [sorted(run("consume", topic, *EVERYTHING, *form).stdout.splitlines()) for topic in (ours, apaches)]
    keyed = [[line for line in found if b" key-" in line] for found in written]
    assert keyed[0] == keyed[1], "each key has the same partition"
    assert len(written[0]) == len(written[1]) == 31
    properties = [
        part
        for name in ("timestamp", "partition", "offset", "headers", "key")
        for part in ("--property", f"print.{name}=true")
    ]
    arguments = ["--topic", ours, "--from-beginning", "--max-messages", "31", *properties]
    theirs = tools.run("console-consumer", "--bootstrap-server", broker.bootstrap, *arguments)
    found = run("consume", *arguments)
    assert sorted(found.stdout.decode().splitlines()) == sorted(theirs.stdout.splitlines())
    assert found.stderr == "Processed a total of 31 messages\n"


@pytest.mark.parametrize(
    ("topic", "formatter"),
    [
        ("__consumer_offsets", "OffsetsMessageFormatter"),
        ("__consumer_offsets", "GroupMetadataMessageFormatter"),
        ("__transaction_state", "TransactionLogMessageFormatter"),
    ],
)
def test_internal_topics_beside_the_console_consumer(
    broker: Broker, run: Run, admin: Admin, tools: Tools, unique: Callable[[str], str], topic: str, formatter: str
) -> None:
    source, group = admin.create_topic(unique("source")), unique("group")
    run("produce", "-t", source, "-X", f"transactional.id={group}", stdin=b"a\nb\n")
    run("consume", "-G", group, source, "--from-beginning", "-e")
    run("groups", "--delete-offsets", "--group", group, "--topic", source)  # and a tombstone
    written = run("consume", topic, *EVERYTHING, "-f", "%p %k\n").stdout.splitlines()
    partition = next(line.split()[0] for line in written if group.encode() in line)
    records = [line for line in written if line.startswith(partition + b" ")]
    options = [
        "--topic",
        topic,
        "--partition",
        partition.decode(),
        "--formatter",
        f"org.apache.kafka.tools.consumer.{formatter}",
    ]
    place = [*options, "--offset", "earliest", "--max-messages", str(len(records))]
    theirs = tools.run("console-consumer", "--bootstrap-server", broker.bootstrap, *place)
    ours = run("consume", *place)
    assert ours.stdout.decode() == theirs.stdout
    assert group in theirs.stdout
    assert theirs.stderr.strip().endswith(ours.stderr.strip())


def test_any_bytes_go_through_a_pipe(broker: Broker, run: Run, admin: Admin, unique: Callable[[str], str]) -> None:
    """JSON lines carry binary keys and values, headers, nulls and timestamps from one topic to another."""
    source, target = admin.create_topic(unique("source")), admin.create_topic(unique("target"))
    messages = [
        Message(key=None, value=bytes(range(256)), timestamp=1_700_000_000_000),
        Message(key=b"\xff\xfe", value=None, timestamp=1_700_000_000_001),
        Message(key=b"", value=b"", headers=(("h", b"\0\xff"), ("h", None), ("", b"")), timestamp=1_700_000_000_002),
        Message(key=b"k", value="ä\n\u2028".encode(), timestamp=1_700_000_000_003),
        Message(key=b"large", value=os.urandom(700_000), timestamp=1_700_000_000_004),
    ]
    Confluent().produce(broker.bootstrap, source, messages)
    lines = run("consume", source, *EVERYTHING, "--json").stdout
    run("produce", "-t", target, "--json", "-z", "zstd", stdin=lines)
    received = Confluent().consume(broker.bootstrap, target, len(messages))
    assert [(*found.content, found.timestamp) for found in received] == [
        (found.key, found.value, found.headers, found.timestamp) for found in messages
    ]
    raw = run("consume", target, "-o", "0", "-p", "0", "-c", "1", "-f", "%s", "-q").stdout
    assert raw == bytes(range(256))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_codecs(broker: Broker, run: Run, admin: Admin, unique: Callable[[str], str], codec: str) -> None:
    topic = admin.create_topic(unique("codec"))
    values = [b"%d" % number * 50 for number in range(2_000)]
    run("produce", "-t", topic, "-z", codec, stdin=b"\n".join(values))
    assert run("consume", topic, *EVERYTHING).stdout.split() == values
    assert [found.value for found in Confluent().consume(broker.bootstrap, topic, 2_000)] == values


@pytest.mark.parametrize("acks", ["0", "1"])
def test_less_than_all_acks(run: Run, admin: Admin, unique: Callable[[str], str], acks: str) -> None:
    topic = admin.create_topic(unique("acks"))
    run("produce", "-t", topic, "--acks", acks, stdin=b"a\nb\n")
    found = eventually(lambda: run("consume", topic, *EVERYTHING).stdout, accept=lambda printed: len(printed) == 4)
    assert found == b"a\nb\n"


def test_offsets(run: Run, admin: Admin, unique: Callable[[str], str]) -> None:
    topic = admin.create_topic(unique("offsets"))
    for timestamp in (1_000, 2_000, 3_000):
        run("produce", "-t", topic, "--timestamp", str(timestamp), stdin=b"%d\n" % timestamp)
    assert run("consume", topic, "-o", "-1", "-e").stdout == b"3000\n"
    assert run("consume", topic, "-o", "1", "-c", "1").stdout == b"2000\n"
    assert run("consume", topic, "-o", "s@1500", "-o", "e@2500").stdout == b"2000\n"
    assert run("consume", topic, "-e").stdout == b""
    reset = run("consume", topic, "-p", "0", "-o", "99", "-e", "--consumer-property", "auto.offset.reset=none")
    assert reset.stdout == b"", "beyond the end there is nothing to read"


def test_transactions_are_seen_when_they_are_committed(run: Run, broker: Broker, unique: Callable[[str], str]) -> None:
    topic, name = unique("transactions"), unique("id")
    committed = ("consume", topic, *EVERYTHING, "--isolation-level", "read_committed")
    with RunningCommand(broker.bootstrap, "produce", "-t", topic, "--transactional-id", name) as producer:
        producer.write(b"a\n")
        eventually(lambda: run("consume", topic, *EVERYTHING).stdout, accept=lambda printed: printed == b"a\n")
        assert run(*committed).stdout == b""
        producer.write(b"b\n")
        assert producer.finish().status == 0
    assert run(*committed).stdout == b"a\nb\n"
    with RunningCommand(broker.bootstrap, "produce", "-t", topic, "--transactional-id", name) as producer:
        producer.write(b"aborted\n")
        eventually(lambda: run("consume", topic, *EVERYTHING).stdout, accept=lambda printed: b"aborted" in printed)
        assert producer.stop().status == 130
    run("produce", "-t", topic, "--transactional-id", name, "--transaction-size", "1", stdin=b"c\nd\n")
    assert run(*committed).stdout == b"a\nb\nc\nd\n"


def test_a_group_with_a_member_of_librdkafka(
    broker: Broker, run: Run, admin: Admin, unique: Callable[[str], str]
) -> None:
    """Partitions are shared, each record is read by one of the two, and what a member has read is committed."""
    topic, group = admin.create_topic(unique("shared"), 4), unique("group")
    arguments = ("-G", group, topic, "--from-beginning", "-X", "heartbeat.interval.ms=100")
    with RunningCommand(broker.bootstrap, "consume", *arguments) as command:
        with Member(broker.bootstrap, group, [topic], enable_auto_commit=True) as member:
            eventually(lambda: len(member.owned), accept=lambda count: count == 2, timeout_s=20)
            run("produce", "-t", topic, "--partitioner", "round-robin", stdin=b"".join(b"%d\n" % i for i in range(100)))
            eventually(lambda: len(member.values), accept=lambda count: count == 50)
        for partition in range(4):
            run("produce", "-t", topic, "-p", str(partition), stdin=b"late-%d\n" % partition)
        printed = b""
        while printed.count(b"late") < 4:  # the command has all partitions again
            printed += os.read(command.stdout.fileno(), 65536)
        finished = command.stop(signal.SIGTERM)
    assert finished.status == 143, finished
    read = (printed + finished.stdout).split()
    written = [b"%d" % i for i in range(100)] + [b"late-%d" % partition for partition in range(4)]
    assert sorted([*read, *member.values]) == sorted(written)
    assert run("consume", "-G", group, topic, "-e").stdout == b"", "all of it is committed"


@pytest.mark.parametrize("is_leader", [True, False])
def test_a_cooperative_group_with_a_member_of_librdkafka(
    broker: Broker, run: Run, admin: Admin, unique: Callable[[str], str], is_leader: bool
) -> None:
    """Members of both kinds come and go under load; each record is read by one of them. A member that stays keeps most
    of its partitions, whether the command leads the group or librdkafka."""
    topic, group = admin.create_topic(unique("cooperative"), 6), unique("group")
    strategy = "partition.assignment.strategy"
    arguments = ("-G", group, topic, "--from-beginning", "-q", "-X", "heartbeat.interval.ms=100")
    cooperative = {strategy.replace(".", "_"): "cooperative-sticky", "enable_auto_commit": True}
    written: list[bytes] = []
    read: list[bytes] = []

    def write() -> None:
        lines = [b"%d" % (len(written) + number) for number in range(120)]
        run("produce", "-t", topic, "--partitioner", "round-robin", stdin=b"\n".join(lines))
        written.extend(lines)

    def start() -> RunningCommand:
        return RunningCommand(broker.bootstrap, "consume", *arguments, "-X", f"{strategy}=cooperative-sticky")

    def shares() -> list[int]:
        members = admin.client.describe_consumer_groups([group])[group].result().members
        return sorted(len(member.assignment.topic_partitions) for member in members)

    with ExitStack() as running:
        if not is_leader:
            member = running.enter_context(Member(broker.bootstrap, group, [topic], **cooperative))
            eventually(shares, accept=lambda found: found == [6], timeout_s=20)
        first = running.enter_context(start())
        output = running.enter_context(ThreadPoolExecutor()).submit(first.stdout.read)
        if is_leader:
            eventually(shares, accept=lambda found: found == [6], timeout_s=20)
            member = running.enter_context(Member(broker.bootstrap, group, [topic], **cooperative))
        write()
        eventually(shares, accept=lambda found: found == [3, 3], timeout_s=20)
        member.revocations.clear()
        with start() as second:
            write()
            eventually(shares, accept=lambda found: found == [2, 2, 2], timeout_s=20)
            write()
            read += second.stop(signal.SIGTERM).stdout.split()
        eventually(shares, accept=lambda found: found == [3, 3], timeout_s=20)
        write()
        assert all(len(revoked) == 1 for revoked in member.revocations), member.revocations
        member.leave()
        eventually(shares, accept=lambda found: found == [6], timeout_s=20)
        write()
        first.process.send_signal(signal.SIGINT)
        read += output.result(20).split() + member.values
    read += run("consume", "-G", group, topic, "-e").stdout.split()
    assert sorted(read) == sorted(written)


def test_a_group_with_a_member_of_java(
    broker: Broker, run: Run, admin: Admin, tools: Tools, unique: Callable[[str], str]
) -> None:
    """The group rebalances when the other member comes and when it goes; each record is read by one of the two."""
    topic, group = admin.create_topic(unique("shared"), 4), unique("group")
    arguments = ("-G", group, topic, "--from-beginning", "-X", "heartbeat.interval.ms=100")
    options = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--group", group, "--from-beginning"]
    with RunningCommand(broker.bootstrap, "consume", *arguments) as command, ThreadPoolExecutor() as pool:
        other = pool.submit(tools.run, "console-consumer", *options, "--max-messages", "20", "--timeout-ms", "20000")
        sent: list[bytes] = []
        while not other.done():
            lines = [b"%d" % (len(sent) + number) for number in range(40)]
            run("produce", "-t", topic, "--partitioner", "round-robin", stdin=b"\n".join(lines))
            sent += lines
        for partition in range(4):
            run("produce", "-t", topic, "-p", str(partition), stdin=b"late-%d\n" % partition)
        printed = b""
        while printed.count(b"late") < 4:  # the command has all partitions again
            printed += os.read(command.stdout.fileno(), 65536)
        command.stop()
    read = [*printed.split(), *(line.encode() for line in other.result().lines)]
    assert sorted(read) == sorted([*sent, *(b"late-%d" % partition for partition in range(4))])


@pytest.mark.parametrize("is_leader", [True, False])
def test_a_sticky_group_with_a_member_of_java(
    broker: Broker, admin: Admin, tmp_path: Path, unique: Callable[[str], str], is_leader: bool
) -> None:
    """A third member comes, and the two others keep what they can, whether the command leads the group or Java."""
    topic, group = admin.create_topic(unique("sticky"), 6), unique("group")
    strategy = "partition.assignment.strategy"
    ours = (
        "-G",
        group,
        topic,
        "-q",
        "-X",
        "heartbeat.interval.ms=100",
        "-X",
        f"{strategy}=sticky",
        "-X",
        "client.id=ours",
    )
    java = [
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--group", group),
        *("--consumer-property", f"{strategy}=org.apache.kafka.clients.consumer.StickyAssignor"),
        *("--consumer-property", "heartbeat.interval.ms=100", "--consumer-property", "client.id=java"),
    ]

    def shares() -> dict[str, set[int]]:
        described = admin.client.describe_consumer_groups([group])[group].result()
        return {
            member.client_id: {partition.partition for partition in member.assignment.topic_partitions}
            for member in described.members
        }

    def settled(*sizes: int) -> dict[str, set[int]]:
        return eventually(shares, accept=lambda found: sorted(map(len, found.values())) == list(sizes), timeout_s=40)

    with ExitStack() as stack:
        consumer = ManagedProcess(java_command(TOOL_CLASSES["console-consumer"], *java), tmp_path / "java.log")
        stack.callback(consumer.kill)
        if is_leader:
            stack.enter_context(RunningCommand(broker.bootstrap, "consume", *ours))
        else:
            consumer.start()
        settled(6)
        if is_leader:
            consumer.start()
        else:
            stack.enter_context(RunningCommand(broker.bootstrap, "consume", *ours))
        before = settled(3, 3)
        third = stack.enter_context(RunningCommand(broker.bootstrap, "consume", *ours[:-1], "client.id=third"))
        after = settled(2, 2, 2)
        assert all(after[name] < before[name] for name in before), "both keep two of their three"
        third.stop()
        settled(3, 3)


def test_a_closed_pipe_ends_it(broker: Broker, run: Run, admin: Admin, unique: Callable[[str], str]) -> None:
    topic = admin.create_topic(unique("head"))
    run("produce", "-t", topic, stdin=b"line\n" * 100_000)
    with RunningCommand(broker.bootstrap, "consume", topic, "-o", "beginning") as command:
        assert command.stdout.readline() == b"line\n"
        command.stdout.close()
        assert command.process.wait(20) == 0


def test_a_member_whose_output_waits_stays_in_its_group(make_broker: MakeBroker, tmp_path: Path) -> None:
    """`| less`: heartbeats go on while the pipe is full, and what was not written is not committed."""
    requests = NoFaults()
    lines = [b"%099d" % number for number in range(5_000)]  # a pipe holds 64 KiB
    with behind_proxy(partial(make_broker, tmp_path), requests) as (_, proxy):
        run, admin, topic, group = partial(run_command, proxy.bootstrap), Admin(proxy.bootstrap), "slow", "group"
        run("produce", "-t", topic, stdin=b"\n".join(lines))
        arguments = (topic, "-G", group, "--from-beginning", "-X", "heartbeat.interval.ms=100")
        with RunningCommand(proxy.bootstrap, "consume", *arguments) as command:
            assert command.stdout.readline().strip() == lines[0]
            wanted = requests.count[ApiKey.HEARTBEAT] + 10
            eventually(lambda: requests.count[ApiKey.HEARTBEAT], accept=lambda count: count >= wanted)
            members = admin.client.describe_consumer_groups([group])[group].result().members
            assert len(members) == 1
            command.process.send_signal(signal.SIGINT)
            assert command.process.wait(20) == 130
            rest = command.stdout.read()
        again = run("consume", "-G", group, topic, "-e", "--from-beginning").stdout
    assert {lines[0], *rest.split(), *again.split()} >= set(lines), "nothing is skipped"
    assert len(again) > 0, "what was only in memory comes again"


def test_json_of_the_console(run: Run, admin: Admin, unique: Callable[[str], str]) -> None:
    topic = admin.create_topic(unique("json"))
    run("produce", "-t", topic, "-K", ":", "-Z", "-H", "h=x", stdin=b"k:\n")
    (line,) = run("consume", topic, *EVERYTHING, "-J").stdout.splitlines()
    found = json.loads(line)
    assert (found["key"], found["payload"], found["headers"]) == ("k", None, ["h", "x"])


def test_regular_expressions(run: Run, admin: Admin, unique: Callable[[str], str]) -> None:
    prefix = unique("pattern")
    for suffix in ("a", "b", "c"):
        run("produce", "-t", admin.create_topic(f"{prefix}-{suffix}"), stdin=f"{suffix}\n".encode())
    assert sorted(run("consume", f"^{prefix}-[ab]", *EVERYTHING).stdout.split()) == [b"a", b"b"]
    assert run("consume", "--include", f"{prefix}-c", *EVERYTHING).stdout == b"c\n"


def test_a_server_that_is_not_there() -> None:
    found = run_command("127.0.0.1:1", "consume", "t", "-q", status=1)
    assert found.stderr.startswith("odradek: no bootstrap server answers:")


def test_a_broker_that_is_killed_and_started_again(new_broker: Callable[..., Broker]) -> None:
    """The only broker is away for a moment: a producer and a member of a group go on, with each record once."""
    broker = new_broker()
    lines = [b"%d" % number for number in range(4_000)]
    arguments = ("t", "-G", "g", "--from-beginning", "-c", str(len(lines)), "-q")
    with (
        RunningCommand(broker.bootstrap, "produce", "-t", "t", "--sync") as producer,
        RunningCommand(broker.bootstrap, "consume", *arguments) as consumer,
    ):
        producer.write(b"".join(line + b"\n" for line in lines[:2_000]))
        printed = b"".join(consumer.stdout.readline() for _ in range(200))
        broker.kill()
        producer.write(b"".join(line + b"\n" for line in lines[2_000:]))
        broker.start()
        assert producer.finish().status == 0
        consumed = consumer.finish()
    assert consumed.status == 0, consumed
    assert (printed + consumed.stdout).split() == lines
