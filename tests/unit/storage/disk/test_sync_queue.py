"""Small files reach the disk in batches; callbacks come after, in order, once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.storage.disk.file_system import OsFileSystem
from odradek.storage.disk.sync_queue import SyncQueue
from tests.support.disks.faulty_disk import NEEDS_ROOM, SYNCS, FaultyFileSystem, disk_full, too_many_files
from tests.support.disks.logs import DeferredIoPool


class FailingFs(OsFileSystem):
    """Fails every fsync."""

    __slots__ = ()

    def write_file(self, path: str, content: bytes, *, sync: bool = False) -> None:
        raise OSError(5, "Input/output error")


class Setup:
    def __init__(self, path: Path, fs: OsFileSystem | None = None) -> None:
        self.path = path
        self.pool = DeferredIoPool()
        self.failures: list[OSError] = []
        self.queue = SyncQueue(fs or OsFileSystem(), self.pool, self.failures.append)
        self.events: list[object] = []

    def file(self, name: str) -> str:
        return str(self.path / name)

    def when_durable(self, name: str) -> None:
        self.queue.when_durable(lambda error: self.events.append((name, error)))


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(tmp_path)


def test_idle_queue_answers_at_once(setup: Setup) -> None:
    setup.when_durable("a")
    assert setup.events == [("a", None)]
    assert setup.queue.is_idle


def test_what_can_wait_is_stored_with_the_next_batch(setup: Setup) -> None:
    setup.queue.write_later(setup.file("a"), b"1")
    setup.queue.write_later(setup.file("b"), b"2")
    assert not setup.pool.pending
    assert setup.queue.withdraw(setup.file("b"))
    assert not setup.queue.withdraw(setup.file("b"))
    setup.when_durable("a")
    assert not setup.queue.withdraw(setup.file("a")), "it is under way"
    setup.pool.run_all()
    assert setup.events == [("a", None)]
    assert [path.name for path in setup.path.iterdir()] == ["a"]


def test_nobody_waits_for_what_was_withdrawn(setup: Setup) -> None:
    setup.queue.write_later(setup.file("a"), b"1")
    setup.queue.withdraw(setup.file("a"))
    setup.when_durable("nothing")
    assert setup.events == [("nothing", None)]


def test_a_function_is_asked_once_when_its_file_is_about_to_be_stored(setup: Setup) -> None:
    asked: list[int] = []
    now = 1

    def content() -> bytes:
        asked.append(now)
        return b"%d" % now

    setup.queue.write(setup.file("other"), b"on its way")
    setup.queue.write(setup.file("a"), content)
    setup.queue.write(setup.file("a"), content)
    assert not asked, "the queue still gathers"
    now = 2
    setup.pool.run_all()
    assert asked == [2]
    assert (setup.path / "a").read_bytes() == b"2"


def test_a_function_is_asked_by_a_drain_too(setup: Setup) -> None:
    setup.queue.write(setup.file("other"), b"on its way")
    setup.queue.write(setup.file("a"), lambda: b"last words")
    setup.queue.drain()
    assert (setup.path / "a").read_bytes() == b"last words"


def test_callback_waits_for_what_was_queued_before_it(setup: Setup) -> None:
    setup.queue.write(setup.file("a"), b"1")
    setup.queue.write(setup.file("b"), b"1")  # the first batch is being stored already
    setup.when_durable("both")
    setup.pool.run_one()
    assert not setup.events
    assert (setup.path / "a").read_bytes() == b"1"
    assert not (setup.path / "b").exists()
    setup.pool.run_all()
    assert setup.events == [("both", None)]
    assert (setup.path / "b").read_bytes() == b"1"
    assert not list(setup.path.glob("*.tmp"))


def test_callback_for_the_batch_under_way_alone_waits_for_it(setup: Setup) -> None:
    setup.queue.write(setup.file("a"), b"1")
    setup.when_durable("a")
    setup.pool.run_one()
    assert setup.events == [("a", None)]


def test_a_file_queued_often_is_written_once_with_its_last_content(setup: Setup) -> None:
    setup.queue.write(setup.file("other"), b"")
    for value in range(50):
        setup.queue.write(setup.file("a"), b"%d" % value)
    assert setup.pool.run_all() == 2
    assert (setup.path / "a").read_bytes() == b"49"


def test_forgotten_directory_is_not_written(setup: Setup) -> None:
    (setup.path / "log").mkdir()
    setup.queue.write(setup.file("other"), b"")
    setup.queue.write(setup.file("log/epochs"), b"x")
    setup.queue.sync_dir(setup.file("log"))
    assert setup.queue.forget_dir(setup.file("log")) == ["epochs"]
    setup.when_durable("done")
    setup.pool.run_all()
    assert not (setup.path / "log" / "epochs").exists()
    assert setup.events == [("done", None)]


def test_directory_renamed_while_its_file_is_on_the_way_is_no_failure(setup: Setup) -> None:
    (setup.path / "log").mkdir()
    setup.queue.write(setup.file("log/epochs"), b"x")
    os.rename(setup.file("log"), setup.file("renamed"))
    setup.when_durable("done")
    setup.pool.run_all()
    assert setup.events == [("done", None)]
    assert not setup.failures


def test_all_callbacks_get_the_failure_and_it_is_final(tmp_path: Path) -> None:
    setup = Setup(tmp_path, FailingFs())
    setup.queue.write(setup.file("a"), b"1")
    setup.when_durable("first")
    setup.queue.write(setup.file("b"), b"1")
    setup.when_durable("second")
    setup.pool.run_all()
    (failure,) = setup.failures
    assert setup.events == [("first", failure), ("second", failure)]
    setup.queue.write(setup.file("c"), b"1")
    setup.when_durable("third")
    assert setup.events[-1] == ("third", failure)
    assert not setup.pool.pending, "nothing is tried again on a disk that lost a write"


def test_descriptors_given_are_closed(setup: Setup) -> None:
    fd = os.open(setup.file("a"), os.O_RDWR | os.O_CREAT)
    setup.queue.sync_fd(fd)
    setup.pool.run_all()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_a_file_is_cut_before_anything_else_is_stored(setup: Setup) -> None:
    cut_when: list[list[str]] = []
    fd = os.open(setup.file("cut"), os.O_CREAT | os.O_RDWR)
    setup.queue.write_later(setup.file("a"), b"1")
    setup.queue.sync_fd(fd, lambda given: cut_when.append([str(given == fd), *sorted(os.listdir(setup.path))]))
    setup.queue.write(setup.file("b"), b"2")
    assert not cut_when
    setup.pool.run_all()
    assert cut_when == [["True", "cut"]]


def test_drain_stores_what_is_queued(setup: Setup) -> None:
    setup.queue.write(setup.file("a"), b"1")
    setup.queue.write(setup.file("b"), b"2")
    setup.when_durable("done")
    setup.queue.drain()
    assert (setup.path / "b").read_bytes() == b"2"
    assert setup.events == [("done", None)]


def test_drain_overtakes_a_worker_that_has_not_begun(setup: Setup) -> None:
    setup.queue.write(setup.file("a"), b"old")
    setup.queue.write(setup.file("a"), b"new")
    setup.queue.drain()
    assert (setup.path / "a").read_bytes() == b"new"
    setup.pool.run_all()
    assert (setup.path / "a").read_bytes() == b"new", "the late worker must not bring the old content back"
    assert setup.queue.is_idle


class TestNoSpace:
    """A file that finds no space stays queued; a file whose fsync fails is dropped."""

    def setup_on(self, path: Path, kinds: frozenset[str]) -> Setup:
        setup = Setup(path)
        self.full: list[OSError] = []
        self.fs = FaultyFileSystem(1, disk_full, kinds=kinds)
        setup.queue = SyncQueue(self.fs, setup.pool, setup.failures.append, self.full.append)
        return setup

    def test_file_is_kept_and_written_when_there_is_room(self, tmp_path: Path) -> None:
        setup = self.setup_on(tmp_path, NEEDS_ROOM)
        setup.queue.write(setup.file("a"), b"1")
        setup.when_durable("a")
        assert setup.pool.run_all() == 2, "once more for a new callback, but not for ever"
        assert setup.events == [("a", self.full[1])]
        assert not setup.failures
        assert not list(setup.path.iterdir()), "no half file is left"
        assert not setup.queue.is_idle
        self.fs.mend()
        setup.queue.retry()
        setup.pool.run_all()
        assert (setup.path / "a").read_bytes() == b"1"
        assert setup.queue.is_idle
        setup.queue.retry()
        assert not setup.pool.pending

    def test_next_change_tries_again_too(self, tmp_path: Path) -> None:
        setup = self.setup_on(tmp_path, NEEDS_ROOM)
        setup.queue.write(setup.file("a"), b"old")
        setup.queue.write(setup.file("b"), b"1")
        setup.pool.run_all()
        self.fs.mend()
        setup.queue.write(setup.file("a"), b"new")
        setup.pool.run_all()
        assert [(setup.path / name).read_bytes() for name in "ab"] == [b"new", b"1"]

    def test_kept_content_gives_way_to_what_was_queued_meanwhile(self, tmp_path: Path) -> None:
        setup = self.setup_on(tmp_path, NEEDS_ROOM)
        setup.queue.write(setup.file("a"), b"old")
        setup.queue.write(setup.file("a"), b"new")
        setup.when_durable("new")
        setup.pool.run_one()
        self.fs.mend()
        setup.pool.run_all()
        assert (setup.path / "a").read_bytes() == b"new"
        assert setup.events == [("new", None)]

    def test_kept_file_of_a_deleted_log_is_forgotten(self, tmp_path: Path) -> None:
        setup = self.setup_on(tmp_path, NEEDS_ROOM)
        (tmp_path / "log").mkdir()
        setup.queue.write(setup.file("log/epochs"), b"1")
        setup.pool.run_all()
        self.fs.mend()
        assert setup.queue.forget_dir(setup.file("log")) == ["epochs"]
        assert setup.queue.is_idle

    def test_drain_tells(self, tmp_path: Path) -> None:
        setup = self.setup_on(tmp_path, NEEDS_ROOM)
        setup.queue.write(setup.file("a"), b"1")
        with pytest.raises(OSError, match="No space left"):
            setup.queue.drain()

    def test_fsync_without_space_is_a_failure(self, tmp_path: Path) -> None:
        setup = self.setup_on(tmp_path, SYNCS)
        setup.queue.write(setup.file("a"), b"1")
        setup.pool.run_all()
        assert len(setup.failures) == 1
        assert not self.full


def test_failed_queue_takes_nothing(setup: Setup) -> None:
    failure = OSError(5, "Input/output error")
    queued, late = (os.open(setup.file(name), os.O_RDWR | os.O_CREAT) for name in "ab")
    setup.queue.write(setup.file("other"), b"on its way")
    setup.queue.sync_fd(queued)
    setup.queue.fail(failure)
    setup.queue.sync_fd(late)
    setup.queue.write(setup.file("c"), b"1")
    for fd in (queued, late):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)
    setup.pool.run_all()
    assert not (setup.path / "c").exists()


def test_file_under_way_is_not_for_the_next_directory_of_that_name(setup: Setup) -> None:
    """A topic is deleted and created again while the small files of the first one are being stored."""
    (setup.path / "log").mkdir()
    setup.queue.write(setup.file("log/partition.metadata"), b"old")
    setup.queue.forget_dir(setup.file("log"))
    os.rename(setup.file("log"), setup.file("deleted"))
    (setup.path / "log").mkdir()
    setup.when_durable("done")
    setup.pool.run_all()
    assert not (setup.path / "log" / "partition.metadata").exists()
    assert setup.events == [("done", None)]
    setup.queue.write(setup.file("log/partition.metadata"), b"new")
    setup.pool.run_all()
    assert (setup.path / "log" / "partition.metadata").read_bytes() == b"new"
    assert not list((setup.path / "log").glob("*.tmp"))
    assert not setup.failures


@pytest.mark.parametrize("kinds", [NEEDS_ROOM, SYNCS], ids=["open", "sync"])
def test_too_many_open_files_are_no_failure_and_everything_is_stored_later(
    tmp_path: Path, kinds: frozenset[str]
) -> None:
    fs = FaultyFileSystem(1, too_many_files, kinds=kinds)
    setup = Setup(tmp_path, fs)  # type: ignore[arg-type]
    setup.queue.write(setup.file("a"), b"content")
    setup.queue.sync_dir(setup.file("."))
    setup.when_durable("first")
    setup.pool.run_all()
    ((_, error),) = setup.events
    assert isinstance(error, OSError)
    assert setup.failures == []
    assert not list(tmp_path.iterdir())
    fs.mend()
    setup.queue.retry()
    setup.when_durable("second")
    setup.pool.run_all()
    assert setup.events[1:] == [("second", None)]
    assert (tmp_path / "a").read_bytes() == b"content"
    assert setup.queue.is_idle


def test_a_content_that_cannot_be_put_together_keeps_no_other_file_from_the_disk(setup: Setup) -> None:
    def content() -> bytes:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        setup.queue.write(setup.file("bad"), content)
    setup.queue.write(setup.file("good"), b"good")
    setup.pool.run_all()
    assert (setup.path / "good").read_bytes() == b"good"
    assert setup.queue.is_idle
