"""The transaction coordinator against transcripts, in tests/golden/transactions (see transaction_transcript.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.transcripts.transaction_transcript import Transcript
from tests.support.transcripts.transcript_file import check

TRANSCRIPTS = sorted((Path(__file__).parent / "transactions").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    differences = check(path, Transcript().run)
    assert not differences, "\n\n".join(differences)


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) > 5
