"""All logs of a broker: start, creation, deletion, failure, shutdown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk.disk_space import CHECK_EVERY_MS, LogDirFullError
from odradek.storage.disk.log_dir import LogDirError
from tests.support.disks.faulty_disk import FaultyFileSystem, disk_full, io_error
from tests.support.disks.logs import DeferredIoPool, append, read_all, values_of
from tests.support.disks.managed_logs import Broker, create

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_logs_come_back_after_a_clean_stop_without_recovery(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    broker = Broker(tmp_path)
    manager = broker.start()
    create(manager, A0, B0)
    log = manager.get_log(A0)
    assert log is not None
    append(log, b"x", b"y")
    log.update_high_watermark(2)
    manager.checkpoint_high_watermarks()
    manager.shutdown()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n2\na 0 2\nb 0 0\n"
    again = Broker(tmp_path).start()
    log = again.get_log(A0)
    assert log is not None
    assert values_of(read_all(log)) == [b"x", b"y"]
    assert (log.recovery_point, log.topic_id, again.checkpointed_high_watermark(log)) == (2, b"\x07" * 16, 2)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert not caplog.records
    again.shutdown()


def test_logs_are_recovered_after_a_kill(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    manager = broker.start()
    create(manager, A0)
    log = manager.get_log(A0)
    assert log is not None
    append(log, b"x")
    with open(os.path.join(log.dir, "00000000000000000000.log"), "ab") as file:
        file.write(b"torn")
    broker.kill()
    again = Broker(tmp_path).start()
    log = again.get_log(A0)
    assert log is not None
    assert values_of(read_all(log)) == [b"x"]
    assert log.recovery_point == 0
    assert os.path.getsize(os.path.join(log.dir, "00000000000000000000.log")) == log.size
    again.shutdown()


def test_new_logs_go_to_the_directory_with_the_fewest(tmp_path: Path) -> None:
    manager = Broker(tmp_path / "1", tmp_path / "2").start()
    partitions = [TopicPartition("t", n) for n in range(6)]
    create(manager, *partitions)
    counts = [len(manager.logs_in(log_dir)) for log_dir in manager.log_dirs]
    assert counts == [3, 3]
    manager.maybe_update_preferred_dir(A0, str(tmp_path / "2"))
    create(manager, A0)
    log = manager.get_log(A0)
    assert log is not None
    assert log.dir == str(tmp_path / "2" / "a-0")
    manager.shutdown()


def test_deleted_log_is_renamed_at_once_and_removed_later(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    manager = broker.start()
    delay_ms = manager.config_of("a").file_delete_delay_ms
    create(manager, A0)
    log = manager.get_log(A0)
    assert log is not None
    append(log, b"x")
    manager.async_delete(A0)
    assert manager.get_log(A0) is None
    (renamed,) = [name for name in os.listdir(tmp_path) if name.endswith("-delete")]
    assert renamed.startswith("a-0.")
    create(manager, A0)
    fresh = manager.get_log(A0)
    assert fresh is not None
    assert fresh.log_end_offset == 0
    broker.disk.advance(delay_ms)
    assert renamed not in os.listdir(tmp_path)
    assert "a-0" in os.listdir(tmp_path)
    manager.shutdown()


def test_deleted_topics_leave_nothing_behind(tmp_path: Path) -> None:
    manager = Broker(tmp_path).start({"a": {"retention.ms": "5"}})
    create(manager, A0, A1)
    manager.async_delete(A0)
    assert manager.config_of("a").retention_ms == 5, "the other partition is still there"
    manager.async_delete(A1)
    assert manager.config_of("a").retention_ms == 604_800_000
    manager.shutdown()


def test_the_same_partition_in_two_directories_stops_the_start(tmp_path: Path) -> None:
    for directory in ("1", "2"):
        manager = Broker(tmp_path / directory).start()
        create(manager, A0)
        manager.shutdown()
    broker = Broker(tmp_path / "1", tmp_path / "2")
    with pytest.raises(LogDirError, match="Duplicate log directories for a-0 are found in both"):
        broker.start()


def test_config_changes_reach_the_logs(tmp_path: Path) -> None:
    manager = Broker(tmp_path).start({"a": {"retention.ms": "5"}})
    create(manager, A0, B0)
    log = manager.get_log(A0)
    assert log is not None
    assert log.config.retention_ms == 5
    manager.update_topic_config("a", {"max.message.bytes": "10"})
    assert log.config.retention_ms == 604_800_000
    with pytest.raises(KafkaError) as error:
        append(log, b"x")
    assert error.value.code is ErrorCode.MESSAGE_TOO_LARGE
    manager.update_broker_settings({"log.retention.ms": "9"})
    other = manager.get_log(B0)
    assert other is not None
    assert (other.config.retention_ms, log.config.max_message_bytes) == (9, 10)
    manager.shutdown()


def test_a_change_of_one_topic_visits_its_logs_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 10,000 topics, each change would visit 10,000 logs."""
    manager = Broker(tmp_path).start({"a": {"retention.ms": "5"}})
    create(manager, A0, B0)
    monkeypatch.setattr(manager, "all_logs", lambda: pytest.fail("all logs are looked at"))
    log, before = manager.get_log(A0), manager.config_of("a")
    assert log is not None
    manager.update_topic_config("a", {"retention.ms": "5"})
    assert log.config is before, "an unchanged config is not applied again"
    manager.update_topic_config("a", {"retention.ms": "6"})
    assert log.config.retention_ms == 6
    monkeypatch.undo()
    manager.shutdown()


def test_new_defaults_reach_many_logs_some_at_a_time(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    manager = broker.start()
    create(manager, A0, B0)
    manager.sweeps.visits.walks.at_once = 1
    manager.update_broker_settings({"log.retention.ms": "9"})
    times = sorted(log.config.retention_ms for log in manager.all_logs())
    assert times == [9, 604_800_000]
    broker.disk.advance(1)
    assert [log.config.retention_ms for log in manager.all_logs()] == [9, 9]
    manager.shutdown()


def test_failed_directory_takes_its_logs_along_and_no_others(tmp_path: Path) -> None:
    manager = Broker(tmp_path / "1", tmp_path / "2").start()
    create(manager, A0, A1)
    told: list[list[TopicPartition]] = []
    manager.on_log_dir_failure = lambda _, partitions: told.append(partitions)
    first, second = manager.log_dirs
    (gone,) = [log.topic_partition for log in manager.logs_in(first)]
    first.fail("test", OSError(5, "Input/output error"))
    assert told == [[gone]]
    assert manager.get_log(gone) is None
    assert [log.log_dir for log in manager.all_logs()] == [second]
    with pytest.raises(KafkaError) as error:
        manager.get_or_create_log(gone)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR, "it may lie in the directory that is offline"
    create(manager, B0)
    manager.shutdown()
    assert not (tmp_path / "1" / ".kafka_cleanshutdown").exists()
    assert (tmp_path / "2" / ".kafka_cleanshutdown").exists()


def test_broker_without_a_usable_directory_does_not_start(tmp_path: Path) -> None:
    first = Broker(tmp_path)
    first.start()
    with pytest.raises(LogDirError, match="Failed to acquire lock"):
        Broker(tmp_path).start()
    first.manager.shutdown()


def test_shutdown_before_the_start_touches_nothing(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    create(broker.start(), A0)
    broker.manager.checkpoint_recovery_points()
    broker.kill()
    before = sorted(os.listdir(tmp_path))
    again = Broker(tmp_path).manager
    again.lock_dirs()
    again.shutdown()
    assert sorted(os.listdir(tmp_path)) == before, "in particular no clean-shutdown marker"
    Broker(tmp_path).start().shutdown()


def restarted_with_leader(path: Path, epoch: int, *, clean: bool) -> list[str]:
    """The changes of small files by a start where the same leader as before leads logs without records."""
    broker = Broker(path)
    manager = broker.start()
    create(manager, A0, A1, B0)
    for log in manager.all_logs():
        log.assign_epoch_start_offset(3, 0)
    manager.shutdown() if clean else broker.kill()
    fs = FaultyFileSystem(kinds=frozenset({"write", "rename", "sync", "unlink"}))
    again = Broker(path, fs=fs).start()
    for log in again.all_logs():
        assert log.latest_epoch == -1, "an epoch that begins at the end of the log is forgotten"
        log.assign_epoch_start_offset(epoch, 0)
        log.assign_topic_id(b"\x07" * 16)
    answers: list[object] = []
    again.when_durable(answers.append)
    assert answers == [None]
    for log in again.all_logs():
        with open(os.path.join(log.dir, "leader-epoch-checkpoint"), encoding="utf-8") as file:
            assert file.read() == f"0\n1\n{epoch} 0\n"
    done = list(fs.operations)
    again.shutdown()
    return done


@pytest.mark.parametrize(("clean", "done"), [(False, []), (True, ["unlink .kafka_cleanshutdown", "sync dir"])])
def test_a_start_writes_no_epochs_that_are_on_the_disk(tmp_path: Path, clean: bool, done: list[str]) -> None:
    assert restarted_with_leader(tmp_path, 3, clean=clean) == done


def test_a_start_writes_the_epochs_of_another_leader(tmp_path: Path) -> None:
    assert "write leader-epoch-checkpoint.tmp" in restarted_with_leader(tmp_path, 4, clean=False)


def test_epochs_that_a_start_has_cut_are_written_with_what_is_written_next(tmp_path: Path) -> None:
    """A log may continue in an older epoch, which changes no entry: the removed one must not return afterwards."""
    broker = Broker(tmp_path)
    create(broker.start(), A0, B0)
    for log in broker.manager.all_logs():
        log.assign_epoch_start_offset(3, 0)
    broker.kill()
    io_pool = DeferredIoPool()
    again = Broker(tmp_path, io_pool=io_pool).start()
    assert not io_pool.pending
    cut, led = again.get_log(A0), again.get_log(B0)
    assert cut is not None
    assert led is not None
    led.assign_epoch_start_offset(4, 0)
    cut.assign_epoch_start_offset(3, 0)  # too late: the file without the epoch is being written
    io_pool.run_one()
    checkpoint = tmp_path / "a-0" / "leader-epoch-checkpoint"
    assert checkpoint.read_text() == "0\n0\n"
    io_pool.run_all()
    assert checkpoint.read_text() == "0\n1\n3 0\n"
    again.shutdown()


def test_when_durable_waits_for_all_directories(tmp_path: Path) -> None:
    pool = DeferredIoPool()
    manager = Broker(tmp_path / "1", tmp_path / "2", io_pool=pool).start()
    create(manager, A0, B0)
    answers: list[OSError | None] = []
    manager.when_durable(answers.append)
    for log_dir in manager.log_dirs:
        assert answers == []
        while not log_dir.sync_queue.is_idle:
            pool.run_one()
    pool.run_all()
    assert answers == [None]
    manager.shutdown()


def test_a_preferred_directory_that_is_offline_is_not_replaced_by_another(tmp_path: Path) -> None:
    manager = Broker(tmp_path / "1", tmp_path / "2").start()
    manager.maybe_update_preferred_dir(A0, str(tmp_path / "2"))
    manager.log_dirs[1].fail("test", OSError(5, "broken"))
    with pytest.raises(KafkaError) as refused:
        create(manager, A0)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    create(manager, B0)
    manager.shutdown()


def test_future_logs_count_for_the_placement_of_a_new_log(tmp_path: Path) -> None:
    manager = Broker(tmp_path / "1", tmp_path / "2").start()
    create(manager, A0)
    assert manager.get_log(A0).dir.startswith(str(tmp_path / "1"))  # type: ignore[union-attr]
    manager.maybe_update_preferred_dir(A0, str(tmp_path / "2"))
    manager.get_or_create_log(A0, is_future=True)
    create(manager, B0, TopicPartition("b", 1), TopicPartition("b", 2))
    assert [len(manager.logs_in(log_dir)) for log_dir in manager.log_dirs] == [3, 2]
    manager.shutdown()


def test_when_durable_waits_for_new_logs(tmp_path: Path) -> None:
    pool = DeferredIoPool()
    manager = Broker(tmp_path / "1", tmp_path / "2", io_pool=pool).start()
    create(manager, A0, A1)
    answers: list[OSError | None] = []
    manager.when_durable(answers.append)
    pool.run_one()
    assert not answers
    pool.run_all()
    assert answers == [None]
    assert (tmp_path / "1" / "a-0" / "partition.metadata").exists()
    manager.shutdown()


def test_partition_that_was_being_moved_to_a_failed_directory_stays_online(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "1", tmp_path / "2")
    create(broker.start(), A0)
    (source,) = [log_dir for log_dir in broker.manager.log_dirs if broker.manager.logs_in(log_dir)]
    (target,) = [log_dir for log_dir in broker.manager.log_dirs if log_dir is not source]
    broker.manager.shutdown()
    os.makedirs(target.file("a-0." + "0" * 32 + "-future"))
    again = Broker(tmp_path / "1", tmp_path / "2")
    manager = again.start()
    assert manager.get_log(A0, is_future=True) is not None
    told: list[list[TopicPartition]] = []
    manager.on_log_dir_failure = lambda _, partitions: told.append(partitions)
    manager.get_log(A0, is_future=True).log_dir.fail("test", OSError(5, "Input/output error"))  # type: ignore[union-attr]
    assert told == [[]]
    assert manager.get_log(A0, is_future=True) is None
    log = manager.get_log(A0)
    assert log is not None
    append(log, b"a")
    manager.shutdown()


def test_start_beside_a_directory_that_cannot_be_used(tmp_path: Path) -> None:
    """The directory is offline, and logs that may be in it are not created elsewhere."""
    (tmp_path / "1").touch()
    manager = Broker(tmp_path / "2", tmp_path / "1").start()
    good, bad = manager.log_dirs
    assert (good.is_online, bad.is_online) == (True, False)
    with pytest.raises(KafkaError) as error:
        manager.get_or_create_log(A0)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    create(manager, A0)
    manager.shutdown()
    assert (tmp_path / "2" / ".kafka_cleanshutdown").exists()


def test_no_usable_directory_at_all_refuses_the_start(tmp_path: Path) -> None:
    (tmp_path / "1").touch()
    with pytest.raises(LogDirError, match="None of the log directories can be used"):
        Broker(tmp_path / "1").start()


def test_checkpoints_of_a_failed_directory_stay_as_they_are(tmp_path: Path) -> None:
    manager = Broker(tmp_path).start()
    create(manager, A0)
    log = manager.get_log(A0)
    assert log is not None
    append(log, b"a")
    log.update_high_watermark(1)
    log.flush()
    names = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", "log-start-offset-checkpoint")

    def write_all() -> None:
        manager.checkpoint_recovery_points()
        manager.checkpoint_high_watermarks()
        manager.checkpoint_log_start_offsets()

    write_all()
    before = [(tmp_path / name).read_bytes() for name in names]
    manager.log_dirs[0].fail("test", OSError(5, "Input/output error"))
    write_all()
    manager.shutdown()
    assert [(tmp_path / name).read_bytes() for name in names] == before
    assert before[:2] == [b"0\n1\na 0 1\n"] * 2


@pytest.mark.parametrize("kind", ["make", "create"])
def test_log_that_finds_no_space_leaves_no_files(tmp_path: Path, kind: str) -> None:
    fs = FaultyFileSystem(kinds=frozenset({kind}))
    manager = Broker(tmp_path, fs=fs).start()
    fs.fail_at, fs.failure = fs.count + 1, disk_full
    with pytest.raises(LogDirFullError):
        create(manager, A0)
    assert manager.log_dirs[0].is_online
    assert not (tmp_path / "a-0").exists()
    fs.mend()
    create(manager, A0)
    manager.shutdown()


def test_failing_creation_takes_the_directory_offline(tmp_path: Path) -> None:
    fs = FaultyFileSystem(kinds=frozenset({"create"}))
    manager = Broker(tmp_path / "1", tmp_path / "2", fs=fs).start()
    fs.fail_at, fs.failure, fs.for_good = fs.count + 1, io_error, False
    create(manager, A0)
    (live,) = manager.live_log_dirs
    assert [log.topic_partition for log in manager.logs_in(live)] == [A0]
    manager.shutdown()


def test_new_logs_go_where_there_is_room(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "1", tmp_path / "2")
    manager = broker.start()
    full, other = manager.log_dirs
    full.space.ran_out(OSError(28, "No space left on device"))
    create(manager, A0, A1)
    assert len(manager.logs_in(other)) == 2
    manager.start_background_tasks()
    broker.disk.advance(CHECK_EVERY_MS)
    assert not full.space.is_full, "the recurring check has found space"
    create(manager, B0)
    assert len(manager.logs_in(full)) == 1
    other.space.ran_out(OSError(28, "No space left on device"))
    full.space.ran_out(OSError(28, "No space left on device"))
    create(manager, TopicPartition("c", 0))
    manager.shutdown()
