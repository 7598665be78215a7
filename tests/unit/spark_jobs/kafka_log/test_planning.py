from __future__ import annotations

import os
from pathlib import Path

import pytest

from spark_jobs.kafka_log.errors import DataLossError, KafkaLogError
from tests.support.disks.logs import Disk, append
from tests.support.kafka_log import interfering, offsets, planned, write_high_watermark, write_log_start


def ranges(path: Path, **options: object) -> list[tuple[int, int]]:
    return [(task.start, task.end) for task in planned(path, **options)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Segments at 0, 4, 8 and 12; the high watermark is 14."""
    log = Disk(tmp_path).log()
    for number in range(4):
        append(log, b"a", b"b", b"c", b"d")
        if number < 3:
            log.roll()
    write_high_watermark(tmp_path, 14)
    return tmp_path


def test_a_task_for_each_segment(data: Path) -> None:
    assert ranges(data) == [(0, 4), (4, 8), (8, 12), (12, 14)]
    assert ranges(data, beyondHighWatermark=True)[-1] == (12, 16)


def test_ranges_of_offsets(data: Path) -> None:
    assert ranges(data, startingOffset=5, endingOffset=9) == [(5, 8), (8, 9)]
    assert ranges(data, startingOffset=8) == [(8, 12), (12, 14)]
    assert ranges(data, startingOffset="latest") == []
    assert ranges(data, endingOffset="earliest") == []
    assert ranges(data, startingOffset=99) == []
    assert ranges(data, endingOffset=99)[-1] == (12, 14)
    assert ranges(data, startingOffset='{"topic": {"0": 13}}') == [(13, 14)]
    assert ranges(data, startingOffset='{"topic": {"0": -1}}') == []
    assert ranges(data, startingOffset='{"topic": {"1": 13}}')[0] == (0, 4)


def test_only_an_offset_of_this_partition_can_be_below_the_log_start(data: Path) -> None:
    write_log_start(data, 6)
    assert ranges(data)[0] == (6, 8)
    assert ranges(data, startingOffset=2)[0] == (6, 8)
    with pytest.raises(DataLossError, match=r"^topic-0: the offsets 2 to 5 are gone \(failOnDataLoss=false goes on"):
        planned(data, startingOffset='{"topic": {"0": 2}}')
    assert ranges(data, startingOffset='{"topic": {"0": 2}}', failOnDataLoss=False)[0] == (6, 8)


def test_a_high_watermark_below_the_log_start_is_nothing_to_read(data: Path) -> None:
    write_log_start(data, 6)
    write_high_watermark(data, 3)
    assert ranges(data) == []


def test_a_partition_that_changes_without_end_is_an_error_in_the_end(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{12:020d}.log", f"{13:020d}.log"]

    def rename(what: str) -> None:
        if what == "open":
            os.rename(data / "topic-0" / names[0], data / "topic-0" / names[1])
            names.reverse()

    with interfering(monkeypatch, rename), pytest.raises(KafkaLogError, match="changes too fast to be read"):
        planned(data, beyondHighWatermark=True)
    tasks = planned(data)
    assert tasks
    with interfering(monkeypatch, rename), pytest.raises(KafkaLogError, match="changes too fast to be read at offset"):
        offsets(data, startingOffset=13)


def test_a_partition_that_is_removed_during_the_plan_is_left_out(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def remove(what: str) -> None:
        if what == "list" and (data / "topic-0").exists():
            os.rename(data / "topic-0", data / "elsewhere")

    with interfering(monkeypatch, remove):
        assert planned(data) == []
