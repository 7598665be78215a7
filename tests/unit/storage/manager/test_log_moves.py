from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk.log_dir import LogDirError
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.manager.log_manager import LogManager
from tests.support.disks.faulty_disk import FaultyFileSystem, io_error
from tests.support.disks.logs import DeferredIoPool, append, read_all, values_of
from tests.support.disks.managed_logs import Broker, create

A0 = TopicPartition("a", 0)


class Move:
    """A partition with a log of two records in the first directory and a future log of the same in the second."""

    def __init__(self, path: Path, pool: DeferredIoPool | None = None, fs: FaultyFileSystem | None = None) -> None:
        self.first, self.second = path / "1", path / "2"
        self.broker = Broker(self.first, self.second, io_pool=pool, fs=fs)
        self.manager: LogManager = self.broker.start()
        self.current = self.make(self.first, is_future=False)
        append(self.current, b"x", b"y")
        self.current.update_high_watermark(2)
        self.future = self.copy_to(self.second)

    def make(self, path: Path, *, is_future: bool) -> UnifiedLog:
        self.manager.maybe_update_preferred_dir(A0, str(path))
        return self.manager.get_or_create_log(A0, b"\x07" * 16, is_new=not is_future, is_future=is_future)

    def copy_to(self, path: Path) -> UnifiedLog:
        log = self.manager.get_log(A0)
        assert log is not None
        future = self.make(path, is_future=True)
        for segment in log.segments:
            for _, batch in segment.records.batches():
                future.append_as_follower(batch.buffer)
        return future

    def names(self) -> tuple[list[str], list[str]]:
        first, second = (
            sorted(name for name in os.listdir(path) if name.startswith("a-")) for path in (self.first, self.second)
        )
        return first, second


def test_the_future_log_takes_the_name_and_the_high_watermark(tmp_path: Path) -> None:
    move = Move(tmp_path)
    assert move.future.is_future
    assert move.manager.all_logs() == [move.current, move.future]
    assert move.manager.replace_current_with_future(A0) is move.future
    assert move.manager.get_log(A0) is move.future
    assert move.manager.get_log(A0, is_future=True) is None
    assert (move.future.dir, move.future.high_watermark) == (str(move.second / "a-0"), 2)
    first, second = move.names()
    assert second == ["a-0"]
    assert [name.rpartition("-")[2] for name in first] == ["delete"]
    assert move.current.is_closed
    append(move.future, b"z")
    move.manager.shutdown()
    again = Broker(move.first, move.second).start()
    log = again.get_log(A0)
    assert log is not None
    assert values_of(read_all(log)) == [b"x", b"y", b"z"]
    assert log.topic_id == b"\x07" * 16
    again.shutdown()


def test_the_checkpoints_of_both_directories_follow(tmp_path: Path) -> None:
    move = Move(tmp_path)
    move.future.flush()
    move.manager.checkpoint_high_watermarks()
    assert (move.second / "replication-offset-checkpoint").read_text() == "0\n1\na 0 0\n", "a future log has one too"
    move.manager.replace_current_with_future(A0)
    move.manager.checkpoint_high_watermarks()
    assert (move.first / "recovery-point-offset-checkpoint").read_text() == "0\n0\n"
    assert (move.second / "recovery-point-offset-checkpoint").read_text() == "0\n1\na 0 2\n"
    assert (move.first / "replication-offset-checkpoint").read_text() == "0\n0\n"
    assert (move.second / "replication-offset-checkpoint").read_text() == "0\n1\na 0 2\n"
    move.manager.shutdown()


def test_the_high_watermark_of_the_directory_before_the_move_is_ignored(tmp_path: Path) -> None:
    move = Move(tmp_path)
    move.manager.checkpoint_high_watermarks()
    stale = (move.first / "replication-offset-checkpoint").read_bytes()
    move.manager.replace_current_with_future(A0)
    append(move.future, b"z")
    move.future.update_high_watermark(3)
    move.manager.checkpoint_high_watermarks()
    move.manager.shutdown()
    (move.first / "replication-offset-checkpoint").write_bytes(stale)
    for dirs in ((move.first, move.second), (move.second, move.first)):
        again = Broker(*dirs).start()
        log = again.get_log(A0)
        assert log is not None
        assert again.checkpointed_high_watermark(log) == 3
        again.shutdown()


def test_the_old_name_stays_until_the_new_one_is_durable(tmp_path: Path) -> None:
    pool = DeferredIoPool()
    move = Move(tmp_path, pool)
    pool.run_all()
    move.manager.replace_current_with_future(A0)
    append(move.future, b"z")
    assert move.names() == (["a-0"], ["a-0"]), "a start now is refused, as by Apache at the same place"
    assert values_of(read_all(move.current)) == [b"x", b"y"], "reads of the old files continue"
    pool.run_all()
    first, second = move.names()
    assert [name.rpartition("-")[2] for name in first] == ["delete"]
    assert second == ["a-0"]
    move.manager.shutdown()


def changes_of_a_swap(path: Path) -> list[str]:
    fs = FaultyFileSystem()
    move = Move(path / "counted", fs=fs)
    begin = fs.count
    move.manager.replace_current_with_future(A0)
    move.manager.shutdown()
    return fs.operations[begin:]


def test_the_order_on_the_disk(tmp_path: Path) -> None:
    done = changes_of_a_swap(tmp_path)
    [to_plain] = [index for index, name in enumerate(done) if name.startswith("rename a-0.")]
    assert to_plain < done.index("sync dir") < done.index("rename a-0")


@pytest.mark.parametrize("what", ["stop", "delete", "move back", "another move"])
def test_a_change_before_the_new_name_is_synced_deletes_the_old_log_first(tmp_path: Path, what: str) -> None:
    pool = DeferredIoPool()
    move = Move(tmp_path, pool)
    pool.run_all()
    move.manager.replace_current_with_future(A0)
    expected = ([], ["a-0"])
    if what == "delete":
        move.manager.async_delete(A0)
        expected = ([], [])
    elif what != "stop":
        move.copy_to(move.first)
        move.manager.replace_current_with_future(A0)
        expected = (["a-0"], [])
    if what != "move back":
        pool.run_all()
    move.manager.shutdown()
    first, second = move.names()
    assert ([name for name in first if name == "a-0"], [name for name in second if name == "a-0"]) == expected
    pool.run_all()
    again = Broker(move.first, move.second).start()
    log = again.get_log(A0)
    if what != "delete":
        assert log is not None
        assert values_of(read_all(log)) == [b"x", b"y"]
    again.shutdown()


def test_who_waits_for_a_flush_waits_for_that_of_the_new_log(tmp_path: Path) -> None:
    pool = DeferredIoPool()
    move = Move(tmp_path, pool)
    pool.run_all()
    answers: list[OSError | None] = []
    move.current.when_flushed(2, answers.append)
    move.manager.replace_current_with_future(A0)
    assert answers == []
    pool.run_all()
    assert answers == [None]
    assert move.future.recovery_point == 2
    move.manager.shutdown()


def test_a_future_log_that_cannot_be_renamed_leaves_the_current_one(tmp_path: Path) -> None:
    fs = FaultyFileSystem(failure=io_error, for_good=False)
    move = Move(tmp_path, fs=fs)
    fs.fail_at = fs.count + 1
    with pytest.raises(KafkaError) as refused:
        move.manager.replace_current_with_future(A0)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not move.manager.is_log_dir_online(str(move.second))
    assert move.manager.get_log(A0) is move.current
    assert move.manager.get_log(A0, is_future=True) is None
    assert values_of(read_all(move.current)) == [b"x", b"y"]
    move.manager.shutdown()


def test_an_old_directory_that_cannot_be_renamed_takes_nothing_with_it(tmp_path: Path) -> None:
    fs = FaultyFileSystem(failure=io_error, for_good=False)
    move = Move(tmp_path, fs=fs)
    fs.fail_at = fs.count + 1 + changes_of_a_swap(tmp_path).index("rename a-0")
    move.manager.replace_current_with_future(A0)
    assert not move.manager.is_log_dir_online(str(move.first))
    assert move.manager.is_log_dir_online(str(move.second))
    assert values_of(read_all(move.future)) == [b"x", b"y"]
    move.manager.shutdown()
    with pytest.raises(LogDirError, match="Duplicate log directories for a-0"):
        Broker(move.first, move.second).start()


def test_a_name_that_may_be_lost_leaves_the_old_one(tmp_path: Path) -> None:
    fs = FaultyFileSystem(failure=io_error, for_good=False)
    move = Move(tmp_path, fs=fs)
    fs.fail_at = fs.count + 1 + changes_of_a_swap(tmp_path).index("sync dir")
    move.manager.replace_current_with_future(A0)
    assert not move.manager.is_log_dir_online(str(move.second))
    assert move.names() == (["a-0"], ["a-0"])
    assert move.current.is_closed
    move.manager.shutdown()


def test_an_old_directory_that_fails_meanwhile_is_left_alone(tmp_path: Path) -> None:
    pool = DeferredIoPool()
    move = Move(tmp_path, pool)
    pool.run_all()
    move.manager.replace_current_with_future(A0)
    move.current.log_dir.fail("test", OSError(5, "broken"))
    pool.run_all()
    assert move.names() == (["a-0"], ["a-0"])
    assert move.current.is_closed
    assert move.manager.get_log(A0) is move.future
    move.manager.shutdown()


def test_both_logs_have_to_be_there(tmp_path: Path) -> None:
    manager = Broker(tmp_path).start()
    for which in ("current", "future"):
        with pytest.raises(KafkaError, match=f"The {which} replica for a-0 is offline"):
            manager.replace_current_with_future(A0)
        create(manager, A0)
    manager.shutdown()


def test_two_future_logs_stop_the_start(tmp_path: Path) -> None:
    for directory, unique in (("1", "a" * 32), ("2", "b" * 32)):
        (tmp_path / directory / f"a-0.{unique}-future").mkdir(parents=True)
    with pytest.raises(LogDirError, match=r"Duplicate log directories found: .*/2/a-0\.b+-future, .*/1/a-0\.a+-future"):
        Broker(tmp_path / "1", tmp_path / "2").start()


def test_a_deleted_topic_that_was_moved_is_forgotten(tmp_path: Path) -> None:
    move = Move(tmp_path)
    move.manager.update_topic_config("a", {"retention.ms": "7"})
    move.manager.replace_current_with_future(A0)
    assert move.manager.config_of("a").retention_ms == 7
    move.manager.async_delete(A0)
    assert move.manager.config_of("a").retention_ms != 7
    move.manager.shutdown()


def test_how_far_the_log_is_clean_moves_along(tmp_path: Path) -> None:
    move = Move(tmp_path)
    move.manager.cleaner.checkpoints.update(move.current.log_dir, A0, 1)
    move.manager.replace_current_with_future(A0)
    move.manager.shutdown()
    assert (move.first / "cleaner-offset-checkpoint").read_text() == "0\n0\n"
    assert (move.second / "cleaner-offset-checkpoint").read_text() == "0\n1\na 0 1\n"
