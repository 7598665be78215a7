"""The offset checkpoints: their content, when they are written, and how a start reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk import checkpoint_files as checkpoints
from odradek.storage.log import log_checkpoints
from tests.support.disks.logs import DeferredIoPool, Disk, append
from tests.support.disks.managed_logs import Broker, create

A0, B0 = TopicPartition("a", 0), TopicPartition("b", 0)


def test_log_start_is_checkpointed_where_it_lies_inside_a_segment(tmp_path: Path) -> None:
    manager = Broker(tmp_path).start()
    create(manager, A0, B0)
    log = manager.get_log(A0)
    assert log is not None
    append(log, b"x", b"y", b"z")
    log.update_high_watermark(3)
    log.delete_records(2)
    manager.checkpoint_log_start_offsets()
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\na 0 2\n"
    manager.shutdown()
    again = Broker(tmp_path).start()
    log = again.get_log(A0)
    assert log is not None
    assert log.log_start_offset == 2
    again.shutdown()


def test_truncation_checkpoints_the_recovery_point(tmp_path: Path) -> None:
    manager = Broker(tmp_path).start()
    create(manager, A0)
    log = manager.get_log(A0)
    assert log is not None
    append(log, b"x")
    append(log, b"y")
    log.flush()
    manager.truncate_to({A0: 1, B0: 5})
    assert (tmp_path / checkpoints.RECOVERY_POINT_FILE).read_text() == "0\n1\na 0 1\n"
    manager.truncate_fully_and_start_at(A0, 10)
    assert (tmp_path / checkpoints.RECOVERY_POINT_FILE).read_text() == "0\n1\na 0 0\n"
    append(log, b"x")
    log.flush()
    manager.checkpoint_recovery_points()
    assert (tmp_path / checkpoints.RECOVERY_POINT_FILE).read_text() == "0\n1\na 0 11\n"
    manager.shutdown()


def test_truncation_checkpoints_a_log_start_that_has_moved_back(tmp_path: Path) -> None:
    manager = Broker(tmp_path).start()
    create(manager, A0)
    log = manager.get_log(A0)
    assert log is not None
    append(log, b"w")
    append(log, b"x", b"y", b"z")
    log.update_high_watermark(4)
    log.delete_records(2)
    manager.checkpoint_log_start_offsets()
    manager.truncate_to({A0: 1})
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\na 0 1\n"
    manager.shutdown()


def test_a_start_checkpoints_recovery_points_of_logs_that_end_before_them(tmp_path: Path) -> None:
    manager = Broker(tmp_path).start()
    create(manager, A0)
    manager.shutdown()
    (tmp_path / ".kafka_cleanshutdown").unlink()
    (tmp_path / checkpoints.RECOVERY_POINT_FILE).write_text("0\n1\na 0 5\n")
    manager = Broker(tmp_path).start()
    assert (tmp_path / checkpoints.RECOVERY_POINT_FILE).read_text() == "0\n1\na 0 0\n"
    manager.shutdown()


def test_a_log_that_is_closed_meanwhile_is_not_cut(tmp_path: Path) -> None:
    pool = DeferredIoPool()
    manager = Broker(tmp_path, io_pool=pool).start()
    create(manager, A0)
    pool.run_all()
    log = manager.get_log(A0)
    assert log is not None
    append(log, b"x")
    log.flush()
    pool.run_all()
    answers: list[OSError | None] = []
    manager.when_cuttable(log, 0, answers.append)
    assert not answers
    manager.shutdown()
    pool.run_all()
    assert [type(answer) for answer in answers] == [FileNotFoundError]


def test_high_watermarks_come_back(tmp_path: Path) -> None:
    manager = Broker(tmp_path).start()
    create(manager, A0, B0)
    log = manager.get_log(A0)
    assert log is not None
    append(log, b"x", b"y")
    log.update_high_watermark(1)
    log_checkpoints.queue_high_watermarks(log.log_dir, lambda: [log])
    assert (tmp_path / checkpoints.HIGH_WATERMARK_FILE).read_text() == "0\n1\na 0 1\n"
    assert log_checkpoints.read(log.log_dir, checkpoints.HIGH_WATERMARK_FILE) == {A0: 1}
    manager.shutdown()


def test_last_ones_take_the_place_of_what_is_queued(tmp_path: Path) -> None:
    pool = DeferredIoPool()
    manager = Broker(tmp_path, io_pool=pool).start()
    create(manager, A0)
    log = manager.get_log(A0)
    assert log is not None
    append(log, b"x")
    manager.checkpoint_recovery_points()
    manager.shutdown()
    assert (tmp_path / checkpoints.RECOVERY_POINT_FILE).read_text() == "0\n1\na 0 1\n"
    pool.run_all()
    assert (tmp_path / checkpoints.RECOVERY_POINT_FILE).read_text() == "0\n1\na 0 1\n", "not the one from before"


@pytest.mark.parametrize("content", [None, b"", b"7\n0\n", b"0\n2\na 0 1\n", b"\xff"])
def test_missing_and_damaged_ones_are_empty(tmp_path: Path, content: bytes | None) -> None:
    log_dir = Disk(tmp_path).log_dir
    if content is not None:
        (tmp_path / checkpoints.RECOVERY_POINT_FILE).write_bytes(content)
    assert log_checkpoints.read(log_dir, checkpoints.RECOVERY_POINT_FILE) == {}
