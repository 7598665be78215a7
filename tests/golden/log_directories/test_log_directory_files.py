"""Byte for byte: the same produce requests at the same times make the files that Apache Kafka 3.9.1 made of them.

`log_directories/capture_files.py` wrote `files/` and noted what it did in `files/steps.json`. It is done again to our
storage, restarts included, and every file is compared: logs, indexes, producer snapshots, epochs, checkpoints.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.protocol.codec.primitives import uuid_from_text
from odradek.protocol.records.batch import batches
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.manager.log_manager import LogManager
from tests.support.disks.logs import Disk

FILES = Path(__file__).parent / "files"
DONE = json.loads((FILES / "steps.json").read_text())
SETTINGS, TOPICS, STEPS = DONE["settings"], DONE["topics"], DONE["steps"]


class Replay:
    """Our storage, as a broker that leads every partition uses it."""

    def __init__(self, path: Path, restart: str) -> None:
        self._disk = Disk(path)
        self._end = self.stop if restart == "stop" else self._kill
        self._disk.clock.set_time_ms(STEPS[0]["at"])
        self._epochs = dict.fromkeys(TOPICS, 0)
        self._append_times_ms = append_times_ms()
        self._start()

    def _start(self) -> None:
        self.manager = LogManager([str(self._disk.path)], SETTINGS, self._disk.environment)
        self.manager.startup(TOPICS)
        for topic in TOPICS:
            self.manager.get_or_create_log(TopicPartition(topic, 0), topic_id(topic), is_new=True)
            self._lead(topic)

    def _lead(self, topic: str) -> None:
        log = self.log(topic)
        log.assign_epoch_start_offset(self._epochs[topic], log.log_end_offset)
        log.update_high_watermark(log.log_end_offset)

    def log(self, topic: str) -> UnifiedLog:
        log = self.manager.get_log(TopicPartition(topic, 0))
        assert log is not None
        return log

    def stop(self) -> None:
        self.manager.delete_old_segments()
        self._disk.advance(int(SETTINGS["log.segment.delete.delay.ms"]))
        self.manager.checkpoint_high_watermarks()
        self.manager.shutdown()

    def _kill(self) -> None:
        self.manager.checkpoint_log_start_offsets()
        for log_dir in self.manager.log_dirs:
            log_dir.unlock()

    def do(self, step: dict[str, object]) -> None:
        self._disk.clock.set_time_ms(step["at"])
        match step:
            case {"produce": topic, "records": records}:
                if topic == "append-time":
                    self._disk.clock.set_time_ms(next(self._append_times_ms))
                log = self.log(topic)
                log.append_as_leader(memoryview(bytearray.fromhex(records)), self._epochs[topic])
                log.update_high_watermark(log.log_end_offset)
            case {"delete_records": topic, "offset": offset}:
                self.log(topic).delete_records(offset)
            case {"clean": topic}:
                self.manager.update_topic_config(topic, {**TOPICS[topic], "min.cleanable.dirty.ratio": "0.01"})
                self.manager.start_background_tasks()
                for _ in range(100):  # looking at the logs and putting segments in place go step by step
                    self._disk.advance(1)
            case {"restart": True}:
                self._end()
                self._start()
            case {"leader_epoch": topic, "epoch": epoch}:
                self._epochs[topic] = epoch
                self._lead(topic)


def topic_id(topic: str) -> bytes:
    return uuid_from_text((FILES / f"{topic}-0" / "partition.metadata").read_text().split()[-1])


def append_times_ms() -> Iterator[int]:
    """When Apache Kafka appended the batches that bear that time."""
    for path in sorted(FILES.glob("append-time-0/*.log")):
        for batch in batches(memoryview(path.read_bytes())):
            yield batch.max_timestamp


def replay(path: Path, restart: str) -> Path:
    replaying = Replay(path, restart)
    for step in STEPS:
        replaying.do(step)
    replaying.stop()
    return path


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return replay(tmp_path_factory.mktemp("replayed"), "stop")


@pytest.fixture(scope="module")
def recovered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a kill for each restart: the indexes are built anew from the logs."""
    return replay(tmp_path_factory.mktemp("recovered"), "kill")


def files_of(path: Path, pattern: str = "*") -> dict[str, str]:
    return {file.name: file.read_bytes().hex() for file in path.glob(pattern)}


@pytest.mark.parametrize("topic", TOPICS)
def test_files_of_a_partition(replayed: Path, topic: str) -> None:
    assert files_of(replayed / f"{topic}-0") == files_of(FILES / f"{topic}-0")


@pytest.mark.parametrize("topic", TOPICS)
def test_files_after_a_recovery(recovered: Path, topic: str) -> None:
    """All but what a clean stop writes into an active segment's time index, and the snapshots: a kill takes none."""
    times = [] if topic in ("epochs", "idempotent") else ["*.timeindex"]  # those two go on after the restarts
    for pattern in ("*.log", "*.index", "*checkpoint", "partition.metadata", *times):
        assert files_of(recovered / f"{topic}-0", pattern) == files_of(FILES / f"{topic}-0", pattern)


@pytest.mark.parametrize("name", ["recovery-point", "replication", "log-start", "cleaner"])
def test_checkpoints(replayed: Path, name: str) -> None:
    """Up to the order of their lines, which in Scala is that of a hash."""
    ours, theirs = [(path / f"{name}-offset-checkpoint").read_bytes().splitlines(True) for path in (replayed, FILES)]
    assert ours[:2] == theirs[:2]
    assert sorted(ours[2:]) == sorted(theirs[2:])


def test_mark_of_a_clean_stop(replayed: Path) -> None:
    name = ".kafka_cleanshutdown"
    assert (replayed / name).read_bytes() == (FILES / name).read_bytes()
