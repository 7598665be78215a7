from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.perf.payloads import file_payload, monotonic_payload, random_payload


@pytest.mark.parametrize("size", [0, 1, 100, 200_000])
def test_random_letters(size: int) -> None:
    payload = random_payload(size)
    found = {payload(number) for number in range(50)}
    assert {len(value) for value in found} == {size}
    assert set(b"".join(found)) <= set(range(65, 91))
    assert len(found) > 20 or size < 100
    assert random_payload(size)(7) == payload(7), "the same in each run"


def test_pieces_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "payloads"
    path.write_text("a|ä||")
    payload, count = file_payload(str(path), "|")
    assert count == 2
    assert {payload(number) for number in range(50)} == {b"a", "ä".encode()}
    path.write_text("")
    with pytest.raises(CommandFailed, match="empty file"):
        file_payload(str(path), "|")
    with pytest.raises(CommandFailed, match="cannot read"):
        file_payload(str(tmp_path / "nowhere"), "|")


def test_numbers() -> None:
    assert monotonic_payload(12) == b"12"
