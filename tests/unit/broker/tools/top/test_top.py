from __future__ import annotations

import json

import pytest

from odradek.broker.tools.top.top import main
from tests.unit.broker.tools.top.test_sample import answering

ONCE = ("-b", "host:9001", "--interval", "0.01")


@pytest.fixture(autouse=True)
def _cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.broker.tools.data.client.running.SocketLink", answering().make_link)


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ONCE, "--once", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    assert found["groups"][0]["lag"] == 1
    assert [row["topic"] for row in found["topics"]] == ["t"]


def test_without_a_terminal_one_frame_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ONCE]) == 0
    assert "topics (1)" in capsys.readouterr().out


@pytest.mark.parametrize("interval", ["0", "nan", "inf"])
def test_an_interval_is_positive(interval: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([*ONCE, "--interval", interval])
