"""Ten minutes of a coverage-guided fuzzer over all parsers of hostile bytes.

The seconds are shared among the targets; ODRADEK_SOAK_FUZZ_SECONDS shortens the run. What the fuzzer finds stays in the
directory of the test: the shortest input belongs into tests/golden/hostile_inputs, with the mending.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fuzzing.targets import TARGETS
from tests.support.processes.apache.jvm import REPOSITORY

pytestmark = pytest.mark.soak

SECONDS = int(os.environ.get("ODRADEK_SOAK_FUZZ_SECONDS", "600"))
START_S = 120
"""Atheris instruments the code, and runs the seeds."""
RUNS_MIN = 500


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_breaks_a_parser(name: str, tmp_path: Path) -> None:
    seconds = max(2, SECONDS // len(TARGETS))
    command = [sys.executable, "-m", "tests.support.fuzzing", name, str(seconds), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(REPOSITORY / "src"), str(REPOSITORY)))}
    ended = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=seconds + START_S, check=False
    )
    output = ended.stdout + ended.stderr
    assert ended.returncode == 0, output[-4000:]
    executed = re.search(r"number_of_executed_units: (\d+)", output)
    assert executed is not None
    print(f"{name}: {executed[1]} inputs in {seconds} s")
    assert int(executed[1]) >= RUNS_MIN
