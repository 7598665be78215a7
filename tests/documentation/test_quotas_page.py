"""The example of docs/quotas.md is a module that a broker loads, and it limits what the page says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.quotas.quota_managers import CALLBACK_KEY, QuotaManagers
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.documentation.pages import REPOSITORY
from tests.documentation.test_policies_page import EXAMPLE


def test_the_example_shares_bytes_within_a_team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ((key, path, module, code),) = EXAMPLE.findall((REPOSITORY / "docs" / "quotas.md").read_text("utf-8"))
    assert key == CALLBACK_KEY
    (tmp_path / f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    clock = ManualClock()
    config = BrokerConfig({key: path, "team.bytes.per.second": "100"})
    try:
        quotas = QuotaManagers(config, clock, SystemTimer(clock))
    finally:
        sys.modules.pop(module, None)
    assert quotas.produce.record_and_get_throttle_time_ms("User:a", "sales.app", 2_000) == 10_000
    assert quotas.produce.record_and_get_throttle_time_ms("User:b", "sales.other", 0) == 10_000
    assert quotas.produce.record_and_get_throttle_time_ms("User:b", "stock.app", 1_000) == 0
    assert quotas.request.record_and_get_throttle_time_ms("User:a", "sales.app", 1_000) == 0
