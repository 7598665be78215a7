"""Names of files and directories."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage import log_files

UUID = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("orders-0", (TopicPartition("orders", 0), "")),
        ("with-dash-12", (TopicPartition("with-dash", 12), "")),
        ("a.b-1", (TopicPartition("a.b", 1), "")),
        (f"orders-3.{UUID}-delete", (TopicPartition("orders", 3), "-delete")),
        (f"orders-3.{UUID}-future", (TopicPartition("orders", 3), "-future")),
        (f"orders-3.{UUID}-stray", (TopicPartition("orders", 3), "-stray")),
        (f"a-1.{UUID}-delete-0", (TopicPartition(f"a-1.{UUID}-delete", 0), "")),
        ("orders-2147483647", (TopicPartition("orders", 2**31 - 1), "")),
        ("orders-2147483648", None),
        (f"orders-2147483648.{UUID}-delete", None),
        ("lost+found", None),
        ("orders", None),
        ("orders-x", None),
        ("-3", None),
        ("orders-1.short-delete", None),
    ],
)
def test_directory_names(name: str, parsed: tuple[TopicPartition, str] | None) -> None:
    assert log_files.parse_dir_name(name) == parsed


topics = st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True)


@given(topics, st.integers(0, 2**31 - 1), st.sampled_from(["-delete", "-future", "-stray"]))
def test_marked_names_fit_the_file_system_and_keep_the_partition(topic: str, partition: int, suffix: str) -> None:
    topic_partition = TopicPartition(topic, partition)
    name = log_files.marked_dir_name(topic_partition, UUID, suffix)
    assert len(name) <= 255
    parsed = log_files.parse_dir_name(name)
    assert parsed is not None
    assert topic.startswith(parsed[0].topic)
    assert (parsed[0].partition, parsed[1]) == (partition, suffix)


@given(topics, st.integers(0, 2**31 - 1))
def test_plain_names_round_trip(topic: str, partition: int) -> None:
    topic_partition = TopicPartition(topic, partition)
    parsed = log_files.parse_dir_name(log_files.log_dir_name(topic_partition))
    assert parsed == (topic_partition, "")


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        ("00000000000000000522.log", 522),
        ("00000000000000000522.index.deleted", 522),
        ("leader-epoch-checkpoint", None),
        ("partition.metadata", None),
    ],
)
def test_offsets_in_names(name: str, offset: int | None) -> None:
    assert log_files.offset_of(name) == offset


def test_offset_names_have_twenty_digits() -> None:
    assert log_files.offset_name(522, ".index") == "00000000000000000522.index"
    assert log_files.snapshot_name(0) == "00000000000000000000.snapshot"


def test_a_future_directory_has_the_whole_name_of_its_topic() -> None:
    name = log_files.future_dir_name(TopicPartition("x" * 213, 0), UUID)
    assert len(name) == log_files.NAME_MAX
    assert log_files.parse_dir_name(name) == (TopicPartition("x" * 213, 0), "-future")
