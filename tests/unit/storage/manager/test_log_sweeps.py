"""The recurring work: its intervals, and the number of logs per callback."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk import checkpoint_files as checkpoints
from odradek.storage.disk.log_dir import LogDir
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.manager.log_manager import LogManager
from tests.support.disks.logs import NOW, append
from tests.support.disks.managed_logs import Broker, create

A0, B0 = TopicPartition("a", 0), TopicPartition("b", 0)


def test_recurring_work(tmp_path: Path) -> None:
    broker = Broker(tmp_path, flush_check_ms=1000)
    manager = broker.start({"a": {"retention.ms": "1000", "flush.ms": "2000"}})
    create(manager, A0)
    log = manager.get_log(A0)
    assert log is not None
    append(log, b"x", timestamp=NOW, producer_id=1, producer_epoch=0, base_sequence=0)
    log.update_high_watermark(1)
    manager.start_background_tasks()
    broker.disk.advance(29_999)
    assert (log.recovery_point, log.log_start_offset) == (0, 0)
    broker.disk.advance(1)
    assert (log.recovery_point, log.log_start_offset) == (1, 1)
    assert (tmp_path / checkpoints.RECOVERY_POINT_FILE).read_text() == "0\n1\na 0 0\n", "an empty log promises nothing"
    for _ in range(24 * 6):
        broker.disk.advance(600_000)
    assert not log.active_producers()
    manager.shutdown()


def test_sweeps_visit_logs_in_slices(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    manager = broker.start({"a": {"retention.ms": "1"}})
    partitions = [TopicPartition("a", number) for number in range(5)]
    create(manager, *partitions)
    for log in manager.all_logs():
        append(log, b"x", timestamp=NOW)
        log.update_high_watermark(1)
    manager.sweeps.visits.walks.at_once = 2
    manager.start_background_tasks()
    broker.disk.advance(30_000)
    starts = [log.log_start_offset for log in manager.all_logs()]
    assert sum(starts) == 2
    broker.disk.advance(1)
    broker.disk.advance(1)
    assert sum(log.log_start_offset for log in manager.all_logs()) == 5
    manager.shutdown()


def test_sweep_passes_over_logs_that_went_meanwhile(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    manager = broker.start({"a": {"retention.ms": "1"}})
    create(manager, *(TopicPartition("a", number) for number in range(3)))
    logs = manager.all_logs()
    for log in logs:
        append(log, b"x", timestamp=NOW)
        log.update_high_watermark(1)
    manager.sweeps.visits.walks.at_once = 1
    manager.start_background_tasks()
    broker.disk.advance(30_000)
    manager.async_delete(logs[1].topic_partition)
    broker.disk.advance(1)
    broker.disk.advance(1)
    assert [log.log_start_offset for log in logs] == [1, 0, 1]
    manager.shutdown()


def test_nothing_recurs_after_the_end(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    manager = broker.start()
    manager.start_background_tasks()
    broker.disk.advance(30_000)
    manager.shutdown()
    (tmp_path / checkpoints.RECOVERY_POINT_FILE).unlink()
    for _ in range(10):
        broker.disk.advance(60_000)
    assert not (tmp_path / checkpoints.RECOVERY_POINT_FILE).exists()
    assert broker.disk.timer.size == 0


def test_retention_leaves_compacted_logs_to_the_cleaner(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    policies = {"a": "compact", "b": "compact,delete"}
    manager = broker.start(
        {topic: {"cleanup.policy": policy, "retention.ms": "1"} for topic, policy in policies.items()}
    )
    create(manager, A0, B0)
    for log in manager.all_logs():
        append(log, b"x", timestamp=NOW)
        log.update_high_watermark(1)
    broker.disk.advance(1000)
    assert manager.delete_old_segments() == 0
    assert [log.log_start_offset for log in manager.all_logs()] == [0, 0]
    manager.shutdown()


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (UnifiedLog, "delete_old_segments"),
        (UnifiedLog, "remove_expired_producers"),
        (UnifiedLog, "flush"),
        (LogManager, "checkpoint_recovery_points"),
        (LogManager, "checkpoint_log_start_offsets"),
        (LogDir, "check_space"),
    ],
)
def test_one_exception_ends_no_recurring_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    broker = Broker(tmp_path, flush_check_ms=1_000)
    manager = broker.start({"a": {"flush.ms": "1"}})
    create(manager, A0)
    append(manager.all_logs()[0], b"x", timestamp=NOW)
    times_ms: list[int] = []

    def fail(*arguments: object) -> None:
        times_ms.append(broker.disk.clock.monotonic_ms())
        raise ValueError("a bug")

    monkeypatch.setattr(owner, name, fail)
    manager.start_background_tasks()
    with contextlib.suppress(ExceptionGroup):
        broker.disk.advance(30_000)
    for _ in range(3):
        before = len(times_ms)
        with contextlib.suppress(ExceptionGroup):
            broker.disk.advance(600_000)
        assert len(times_ms) > before
    monkeypatch.undo()
    manager.shutdown()
