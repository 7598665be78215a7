"""cleaner-offset-checkpoint: one file per directory, in Kafka's format."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.cleaning.cleaner_checkpoints import CleanerCheckpoints
from odradek.storage.disk.log_dir import LogDir
from tests.support.disks.logs import Disk

A0, B0 = TopicPartition("a", 0), TopicPartition("b", 0)


class Two:
    """Two directories and the existing logs."""

    def __init__(self, path: Path) -> None:
        self.paths = [path / "1", path / "2"]
        for each in self.paths:
            each.mkdir(exist_ok=True)
        environment = Disk(path).environment
        self.one, self.two = (LogDir(str(each), environment) for each in self.paths)
        self.logs = {A0, B0}
        self.checkpoints = CleanerCheckpoints(self.logs)
        self.checkpoints.load([self.one, self.two])

    def text(self, index: int) -> str:
        return (self.paths[index] / "cleaner-offset-checkpoint").read_text()


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


def test_it_is_written_at_every_change_and_read_at_the_start(two: Two, tmp_path: Path) -> None:
    two.checkpoints.update(two.one, A0, 7)
    two.checkpoints.update(two.two, B0, 9)
    assert [two.text(0), two.text(1)] == ["0\n1\na 0 7\n", "0\n1\nb 0 9\n"]
    again = Two(tmp_path)
    assert again.checkpoints.offset_of(again.one, A0) == 7
    assert again.checkpoints.offset_of(again.two, A0) is None


def test_a_damaged_file_counts_as_empty(two: Two, tmp_path: Path) -> None:
    (two.paths[0] / "cleaner-offset-checkpoint").write_text("0\n2\na 0 7\n")
    again = Two(tmp_path)
    assert again.checkpoints.offset_of(again.one, A0) is None


def test_the_entry_of_a_deleted_log_is_removed_with_the_next_change(two: Two) -> None:
    two.checkpoints.update(two.one, A0, 7)
    two.logs.remove(A0)
    two.checkpoints.update(two.one, B0, 3)
    assert two.text(0) == "0\n1\nb 0 3\n"


def test_removing_an_entry(two: Two) -> None:
    two.checkpoints.update(two.one, A0, 7)
    assert two.checkpoints.remove(two.one, A0) == 7
    assert two.text(0) == "0\n0\n"
    assert two.checkpoints.remove(two.one, A0) is None


@pytest.mark.parametrize(("offset", "expected"), [(6, 6), (7, 7), (8, 7)])
def test_truncation_only_moves_it_down(two: Two, offset: int, expected: int) -> None:
    two.checkpoints.update(two.one, A0, 7)
    two.checkpoints.truncate(two.one, A0, offset)
    assert two.checkpoints.offset_of(two.one, A0) == expected


def test_a_log_without_entry_gets_none_by_truncation(two: Two) -> None:
    two.checkpoints.truncate(two.one, A0, 3)
    assert two.checkpoints.offset_of(two.one, A0) is None


def test_a_failed_directory_is_not_written_to(two: Two) -> None:
    two.checkpoints.update(two.one, A0, 7)
    two.checkpoints.forget_dir(two.one)
    two.checkpoints.update(two.one, A0, 9)
    assert two.text(0) == "0\n1\na 0 7\n"
