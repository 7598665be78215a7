"""The controller against transcripts, in tests/golden/controller (see tests/support/controller_transcript.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.async_test import async_test
from tests.support.controller_transcript import replay

TRANSCRIPTS = sorted((Path(__file__).parent / "controller").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
@async_test
async def test_transcript(path: Path) -> None:
    recorded = path.read_text()
    assert (await replay(recorded)).splitlines() == recorded.splitlines()


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 5
