from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.faults.fault_setup import FaultSetup
from odradek.broker.machine.startup_error import StartupError
from tests.support.in_process.connections.faulty_dispatching import Faulty


@pytest.fixture
def broker() -> Iterator[Faulty]:
    served = Faulty()
    yield served
    served.close()


def test_the_rules_of_the_file_are_in_force_and_the_log_is_loud(
    broker: Faulty, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text("faults:\n  - action: drop\n  - action: reset\n")

    async def main() -> None:
        setup = FaultSetup(str(file), "127.0.0.1:0")
        await setup.start(broker.faults, broker.timer)
        await setup.close()

    asyncio.run(main())
    assert [rule.rule["name"] for rule in broker.faults.rules()] == ["drop", "reset"]
    assert "FAULTS ARE ON: this broker fails on purpose" in caplog.text
    assert "2 faults of" in caplog.text
    assert "without authentication, at http://127.0.0.1:" in caplog.text
    assert {record.levelname for record in caplog.records if record.name.startswith("odradek.broker.faults")} == {
        "WARNING"
    }


def test_what_cannot_be_used_is_refused_before_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartupError):
        FaultSetup(str(tmp_path / "none.yaml"), None)
    with pytest.raises(StartupError):
        FaultSetup(None, "0.0.0.0:80")
