"""Runs a suite: its sources, its packages, the broker, pytest, and what pytest reports."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from tests.support.processes.apache.jvm import REPOSITORY, java_command
from tests.support.strangers.served import served
from tests.support.strangers.suites import Suite

CACHE: Final = REPOSITORY / ".cache" / "strangers"
HERE: Final = Path(__file__).parent
PIP: Final = ("-m", "pip", "--quiet", "--disable-pip-version-check")
MESSAGE_CHARACTERS: Final = 200
CONNECTOR: Final = (
    *("spark-sql-kafka-0-10_2.13", "spark-token-provider-kafka-0-10_2.13"),
    *("kafka-clients", "commons-pool2"),
)


@dataclass(frozen=True)
class Outcome:
    """The tests of a suite by what became of them, each with the reason."""

    suite: Suite
    by_kind: Mapping[str, Mapping[str, str]]
    duration_s: float

    @cached_property
    def failed(self) -> Mapping[str, str]:
        return self.by_kind["failed"]


def run_suite(suite: Suite, target: str, more: Sequence[str] = ()) -> Outcome:
    """Run the tests of `suite` against `target` and leave the output in `.cache/strangers/runs`."""
    source = sources_of(suite)
    python = install_packages(suite)
    with tempfile.TemporaryDirectory(prefix="strangers-") as directory, ExitStack() as stack:
        place = Path(directory) / "suite"
        for folder in suite.folders:
            copy(source / folder, place / folder)
        bootstrap = ""
        if not suite.starts_broker:
            bootstrap, _ = stack.enter_context(served(target, Path(directory), suite.settings, suite.port))
        environment = {
            name: value.format(bootstrap=bootstrap, place=place) for name, value in suite.environment.items()
        }
        return run_pytest(suite, python, target, place, environment, more)


def run_pytest(
    suite: Suite, python: Path, target: str, place: Path, environment: Mapping[str, str], more: Sequence[str]
) -> Outcome:
    report = CACHE / "runs" / f"{suite.name}-{target}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    stand_ins = HERE / "stand_ins" / suite.stand_ins
    command = [
        str(python),
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--junitxml={report}",
        "-o",
        "xfail_strict=false",
    ]
    started = time.monotonic()
    with report.with_suffix(".log").open("wb") as log:
        subprocess.run(
            [*command, *suite.arguments, *more],
            cwd=place,
            env={
                **os.environ,
                **environment,
                "PATH": os.pathsep.join([str(stand_ins), os.environ["PATH"]]),
                "PYTHONPATH": str(stand_ins),
                "PYTEST_ADDOPTS": "",
                "STRANGERS_JAVA": "\t".join(java_command("")[:-1]),
                "STRANGERS_PYTHON": sys.executable,
                "STRANGERS_REPOSITORY": str(REPOSITORY),
                "STRANGERS_TARGET": target,
            },
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    return Outcome(suite, read_report(suite, report), time.monotonic() - started)


def read_report(suite: Suite, report: Path) -> Mapping[str, Mapping[str, str]]:
    """What pytest has written, with the excused failures apart."""
    kinds: dict[str, dict[str, str]] = {kind: {} for kind in ("passed", "failed", "excused", "skipped")}
    for case in ET.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        bad = [*case.findall("failure"), *case.findall("error")]
        skipped = case.find("skipped")
        if bad:
            reason = next((why for end, why in suite.excused.items() if name.endswith(end)), None)
            message = (bad[0].get("message") or "").replace("\n", " ")[:MESSAGE_CHARACTERS]
            kinds["failed" if reason is None else "excused"][name] = reason or message
        elif skipped is not None:
            kinds["skipped"][name] = skipped.get("message") or ""
        else:
            kinds["passed"][name] = ""
    return kinds


def sources_of(suite: Suite) -> Path:
    """The folder of its sources. Raises SystemExit where they have to be put there by hand."""
    source = CACHE / "sources" / suite.source
    if source.is_dir():
        return source
    if not suite.is_package:
        raise SystemExit(f"the package of {suite.name} has no tests: put a checkout of {suite.version} into {source}")
    source.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=source.parent) as directory:
        name = f"{suite.name}=={suite.version}"
        pip("download", "--no-deps", "--no-binary", ":all:", "--dest", directory, name)
        (archive,) = Path(directory).glob("*.tar.gz")
        with tarfile.open(archive) as files:
            files.extractall(directory, filter="data")
        archive.unlink()
        (unpacked,) = Path(directory).iterdir()
        unpacked.rename(source)
    return source


def install_packages(suite: Suite) -> Path:
    """The Python of the suite, with its packages: ours must not change what the others test with."""
    requirements = HERE / suite.requirements
    directory = CACHE / requirements.stem
    python = directory / "bin" / "python"
    stamp = directory / ".installed"
    if not stamp.exists() or stamp.read_text() != requirements.read_text():
        subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
        subprocess.run([str(python), *PIP, "install", "--requirement", str(requirements)], check=True)
        if suite.connector:
            install_connector(directory / "lib" / f"python3.{sys.version_info.minor}" / "site-packages" / "pyspark")
        stamp.write_text(requirements.read_text())
    return python


def install_connector(spark_home: Path) -> None:
    """Put Spark's Kafka connector where a build of Spark has it."""
    directory = spark_home / "connector" / "kafka-0-10-sql" / "target"
    subprocess.run(
        [
            *("mvn", "-q", "-B", "-f", str(HERE / "pyspark_pom.xml"), "dependency:copy-dependencies"),
            f"-DincludeArtifactIds={','.join(CONNECTOR)}",
            f"-DoutputDirectory={directory}",
            f"-Dmaven.repo.local={REPOSITORY / '.cache' / 'm2'}",
        ],
        check=True,
    )
    (directory / "classpath.txt").write_text(":".join(map(str, directory.glob("*.jar"))))


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, *PIP, *arguments], check=True)


def copy(source: Path, destination: Path) -> None:
    destination.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, destination)
    else:
        shutil.copy(source, destination)
