"""kazoo's own tests, as they are in its package, against `odradek zookeeper`: a selection that takes some seconds.

All of them run with `python -m pytest -p tests.support.clusters.kazoo_suite --pyargs kazoo.tests`, without test_cache,
which needs objgraph, and test_sasl, which needs SASL. What fails then needs an ensemble (several servers,
reconfiguration, a server that only reads) or TLS.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.python_path import python_path

SELECTION = (
    "kazoo.tests.test_client",
    "kazoo.tests.test_watchers",
    "kazoo.tests.test_counter",
    "kazoo.tests.test_party",
    "kazoo.tests.test_queue",
)
NEED_AN_ENSEMBLE_OR_TLS = "TestReconfig or TestSSLClient or test_update_host_list"
SLOW = "real_state_change or session or client_stop or expire or KazooPatient or connection_loss or interrupt"
TESTS_THE_CLOCK = "test_concurrent_execution"
"""Of test_queue: three clients share the processor while each of them waits 100 ms, in all, for its item."""
PASSED_AT_LEAST = 100


def test_kazoo(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.support.clusters.kazoo_suite",
        "-p",
        "no:cacheprovider",
    ]
    command += ["-c", os.devnull, f"--rootdir={tmp_path}", "--timeout", "60", "--durations", "10"]
    command += ["-k", f"not ({NEED_AN_ENSEMBLE_OR_TLS} or {SLOW} or {TESTS_THE_CLOCK})", "--pyargs", *SELECTION]
    environment = {
        **os.environ,
        "PYTEST_ADDOPTS": "",
        "PYTHONPATH": python_path(REPOSITORY / "src", REPOSITORY),
    }
    run = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, env=environment, check=False)
    assert run.returncode == 0, run.stdout[-8000:]
    passed = int(run.stdout.rsplit(" passed", 1)[0].split()[-1].rsplit("m", 1)[-1])
    assert passed >= PASSED_AT_LEAST, run.stdout[-2000:]
