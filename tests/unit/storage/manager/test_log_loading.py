"""The handling of directories at start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk import checkpoint_files as checkpoints
from odradek.storage.disk.log_dir import LogDirError
from odradek.storage.manager.log_loading import stored_logs, take_last_stop
from tests.support.disks.logs import Disk, append
from tests.support.disks.managed_logs import Broker, create

A0, B0 = TopicPartition("a", 0), TopicPartition("b", 0)


def test_deletion_interrupted_by_a_stop_continues_at_the_next_start(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    manager = broker.start()
    create(manager, A0)
    manager.async_delete(A0)
    manager.shutdown()
    broker.disk.advance(100_000)
    assert [name for name in os.listdir(tmp_path) if name.endswith("-delete")]
    again = Broker(tmp_path)
    again.start()
    assert again.manager.get_log(A0) is None
    again.disk.advance(60_000)
    assert not [name for name in os.listdir(tmp_path) if name.endswith("-delete")]
    again.manager.shutdown()


def test_stray_logs_are_ignored(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    manager = broker.start()
    create(manager, A0)
    manager.shutdown()
    (tmp_path / "a-0").rename(tmp_path / f"a-0.{'0' * 32}-stray")
    again = Broker(tmp_path)
    again.start()
    again.disk.advance(10**9)
    (stray,) = [name for name in os.listdir(tmp_path) if name.endswith("-stray")]
    assert again.manager.all_logs() == []
    assert stray.startswith("a-0.")
    again.manager.shutdown()


def test_directory_that_is_no_log_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    broker = Broker(tmp_path)
    with pytest.raises(LogDirError, match=r"lost\+found.*not in the form of topic-partition"):
        broker.start()
    (tmp_path / "lost+found").rmdir()
    Broker(tmp_path).start().shutdown()  # the failed start has released the lock


def test_files_and_known_directories_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "remote-log-index-cache").mkdir()
    (tmp_path / "some-file-0").touch()
    manager = Broker(tmp_path).start()
    assert manager.all_logs() == []
    manager.shutdown()


def test_damaged_checkpoints_only_mean_more_recovery(tmp_path: Path) -> None:
    manager = Broker(tmp_path).start()
    create(manager, A0)
    manager.shutdown()
    (tmp_path / checkpoints.RECOVERY_POINT_FILE).write_text("rubbish")
    (tmp_path / checkpoints.LOG_START_OFFSET_FILE).write_text("0\n9\n")
    again = Broker(tmp_path).start()
    assert again.get_log(A0) is not None
    again.shutdown()


def test_lost_partition_metadata_takes_the_directory_offline(tmp_path: Path) -> None:
    for directory in ("1", "2"):
        manager = Broker(tmp_path / directory).start()
        create(manager, A0 if directory == "1" else B0)
        manager.shutdown()
    (tmp_path / "1" / "a-0" / "partition.metadata").write_bytes(b"")
    manager = Broker(tmp_path / "1", tmp_path / "2").start()
    assert [log.topic_partition for log in manager.all_logs()] == [B0]
    assert [log_dir.is_online for log_dir in manager.log_dirs] == [False, True]
    manager.shutdown()


def test_log_damaged_after_a_clean_stop_stops_the_start_in_one_sentence(tmp_path: Path) -> None:
    manager = Broker(tmp_path).start()
    create(manager, A0)
    log = manager.get_log(A0)
    assert log is not None
    append(log, b"x")
    manager.shutdown()
    path = tmp_path / "a-0" / "00000000000000000000.log"
    path.write_bytes(b"\0" * 100)
    with pytest.raises(LogDirError, match=r"a-0 cannot be loaded: Found record size 0"):
        Broker(tmp_path).start()


def test_name_of_a_directory_says_what_it_holds(tmp_path: Path) -> None:
    uuid = "0" * 32
    for name in ("b-0", f"a-0.{uuid}-delete", f"a-0.{uuid}-future", f"a-0.{uuid}-stray"):
        (tmp_path / name).mkdir()
    found = list(stored_logs(Disk(tmp_path).log_dir))
    assert [(stored.topic_partition, stored.marker) for stored in found] == [
        (A0, "-delete"),
        (A0, "-future"),
        (A0, "-stray"),
        (B0, ""),
    ]
    assert found[-1].path == str(tmp_path / "b-0")


def test_clean_stop_is_valid_once(tmp_path: Path) -> None:
    manager = Broker(tmp_path).start()
    create(manager, A0)
    manager.checkpoint_high_watermarks()
    manager.shutdown()
    log_dir = Disk(tmp_path).log_dir
    first, second = take_last_stop(log_dir), take_last_stop(log_dir)
    assert (first.was_clean, second.was_clean) == (True, False)
    assert first.recovery_points == second.recovery_points == {A0: 0}
    assert first.high_watermarks == {A0: 0}
