"""Apache Kafka's own cleaner, run on directories: the oracle of compaction, with a time that the test sets."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from odradek.storage.cleaning.clean_job import CleanJob
from tests.support.processes.apache.jvm import QUICK_START, program_command

PROGRAM = Path(__file__).parents[1] / "jvm" / "CleanerOracle.java"
TIMEOUT_S = 300


class ApacheCleaned(NamedTuple):
    """The result of a run of Apache's cleaner."""

    next_dirty_offset: int
    messages_read: int
    messages_written: int
    invalid_messages_read: int
    index_ms: int
    elapsed_ms: int
    peak_resident_kb: int


def apache_clean(
    overrides: Mapping[str, str], jobs: Sequence[tuple[Path, CleanJob]], options: Sequence[str] = QUICK_START
) -> list[ApacheCleaned]:
    """Clean each directory, in which the job's log lies, in one JVM and one after the other."""
    command = program_command(PROGRAM, options=options)
    command += [f"{key}={value}" for key, value in overrides.items()]
    for directory, job in jobs:
        command += ["clean", str(directory), str(job.first_dirty_offset), str(job.first_uncleanable_offset)]
        command += [str(job.now_ms), str(job.offset_map_bytes), str(job.offset_map_load_factor)]
        command += [str(job.io_buffer_bytes)]
    finished = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False)
    assert finished.returncode == 0, (finished.stdout + finished.stderr).decode()[-4000:]
    lines = [line for line in finished.stdout.decode().splitlines() if line[:1].isdigit()]
    assert len(lines) == len(jobs), finished.stdout.decode()[-4000:]
    return [ApacheCleaned(*map(int, line.split())) for line in lines]
