"""Which output fits which checkpoint."""

from __future__ import annotations

import pytest

from spark_jobs.archive.parquet_output import NO_BATCH, OutputError, check_pair, last_batch


def check(listed: int, planned: int, *, has_sink_log: bool = True, has_data: bool = True) -> None:
    check_pair(
        output="out", checkpoint="cp", listed=listed, planned=planned, has_sink_log=has_sink_log, has_data=has_data
    )


@pytest.mark.parametrize(("listed", "planned"), [(-1, -1), (-1, 0), (0, 0), (6, 7), (7, 7)])
def test_a_batch_is_planned_then_listed(listed: int, planned: int) -> None:
    check(listed, planned)


@pytest.mark.parametrize(("listed", "planned"), [(-1, 1), (0, 2), (8, 7), (9, 3)])
def test_batch_numbers_that_no_run_leaves_are_refused(listed: int, planned: int) -> None:
    with pytest.raises(OutputError, match=rf"ends with batch {listed} .* with batch {planned}"):
        check(listed, planned)


def test_a_new_checkpoint_for_an_old_output_is_refused() -> None:
    with pytest.raises(OutputError, match=r"out was written with another checkpoint than cp"):
        check(0, NO_BATCH)


def test_files_of_another_writer_are_refused() -> None:
    with pytest.raises(OutputError, match=r"out holds files that no such job wrote"):
        check(NO_BATCH, NO_BATCH, has_sink_log=False)
    check(NO_BATCH, NO_BATCH, has_sink_log=False, has_data=False)


def test_the_last_batch_is_the_highest_number() -> None:
    assert last_batch(["0", "10", "9.compact", ".11.crc", "12.tmp", "x"]) == 10
    assert last_batch(["19.compact"]) == 19
    assert last_batch([]) == NO_BATCH
