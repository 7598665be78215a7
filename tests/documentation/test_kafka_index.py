"""The index of Kafka's classes finds their names in module docstrings."""

from __future__ import annotations

import pytest

from tests.documentation.kafka_index import index, kafka_classes


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
