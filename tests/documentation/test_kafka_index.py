"""The index of Kafka's classes finds their names in module docstrings, and the page has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documentation.kafka_index import (
    BEGIN,
    END,
    MOST_OF_A_FOLDER,
    PAGE,
    index,
    kafka_classes,
    places,
    with_index,
    written,
)


@pytest.mark.parametrize(
    ("docstring", "classes"),
    [
        ("Segments.\n\nKafka: LogSegment, RollParams and LocalLog.split.\n", ["LogSegment", "RollParams", "LocalLog"]),
        (
            "Secrets have no value. Kafka: the broker part of Kafka's ``ConfigHelper``; topics are ours",
            ["ConfigHelper"],
        ),
        ("The tree (Kafka: kafka.zk.KafkaZkClient and kafka.Kafka).", ["KafkaZkClient", "Kafka"]),
        ("Kafka: the high watermark of\nUnifiedLog. LocalLog is below it.", ["UnifiedLog"]),
        ("Kafka: KafkaConfig (brokerId, logDirs), KIP-584 and MAX_SIZE of ZooKeeper", ["KafkaConfig"]),
        ("Differences to Apache Kafka: LogSegment knows no size.", []),
        ("A LogSegment of Kafka.", []),
        ("Kafka: Kafka.main, in a JVM of Apache Kafka.", ["Kafka"]),
    ],
)
def test_a_class_is_what_begins_with_a_capital_letter(docstring: str, classes: list[str]) -> None:
    assert kafka_classes(docstring) == classes


def test_the_index_has_a_row_for_each_class() -> None:
    rows = index().splitlines()
    assert any(row.startswith("| LogSegment | ") and "`storage/segment/log_segment.py`" in row for row in rows)
    names = [row.split(" | ")[0].removeprefix("| ") for row in rows[2:]]
    assert len(names) > 150
    assert names == sorted(set(names), key=str.lower)


def test_the_file_of_the_same_name_comes_first_and_a_folder_stands_for_many_files() -> None:
    few = [Path("a/some.py"), Path("b/log_segment.py")]
    assert list(places("LogSegment", few)) == ["`b/log_segment.py`", "`a/some.py`"]
    many = [Path(f"a/f{number}.py") for number in range(MOST_OF_A_FOLDER + 1)]
    assert list(places("LogSegment", many[1:])) == [f"`{file}`" for file in many[1:]]
    assert list(places("LogSegment", [*many, *few])) == ["`b/log_segment.py`", "10 more files in `a/`"]
    assert list(places("KafkaApis", many)) == ["9 files in `a/`"]


def test_the_page_has_the_index_of_now() -> None:
    """After a change of a line "Kafka:" the command writes the index anew."""
    assert written(PAGE.read_text("utf-8")) == index(), "run: python -m tests.documentation.kafka_index"


def test_a_new_index_takes_the_place_of_the_old_one_alone() -> None:
    page = f"# Title\n\n{BEGIN}\nold\n{END}\n\nThe end.\n"
    assert with_index(page) == f"# Title\n\n{BEGIN}\n{index()}{END}\n\nThe end.\n"
