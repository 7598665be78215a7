"""Damage to the files of a killed broker: a short version of the soak of torn files."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.storage.disk import checkpoint_files as checkpoints
from tests.support.disks.logs import TP, append
from tests.support.disks.managed_logs import Broker
from tests.support.disks.torn_files import KilledLog, check_cuts, check_derived_files, check_flips, flipped, served

TAIL_BYTES = 800


@pytest.fixture
def killed(memory_path: Path) -> KilledLog:
    return KilledLog(memory_path, TAIL_BYTES)


def test_log_cut_at_every_byte_keeps_what_is_whole(killed: KilledLog) -> None:
    assert check_cuts(killed) >= TAIL_BYTES


def test_log_with_a_flipped_bit_ends_before_it(killed: KilledLog) -> None:
    assert check_flips(killed) >= TAIL_BYTES


def test_indexes_snapshots_and_epochs_are_rebuilt(killed: KilledLog) -> None:
    assert check_derived_files(killed, step=17) > 400


@pytest.mark.parametrize("name", [checkpoints.RECOVERY_POINT_FILE, checkpoints.LOG_START_OFFSET_FILE])
def test_damaged_checkpoint_of_the_directory_keeps_nothing_from_starting(tmp_path: Path, name: str) -> None:
    """A changed digit cannot be detected; all served records are intact even so."""
    broker = Broker(tmp_path)
    log = broker.start({TP.topic: {"segment.bytes": "300"}}).get_or_create_log(TP, is_new=True)
    for number in range(10):
        append(log, b"%d" % number)
    log.update_high_watermark(10)
    log.maybe_increment_log_start_offset(5, "test")
    broker.manager.shutdown()
    intact = (tmp_path / name).read_bytes()
    assert b"topic 0 " in intact
    for at in range(len(intact)):
        for damaged in (flipped(intact, at), intact[:at]):
            (tmp_path / ".kafka_cleanshutdown").unlink(missing_ok=True)
            (tmp_path / name).write_bytes(damaged)
            again = Broker(tmp_path)
            loaded = again.start().get_log(TP)
            assert loaded is not None
            served(loaded)
            again.kill()
