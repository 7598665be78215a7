"""Options of the whole suite: which broker the conformance tests talk to, and whether golden answers are recorded.

With `-n auto` several processes run the tests, with `-n logical` as many as are good for the fast ones (scheduling.py).
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator

import hypothesis
import pytest
from xdist.remote import Producer

from tests import scheduling
from tests.areas import AreaTimes

RANDOM_EXAMPLES = 1000
"""Of each property in `make soak`, unless the test sets its own number. Hypothesis' default is 100."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("odradek")
    group.addoption(
        "--target",
        choices=("odradek", "apache"),
        default="odradek",
        help="the broker under test: odradek, or Apache Kafka 3.9 itself as the oracle (with -m oracle)",
    )
    group.addoption(
        "--record",
        action="store_true",
        help="with --target apache: write the golden answers of tests/golden instead of comparing with them",
    )


def pytest_configure(config: pytest.Config) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored, by brokers that tests start, too
    # How long an example takes depends on what else the machine does. A suite that tries other examples in each run can
    # fail without a change of the code, so the random ones are tried by `make soak`.
    untimed = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
    hypothesis.settings.register_profile("same-examples", untimed, derandomize=True)
    hypothesis.settings.register_profile("random-examples", untimed, max_examples=RANDOM_EXAMPLES)
    hypothesis.settings.load_profile(config.getoption("--hypothesis-profile", None) or "same-examples")
    config.addinivalue_line("markers", "needs(*api_keys): the APIs a conformance test stands on")
    config.pluginmanager.register(_AreaReport())
    # kafka-python 3.0 reads its schemas through a deprecated call of the standard library.
    config.addinivalue_line("filterwarnings", "ignore:(read_text|open_text) is deprecated:DeprecationWarning")


class _AreaReport:
    """Ends each run with the time that every area has taken."""

    def __init__(self) -> None:
        self._times = AreaTimes()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._times.add(report.nodeid.partition("::")[0], report.duration)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.write_line(str(self._times))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    for_fast_tests = config.getoption("numprocesses") == "logical"
    return scheduling.processes(os.cpu_count() or 1, for_fast_tests=for_fast_tests)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> scheduling.FromBothEnds | None:
    return scheduling.FromBothEnds(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # one of several processes
        items.sort(key=lambda item: scheduling.turn(item.nodeid.partition("::")[0]))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """No garbage collections: they take a fifth of the time, and there is no garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    gc.freeze()  # thousands of collected tests are no garbage, and looking through them again takes a part of the run
