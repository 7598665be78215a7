"""Checkpoint files: round trips and refused content."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk import checkpoint_files as checkpoints
from odradek.storage.disk.checkpoint_files import CheckpointError
from odradek.storage.offsets import EpochEntry

topics = st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True)
offsets = st.dictionaries(
    st.builds(TopicPartition, topics, st.integers(0, 2**31 - 1)), st.integers(0, 2**63 - 1), max_size=8
)


@given(offsets)
def test_offsets_round_trip(entries: dict[TopicPartition, int]) -> None:
    assert checkpoints.decode_offsets(checkpoints.encode_offsets(entries), "name") == entries


@given(st.lists(st.builds(EpochEntry, st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)), max_size=8))
def test_epochs_round_trip(entries: list[EpochEntry]) -> None:
    assert checkpoints.decode_epochs(checkpoints.encode_epochs(entries), "name") == entries


@given(st.binary(min_size=16, max_size=16).filter(any))
def test_topic_ids_round_trip(topic_id: bytes) -> None:
    assert checkpoints.decode_partition_metadata(checkpoints.encode_partition_metadata(topic_id), "name") == topic_id


@pytest.mark.parametrize("content", [b"", b"0\n", b"0\n0\n"])
def test_files_without_entries(content: bytes) -> None:
    assert checkpoints.decode_offsets(content, "name") == {}


def test_any_white_space_separates() -> None:
    assert checkpoints.decode_offsets(b"0\n1\nt \t 3   17\n", "name") == {TopicPartition("t", 3): 17}


@pytest.mark.parametrize(
    "content",
    [
        b"1\n0\n",
        b"x\n0\n",
        b"0\nx\n",
        b"0\n2\nt 0 1\n",
        b"0\n1\nt 0 1\nt 1 1\n",
        b"0\n1\nt 0\n",
        b"0\n1\nt a 1\n",
        b"\xff",
    ],
)
def test_malformed_offset_checkpoints(content: bytes) -> None:
    with pytest.raises(CheckpointError):
        checkpoints.decode_offsets(content, "name")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw",
        b"version: 0",
        b"version: 0\ntopic: AAECAwQFBgcICQoLDA0ODw",
        b"version: 0\ntopic_id: short",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"\xff",
    ],
)
def test_malformed_partition_metadata(content: bytes) -> None:
    with pytest.raises(CheckpointError):
        checkpoints.decode_partition_metadata(content, "name")


def test_absent_files(tmp_path: Path) -> None:
    path = str(tmp_path / "absent")
    assert checkpoints.read_offsets(path) == {}
    assert checkpoints.read_epochs(path) == []
    assert checkpoints.read_partition_metadata(path) is None
