"""A compacted log, compared with a simple model of the records that must stay."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings

from tests.support.compaction.compaction_model import Step, run_against_model, steps


@settings(max_examples=100, deadline=None)
@given(steps)
def test_compacted_log_is_what_the_model_says(script: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        run_against_model(script, Path(directory))
