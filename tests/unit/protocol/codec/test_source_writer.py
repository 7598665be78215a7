from __future__ import annotations

from odradek.protocol.codec.source_writer import SourceWriter, fields_at, holds_records
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from odradek.protocol.messages.produce import ProduceRequest, ProduceResponse


def test_blocks_are_indented() -> None:
    writer = SourceWriter()
    with writer.block("if a:"):
        with writer.block("while b:"):
            writer.line("c()")
        writer.line("d()")
    assert writer.text == "if a:\n    while b:\n        c()\n    d()\n"


def test_locals_are_unique_and_globals_are_shared() -> None:
    writer = SourceWriter()
    assert writer.local("n") != writer.local("n")
    first = writer.bind("read", ">i", 1)
    assert writer.bind("read", ">i", 1) == first
    assert writer.bind("write", ">i", 2) != first
    assert writer.bind("read", ">h", 3) != first
    assert sorted(writer.names.values(), key=str) == [1, 2, 3]


def test_fields_of_a_version_are_in_place_tagged_or_absent() -> None:
    in_place, tagged, absent = fields_at(FetchRequest, 17)
    assert [field.name for field in tagged] == ["cluster_id", "replica_state"]
    assert [field.name for field in absent] == ["replica_id"]
    assert in_place[0].name == "max_wait_ms"
    in_place, tagged, absent = fields_at(FetchRequest, 0)
    assert [field.name for field in in_place] == ["replica_id", "max_wait_ms", "min_bytes", "topics"]
    assert not tagged
    assert "session_id" in [field.name for field in absent]


def test_knows_which_messages_carry_records() -> None:
    assert holds_records(ProduceRequest, 0)
    assert holds_records(FetchResponse, 17)
    assert holds_records(PartitionData, 3)
    assert not holds_records(ProduceResponse, 9)
    assert not holds_records(FetchRequest, 17)
