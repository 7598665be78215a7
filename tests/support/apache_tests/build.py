"""Compiles the Java side of the harness: `python -m tests.support.apache_tests.build` (make does it)."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tests.support.apache_tests.runs import HARNESS, LIBS
from tests.support.processes.apache.jvm import java_executable

SOURCES = Path(__file__).parent / "jvm"
AGENT = "odradek.harness.Agent"
SERVICES = "META-INF/services/org.junit.jupiter.api.extension.Extension"
EXTENSION = "odradek.harness.Variants"
TIMEOUT_S = 300


def main() -> None:
    tools = Path(java_executable()).resolve().parent
    with tempfile.TemporaryDirectory() as directory:
        classes = Path(directory) / "classes"
        sources = sorted(map(str, (SOURCES / "odradek").rglob("*.java")))
        _run(
            [
                str(tools / "javac"),
                "-Xlint:all,-processing,-classfile",
                "-d",
                str(classes),
                "-cp",
                f"{LIBS}/*",
                *sources,
            ]
        )
        (classes / SERVICES).parent.mkdir(parents=True)
        (classes / SERVICES).write_text(f"{EXTENSION}\n")
        manifest = Path(directory) / "manifest"
        manifest.write_text(f"Premain-Class: {AGENT}\n")
        built = HARNESS.with_suffix(".new")  # a JVM that has the old one open goes on with it
        _run([str(tools / "jar"), "cfm", str(built), str(manifest), "-C", str(classes), "."])
        built.replace(HARNESS)


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, timeout=TIMEOUT_S)


if __name__ == "__main__":
    main()
