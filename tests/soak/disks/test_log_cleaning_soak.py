"""Many more random logs and compactions against the model."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.support.compaction.compaction_model import Step, run_against_model, steps

pytestmark = pytest.mark.soak


@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps)
def test_compacted_logs_are_what_the_model_says(script: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        run_against_model(script, Path(directory))
