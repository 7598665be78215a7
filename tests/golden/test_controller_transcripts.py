"""The controller against transcripts, in tests/golden/controller (see tests/golden/controller_transcript.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.controller_transcript import replay
from tests.support.async_test import async_test

TRANSCRIPTS = sorted((Path(__file__).parent / "controller").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
@async_test
async def test_transcript(path: Path) -> None:
    recorded = path.read_text()
    assert (await replay(recorded)).splitlines() == recorded.splitlines()


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 5
