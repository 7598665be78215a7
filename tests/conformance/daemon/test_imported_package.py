"""The brokers of the tests run the package that PYTHONPATH names: `make test-compiled` names the compiled one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.processes.odradek_process import OdradekBroker

WHERE = "from odradek.broker import dispatch; print(dispatch.__file__)"


def test_a_broker_runs_the_package_that_the_environment_names(tmp_path: Path) -> None:
    found = subprocess.run([sys.executable, "-c", WHERE], capture_output=True, text=True, cwd=tmp_path, check=True)
    broker = OdradekBroker(tmp_path)
    broker.start()
    try:
        libraries = Path(f"/proc/{broker.pid}/maps").read_text()
    finally:
        broker.close()
    assert ("__mypyc" in libraries) == found.stdout.strip().endswith(".so")
