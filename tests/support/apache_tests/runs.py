"""Runs one of Apache's test classes in a JVM with a time limit, ends it with all its brokers, and reads its report."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from xml.etree import ElementTree

from tests.support.apache_tests.listing import OTHER_VARIANTS, TestClass
from tests.support.processes.apache.jvm import KAFKA_VERSION, REPOSITORY, JvmMissingError, java_executable
from tests.support.processes.python_path import python_path

CACHE = REPOSITORY / ".cache" / "apache-tests"
LIBS = CACHE / "libs"
KDC_LIBS = REPOSITORY / ".cache" / "kerberos" / "libs"
"""What MiniKdc needs besides; its KDC is in the JVM of the class."""
KDC_OPTIONS = ("--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",)
HARNESS = CACHE / "harness.jar"
UNVERIFIED = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote", "-XX:MetaspaceSize=192m")
"""Kafka's classes are not verified, and no garbage is collected because there are many of them."""
CLASS_TIMEOUT_S = 1500
TEST_TIMEOUT = "6 m"
MODULES = {"streams": "kafka-streams", "tools": "kafka-tools", "core": "kafka_2.13"}
MESSAGE_LENGTH = 300
KRAFT = "does not apply: KRaft"


@dataclass
class Outcome:
    """The result of one class: the names of its tests, and the errors of those that failed."""

    name: str
    passed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    duration_s: float = 0.0

    @property
    def ran(self) -> int:
        return len(self.passed) + len(self.failed)


def check(entry: TestClass, outcome: Outcome) -> None:
    """AssertionError: tests of the class failed, or fewer ran than are listed."""
    failures = "".join(f"\n  {test}: {message}" for test, message in outcome.failed.items())
    assert not outcome.failed, f"{len(outcome.failed)} of {outcome.ran} failed in {entry.name}:{failures}"
    assert outcome.ran >= entry.tests, f"{outcome.ran} ran in {entry.name}, {entry.tests} are listed"


def run_class(entry: TestClass, runs: Path, only: str = "", *, apache: bool = False) -> Outcome:
    """Run a class, or those of its tests in whose names `only` (a regular expression) is found.

    The output of a class that fails is left in `runs`. With `apache` the class has the broker that it was written for.
    """
    directory = runs / entry.name
    rmtree(directory, ignore_errors=True)
    (directory / "tmp").mkdir(parents=True)
    left_out = [f"{OTHER_VARIANTS}\t{KRAFT}", *(f"{left.pattern}\t{left.reason}" for left in entry.left_out)]
    (directory / "left-out").write_text("".join(f"{line}\n" for line in left_out))
    started = time.monotonic()
    ended = _run_jvm(_command(entry, directory, only, apache=apache), directory)
    outcome = _read_report(entry.name, directory)
    outcome.duration_s = time.monotonic() - started
    if not ended:
        outcome.failed["(the class)"] = f"still ran after {CLASS_TIMEOUT_S} s; see {directory / 'out'}"
    elif not outcome.ran and not outcome.left_out:
        outcome.failed["(the class)"] = f"no report; see {directory / 'out'}"
    if not outcome.failed:
        rmtree(directory)
    return outcome


def _command(entry: TestClass, directory: Path, only: str, *, apache: bool) -> list[str]:
    if not HARNESS.is_file():
        raise JvmMissingError(f"{HARNESS} is not there: run `make apache-tests`")
    # Each module's tests come with a configuration of their logs, which some of them read back: it is the first found.
    module = LIBS / f"{MODULES[entry.suite]}-{KAFKA_VERSION}-test.jar"
    libs = [LIBS, KDC_LIBS] if entry.needs_kdc else [LIBS]
    properties = {
        "java.io.tmpdir": directory / "tmp",
        "java.security.manager": "allow",
        "junit.jupiter.execution.timeout.testable.method.default": TEST_TIMEOUT,
        "junit.jupiter.extensions.autodetection.enabled": "true",
        "odradek.directory": directory / "tmp",
        "odradek.left.out": directory / "left-out",
        "odradek.only": only,
        "odradek.python": sys.executable,
    }
    return [
        java_executable(),
        *("-Xmx1500m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", *UNVERIFIED),
        *(KDC_OPTIONS if entry.needs_kdc else ()),
        *([] if apache else [f"-javaagent:{HARNESS}"]),
        *(f"-D{key}={value}" for key, value in properties.items()),
        *("-cp", os.pathsep.join([str(HARNESS), str(module), *(f"{path}/*" for path in libs)])),
        *("org.junit.platform.console.ConsoleLauncher", "execute"),
        *("--disable-banner", "--disable-ansi-colors", "--details=tree"),
        *(f"--reports-dir={directory / 'reports'}", f"--select-class={entry.name}"),
    ]


def _run_jvm(command: Sequence[str], directory: Path) -> bool:
    """Whether it ended by itself. Its brokers are in its process group, and end with it at the latest."""
    environment = {**os.environ, "PYTHONPATH": python_path(REPOSITORY / "src", REPOSITORY)}
    with (directory / "out").open("wb") as out:
        jvm = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=environment,
            start_new_session=True,
        )
    try:
        jvm.wait(CLASS_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return False
    finally:
        with suppress(ProcessLookupError):
            os.killpg(jvm.pid, signal.SIGKILL)
        jvm.wait()
    return True


def _read_report(name: str, directory: Path) -> Outcome:
    outcome = Outcome(name)
    for report in (directory / "reports").glob("TEST-*.xml"):
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            test = _test_name(case)
            trouble = next((case.find(kind) for kind in ("failure", "error") if case.find(kind) is not None), None)
            skipped = case.find("skipped")
            if trouble is not None:
                message = trouble.get("message") or (trouble.text or "").strip() or trouble.get("type") or "no message"
                outcome.failed[test] = message[:MESSAGE_LENGTH]
            elif skipped is not None:
                outcome.left_out[test] = (skipped.text or "").strip()
            else:
                outcome.passed.append(test)
    return outcome


def _test_name(case: ElementTree.Element) -> str:
    """The method, and the variant where there are several, as in "method display-name" that the list looks in."""
    method = case.get("name", "").partition("(")[0]
    details = "\n".join(element.text or "" for element in case.iter("system-out"))
    shown = re.search(r"^display-name: (.*)$", details, re.MULTILINE)
    return f"{method} {shown[1]}" if shown else method
