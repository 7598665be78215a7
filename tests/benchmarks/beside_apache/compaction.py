"""Compaction of the same logs by our worker and by Apache's own Cleaner, each in a process of its own.

A million records, two and four: the time a record takes must not grow with the log. Apache's JVM cleans a smaller log
first, to be warm. Half of the records have a key that occurs again.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from odradek.storage.cleaning.clean_job import CleanJob, CleanStats
from odradek.storage.cleaning.log_cleaning import clean_log
from odradek.storage.config.cleaner_config import BYTES_PER_ENTRY
from tests.benchmarks.contenders import Contenders
from tests.benchmarks.measure import Table
from tests.benchmarks.parts.bench_compaction import DEDUPE_BUFFER_BYTES, SEGMENT_BYTES, fill, new_log
from tests.support.compaction.apache_cleaner import apache_clean
from tests.support.processes.apache.apache import IN_EARNEST

WARM_UP = 200_000
RECORDS = (1_000_000, 2_000_000, 4_000_000)


def run(contenders: Contenders) -> None:
    del contenders  # a cleaner needs no broker
    with tempfile.TemporaryDirectory() as directory:
        logs = [new_log(Path(directory) / "ours" / f"topic-{count}") for count in (WARM_UP, *RECORDS)]
        for log, count in zip(logs, (WARM_UP, *RECORDS), strict=True):
            fill(log, count)
        jobs = [log.job(map_slots=DEDUPE_BUFFER_BYTES // BYTES_PER_ENTRY) for log in logs]
        copies = Path(directory) / "apache"
        shutil.copytree(Path(directory) / "ours", copies, copy_function=os.link)  # closed segments are only read
        config = {"cleanup.policy": "compact", "segment.bytes": str(SEGMENT_BYTES)}
        theirs = apache_clean(
            config, [(copies / log.path.name, job) for log, job in zip(logs, jobs, strict=True)], IN_EARNEST
        )
        table = Table("Compaction, 100 B values, half of the keys come again, 128 MiB for the offset map")
        for job, apache in list(zip(jobs, theirs, strict=True))[1:]:
            stats, our_s, peak_mb = in_a_process(job)
            assert stats.messages_written == apache.messages_written
            their_s = apache.elapsed_ms / 1000
            name = f"{stats.messages_read:,} records"
            table.row(name, "records/s", stats.messages_read / our_s, stats.messages_read / their_s)
            table.row("  read", "MB/s", stats.bytes_read / our_s / 1e6, stats.bytes_read / their_s / 1e6)
            table.row("  of it the offset map", "s", stats.index_ms / 1000, apache.index_ms / 1000)
            table.row("  largest memory", "MB", peak_mb, apache.peak_resident_kb / 1000)


def in_a_process(job: CleanJob) -> tuple[CleanStats, float, float]:
    """The result of a new worker: statistics, seconds, megabytes."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_clean, job).result()


def _clean(job: CleanJob) -> tuple[CleanStats, float, float]:
    started = time.perf_counter()
    stats = clean_log(job, print).stats
    return stats, time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
