from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk.log_dir import LogDir
from odradek.storage.manager.log_placement import PREFERRED_MAX, LogPlacement
from tests.support.disks.logs import Disk

TP = TopicPartition("t", 0)


@pytest.fixture
def dirs(tmp_path: Path) -> list[LogDir]:
    environment = Disk(tmp_path).environment
    return [LogDir(str(tmp_path / name), environment) for name in "abc"]


def test_the_fewest_and_then_the_first(dirs: list[LogDir]) -> None:
    a, b, c = dirs
    placement = LogPlacement(dirs)
    assert placement.dirs_for(TP, [])[0] is a
    assert placement.dirs_for(TP, [a])[0] is b
    assert placement.dirs_for(TP, [a, b, b])[0] is c
    assert placement.dirs_for(TP, [a, a, b, c])[0] is b
    assert placement.dirs_for(TP, [a, a, b]) == [c, b, a]


def test_the_preferred_directory_is_used_once(dirs: list[LogDir]) -> None:
    a, _, c = dirs
    placement = LogPlacement(dirs)
    placement.prefer(TP, c.path)
    assert placement.dirs_for(TopicPartition("t", 1), [c])[0] is a
    assert placement.dirs_for(TP, [c]) == [c]
    placement.on_created(TP)
    assert placement.dirs_for(TP, [c])[0] is a


def test_a_bounded_number_of_partitions_has_a_preferred_directory(dirs: list[LogDir]) -> None:
    """Nobody creates the partitions that a client invents."""
    a, _, c = dirs
    placement = LogPlacement(dirs)
    partitions = [TopicPartition("invented", number) for number in range(PREFERRED_MAX + 1)]
    for topic_partition in partitions[:-1]:
        placement.prefer(topic_partition, c.path)
    assert placement.dirs_for(partitions[0], []) == [c]
    placement.prefer(partitions[0], c.path)
    placement.prefer(partitions[-1], c.path)
    assert [len(placement.dirs_for(each, [])) for each in partitions[:3]] == [1, 3, 1]
    assert placement.dirs_for(partitions[1], [])[0] is a
    assert placement.dirs_for(partitions[-1], []) == [c]


def test_a_failed_directory_is_none(dirs: list[LogDir]) -> None:
    a, b, _ = dirs
    placement = LogPlacement(dirs)
    a.fail("test", OSError(5, "broken"))
    assert placement.dirs_for(TP, [])[0] is b
    placement.prefer(TP, a.path)
    with pytest.raises(KafkaError) as refused:
        placement.dirs_for(TP, [])
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_full_directory_is_the_last_choice(dirs: list[LogDir]) -> None:
    a, b, c = dirs
    placement = LogPlacement(dirs)
    a.space.is_full = True
    assert placement.dirs_for(TP, [b, c]) == [b, c, a]
    for log_dir in dirs:
        log_dir.space.is_full = True
    assert placement.dirs_for(TP, [b, c])[0] is a
