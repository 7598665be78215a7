from __future__ import annotations

from odradek.broker.tools.data.records.pretty_line import pretty_line
from odradek.protocol.records.record import Record
from tests.unit.broker.tools.data.records.test_record_format import record


def test_lines_for_people() -> None:
    line = pretty_line(with_colours=False)(record(b"k", b"a\x1b[2Jb\xff\n"))
    assert line.decode().split(" ", 1)[1] == "topic[2]@7 k h=1 n=null a\\x1b[2Jb\\xff\n\n"
    assert b"\x1b[36mtopic[2]@7\x1b[0m" in pretty_line(with_colours=True)(record())


def test_times_that_are_none() -> None:
    far = record()._replace(record=Record(0, 2**62, None, b"v"))
    assert pretty_line(with_colours=False)(far).startswith(b"4611686018427387904 ")
    without = record()._replace(record=Record(0, -1, None, b"v"))
    assert pretty_line(with_colours=False)(without) == b"- topic[2]@0 v\n"
