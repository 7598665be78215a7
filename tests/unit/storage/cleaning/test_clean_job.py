from __future__ import annotations

from pathlib import Path

import pytest

from odradek.storage.cleaning.log_cleaning import LogCleaning
from odradek.storage.disk.throttle import Throttle
from tests.support.compaction.compaction import BareLog


def test_the_io_of_a_compaction_is_what_its_throttle_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    amounts: list[int] = []
    monkeypatch.setattr(Throttle, "maybe_throttle", lambda throttle, amount: amounts.append(amount))
    log = BareLog(tmp_path)
    for key in (b"a", b"b", b"a"):
        log.write((key, b"value"))
    log.roll()
    stats = LogCleaning(log.job(), log.disk.environment, lambda ms: None).run().stats
    assert stats.io_bytes == sum(amounts) > stats.bytes_read > stats.bytes_written > 0
