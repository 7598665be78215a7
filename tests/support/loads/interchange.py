"""One log directory, served in turns by Odradek and by Apache Kafka; the metadata moves with `odradek metadata copy`.

`Relay` hands the directory over; what was written to it is in a `Ledger`.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from odradek.broker.metadata_command import open_nodes
from odradek.controller.tree.metadata_tree import Delete, GetData, Multi, SetData
from odradek.controller.znodes.metadata_copy import read_snapshot
from odradek.controller.znodes.znodes import partition_state_path
from odradek.protocol.topic_partition import TopicPartition
from tests.support.broker import Broker
from tests.support.loads.ledger import CODECS, Ledger
from tests.support.processes.apache.apache import ApacheBroker, ZooKeeper
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.waiting import eventually

Target = Literal["odradek", "apache"]
Ending = Literal["stop", "kill"]
OTHER: Final[Mapping[Target, Target]] = {"odradek": "apache", "apache": "odradek"}
SETTINGS: Final[Mapping[str, str]] = {
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "300",
    "log.flush.start.offset.checkpoint.interval.ms": "200",  # so that a kill does not bring deleted records back
    "log.flush.offset.checkpoint.interval.ms": "200",  # so that a recovery begins at a producer snapshot
    "log.cleaner.backoff.ms": "100",
    "log.index.interval.bytes": "300",
    "offsets.topic.segment.bytes": "2000",
    "zookeeper.session.timeout.ms": "18000",  # Kafka's default: a broker without a core must not lose its session
}
COMMAND_TIMEOUT_S: Final = 30
RETENTION_BEFORE_THE_CLEANER: Final = re.compile(
    r"^.* ERROR Uncaught exception in scheduled task 'kafka-log-retention' .*\n"
    r"java\.lang\.IllegalStateException: Compaction for partition \S+ cannot be resumed since it is not paused\.$",
    re.MULTILINE,
)
"""Apache Kafka schedules retention before it makes the log cleaner. If the first run comes to its end after that, it
resumes what it has not paused (`LogManager.cleanupLogs`). The next run does what this one has not done."""


class Relay:
    """The directory and its two brokers, of which one at most runs."""

    def __init__(self, directory: Path, zookeeper: ZooKeeper) -> None:
        connect = zookeeper.new_chroot()
        self.log_dir = directory / "logs"
        self.brokers = {
            "odradek": OdradekBroker(directory, SETTINGS),
            "apache": ApacheBroker(directory, connect, SETTINGS),
        }
        self._locations = {"odradek": str(self.log_dir), "apache": f"zookeeper://{connect}"}
        self._served_by: Target | None = None

    def start(self, target: Target) -> Broker:
        """Hand the directory to `target` and start that; both know the metadata of the last one by then."""
        before, self._served_by = self._served_by, target
        if before is not None:
            asyncio.run(self._raise_leader_epochs(before))
            assert self.copy_metadata(before, OTHER[before]) == ""
        self.brokers[target].start()
        return self.brokers[target]

    async def _raise_leader_epochs(self, target: Target) -> None:
        """Raise the epochs as elections do in a larger cluster; a single broker is never elected again."""
        async with open_nodes(self._locations[target], {}, is_target=False) as nodes:
            for topic in CODECS:
                path = partition_state_path(TopicPartition(topic, 0))
                (node,) = await nodes.submit([GetData(path)])
                state = json.loads(node.data)
                state["leader_epoch"] += 1
                await nodes.submit([Multi((SetData(path, json.dumps(state).encode()),))])

    def copy_metadata(self, source: Target, target: Target) -> str:
        """Run the command; what it printed when it refused, else nothing."""
        locations = ("--from", self._locations[source], "--to", self._locations[target])
        done = run_odradek("metadata", "copy", *locations)
        assert done.returncode in (0, 1), done
        return done.stderr if done.returncode else ""

    def end(self, target: Target, ending: Ending) -> None:
        """Stop or kill the broker that runs. Nobody waits for the session of a killed one: see `_end_session`."""
        if ending == "stop":
            self.brokers[target].stop()
        else:
            self.brokers[target].close()
            if target == "apache":
                assert "belongs to a session" in self.copy_metadata(target, OTHER[target])
                asyncio.run(self._end_session(target))

    async def _end_session(self, target: Target) -> None:
        """Delete the nodes of the session, as ZooKeeper does when it runs out."""
        async with open_nodes(self._locations[target], {}, is_target=False) as nodes:
            for path in (await read_snapshot(nodes)).ephemeral:
                await nodes.submit([Delete(path)])

    def close(self) -> None:
        for broker in self.brokers.values():
            broker.close()


def run_odradek(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "odradek", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False)


def closed_segments(log_dir: Path) -> dict[str, tuple[int, int]]:
    """Inode and last change of each file of a closed segment, where neither retention nor compaction touches them."""
    found = {}
    for topic in CODECS:
        for log in sorted((log_dir / f"{topic}-0").glob("*.log"))[:-1]:
            for path in (log, log.with_suffix(".index"), log.with_suffix(".timeindex")):
                found[str(path)] = (path.stat().st_ino, path.stat().st_mtime_ns)
    return found


def cleaned_up_to(log_dir: Path, topic: str) -> int:
    """The cleaner's checkpoint of a topic; 0 while there is none."""
    checkpoint = log_dir / "cleaner-offset-checkpoint"
    text = checkpoint.read_text() if checkpoint.exists() else ""
    match = re.search(rf"^{topic} 0 (\d+)$", text, re.MULTILINE)
    return int(match[1]) if match else 0


def run_leg(relay: Relay, ledger: Ledger, target: Target, before: Ending, ending: Ending) -> None:
    """One broker's turn: it starts on the other's files, serves them, adds records, and ends."""
    closed = closed_segments(relay.log_dir)
    broker = relay.start(target)
    if ledger.legs:
        ledger.check(broker)
        ledger.check_identities(broker)
        if before == "stop":
            assert closed_segments(relay.log_dir) == closed
        if target == "apache":
            assert ("Recovering unflushed segment" in broker.log_text()) == (before == "kill")
    ledger.write(broker)
    last = max(ledger.records["compacted"])
    eventually(lambda: cleaned_up_to(relay.log_dir, "compacted"), accept=lambda offset: offset > last - 20)
    ledger.check(broker)
    ledger.check_identities(broker)
    log = RETENTION_BEFORE_THE_CLEANER.sub("", broker.log_text())
    errors = [line for line in log.splitlines() if "ERROR" in line]
    assert not errors, errors
    assert "is in use" in relay.copy_metadata(target, OTHER[target])
    relay.end(target, ending)
    ledger.check_epochs(relay.log_dir)
    verified = run_odradek("verify", str(relay.log_dir))
    assert verified.returncode == 0, verified
