"""Apache Kafka's jars, and the command that runs a class of them.

The jars are resolved once by make from `tests/support/jvm/pom.xml` into `.cache/jvm/libs`; `ODRADEK_JVM_LIBS` names
another directory. A missing JDK or jar is a failure and never a skip. The archive of their classes (shared_classes.py)
halves the time of every start; without it everything runs, only slower.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[4]
KAFKA_VERSION = "3.9.1"
REQUIRED_JARS = (f"kafka_2.13-{KAFKA_VERSION}.jar", f"kafka-tools-{KAFKA_VERSION}.jar", "slf4j-reload4j-1.7.36.jar")


class JvmMissingError(AssertionError):
    """The JDK or the jars are not there; says what to do about it."""


OWN_LIBS = REPOSITORY / ".cache" / "jvm" / "libs"
SHARED_CLASSES = OWN_LIBS / "kafka.jsa"
AT_ITS_ADDRESS = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")
"""Else a JVM maps the archive at a random address, and changes each pointer in it."""

QUICK_START = (
    *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", *AT_ITS_ADDRESS),
    *([f"-XX:SharedArchiveFile={SHARED_CLASSES}"] if SHARED_CLASSES.is_file() else []),
)
"""For JVMs that do not live long. Without the archive, or with other jars, they read their classes from the jars."""

PROGRAMS = REPOSITORY / ".cache" / "jvm" / "programs"
"""Where the Java programs of the tests are, compiled."""


@cache
def libs_dir() -> Path:
    """The directory of Apache Kafka's jars, checked."""
    configured = os.environ.get("ODRADEK_JVM_LIBS")
    libs = (Path(configured) if configured else OWN_LIBS).resolve()
    missing = [name for name in REQUIRED_JARS if not (libs / name).is_file()]
    if missing:
        raise JvmMissingError(
            f"Apache Kafka's jars are not in {libs} (missing: {', '.join(missing)}): run `make jars`, "
            "or set ODRADEK_JVM_LIBS to a directory that has them"
        )
    return libs


@cache
def java_executable() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not java or not Path(java).is_file():
        raise JvmMissingError("no `java` on the PATH (and no JAVA_HOME): the conformance tests need a JDK 17")
    return java


def java_command(main_class: str, *arguments: str, options: Sequence[str] = QUICK_START) -> list[str]:
    """The command line that runs `main_class` of Kafka's jars."""
    return [java_executable(), *options, "-cp", f"{libs_dir()}/*", main_class, *arguments]


def program_command(
    source: Path, *arguments: str, options: Sequence[str] = QUICK_START, class_path: str | None = None
) -> list[str]:
    """The command line that runs a program of one file, with Kafka's jars or another class path.

    It is compiled once: `java FILE` compiles in each start, which takes four times as long as the start itself.
    """
    class_path = f"{libs_dir()}/*" if class_path is None else class_path
    whole_path = f"{class_path}{os.pathsep}{compiled(source, class_path)}"
    return [java_executable(), *options, "-cp", whole_path, source.stem, *arguments]


@cache
def compiled(source: Path, class_path: str) -> Path:
    """The directory with the classes of a program; other processes may make it at the same time."""
    made_of = f"{KAFKA_VERSION} {class_path} ".encode() + source.read_bytes()
    directory = PROGRAMS / f"{source.stem}-{hashlib.sha256(made_of).hexdigest()[:16]}"
    if not directory.is_dir():
        PROGRAMS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=PROGRAMS) as name:
            made = Path(name) / "classes"
            javac = Path(java_executable()).resolve().with_name("javac")
            subprocess.run([javac, "-nowarn", "-cp", class_path, "-d", made, source], check=True, capture_output=True)
            with suppress(OSError):  # it is there meanwhile
                made.rename(directory)
    return directory
