"""The group coordinator against transcripts, in tests/golden/groups (see tests/support/transcripts)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.transcripts.group_transcript import Transcript
from tests.support.transcripts.transcript_file import check

TRANSCRIPTS = sorted((Path(__file__).parent / "groups").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    differences = check(path, Transcript().run)
    assert not differences, "\n\n".join(differences)


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) > 5
