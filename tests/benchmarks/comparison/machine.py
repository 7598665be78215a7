"""The machine of a run, for the report: figures mean little without it."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.support.processes.apache.jvm import KAFKA_VERSION, java_executable


@dataclass(frozen=True, slots=True)
class Machine:
    """What the machine is."""

    processor: str
    cores: int
    memory_gb: float
    kernel: str
    python: str
    java: str
    apache: str


def this_machine() -> Machine:
    named = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    java = subprocess.run([java_executable(), "-version"], capture_output=True, text=True, check=True).stderr
    return Machine(
        processor=named[0] if named else platform.machine(),
        cores=os.cpu_count() or 1,
        memory_gb=round(psutil.virtual_memory().total / 1e9, 1),
        kernel=platform.release(),
        python=platform.python_version(),
        java=java.splitlines()[0],
        apache=f"Apache Kafka {KAFKA_VERSION}",
    )


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []
