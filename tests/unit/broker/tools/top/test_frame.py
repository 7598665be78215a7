from __future__ import annotations

import io

from rich.console import Console

from odradek.broker.tools.top.figures import figures
from odradek.broker.tools.top.frame import cell, draw, share_lines, size_text
from odradek.broker.tools.top.screen_state import ScreenState
from tests.unit.broker.tools.top.samples import AFTER, BEFORE


def drawn(state: ScreenState, height: int | None, note: str = "") -> list[str]:
    console = Console(file=io.StringIO(), width=140)
    console.print(draw(figures(BEFORE, AFTER), state, height=height, note=note))
    output = console.file
    assert isinstance(output, io.StringIO)
    return [" ".join(line.split()) for line in output.getvalue().splitlines()]


def test_plain_tables() -> None:
    lines = drawn(ScreenState(with_internal=True), None)
    assert lines[0] == (
        "cluster cluster controller 2 partitions 3 without leader 1 under replicated 2 records/s 100.0 bytes/s 2.0 KiB"
    )
    assert "1 host:9001 - 1 2 1 100.0 2.0 KiB 4.9 KiB 1000 B" in lines
    assert "t 2 2 1 100.0 2.0 KiB 5.3 KiB 350" in lines
    assert "g Stable 3 2 1 210 20.0" in lines
    assert any(line.startswith("__consumer_offsets 1 1 1") for line in lines)
    assert not any("quit" in line for line in lines)


def test_a_screen_is_filled_and_not_more() -> None:
    lines = drawn(ScreenState(), 15)
    assert len(lines) <= 15
    assert lines[-1].startswith("q quit")
    assert "topics (1)" in lines
    assert drawn(ScreenState(is_paused=True), 15)[-1] != "x"
    assert "topics (1) paused" in drawn(ScreenState(is_paused=True), 15)
    assert drawn(ScreenState(), 15, note="no bootstrap server answers")[-1] == "no bootstrap server answers"


def test_lines_are_shared() -> None:
    assert share_lines({"a": 2, "b": 10, "c": 0}, 8) == {"a": 2, "b": 6, "c": 0}
    assert share_lines({"a": 5, "b": 5, "c": 5}, 4) == {"a": 2, "b": 1, "c": 1}
    assert share_lines({"a": 1, "b": 1}, 9) == {"a": 1, "b": 1}


def test_cells() -> None:
    assert [cell("rack", None), cell("controller", True), cell("controller", False)] == ["-", "*", ""]
    assert [cell("lag", 12345), cell("broker", 12345), cell("records_per_second", 12345.6)] == [
        "12,345",
        "12345",
        "12,345.6",
    ]


def test_sizes() -> None:
    assert [size_text(size) for size in (0, 1023, 1024, 1536 * 1024, 5 * 1024**5)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.5 MiB",
        "5.0 PiB",
    ]
