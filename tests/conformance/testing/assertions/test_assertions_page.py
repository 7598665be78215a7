"""The examples of docs/assertions.md are tests that pass as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize("own_process", ["false", "true"], ids=["thread", "process"])
def test_the_examples_pass(tmp_path: Path, own_process: str) -> None:
    page = (REPOSITORY / "docs" / "assertions.md").read_text("utf-8")
    examples = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "test_examples.py").write_text("\n\n".join(examples))
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nodradek_own_process = {own_process}\n")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "odradek.testing.pytest_plugin", "."],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(REPOSITORY / "src"),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_ADDOPTS": "",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{len(examples)} passed" in run.stdout
