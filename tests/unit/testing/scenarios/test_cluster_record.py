from __future__ import annotations

import json

import pytest

from odradek.testing.scenarios.cluster_record import ARGUMENTS, ClusterPort, ClusterRecord, ClusterStep

STEP = {"when": "begin", "do": "kill", "arguments": {"broker_id": 1}}


def text(*steps: object, **keys: object) -> str:
    return json.dumps({"format": 1, "steps": steps} | keys)


def test_a_record_is_read_as_it_was_written() -> None:
    record = ClusterRecord(
        (
            ClusterStep("begin", "partition", {"groups": [[0], [1, 2]], "without_zookeeper": []}),
            ClusterStep("meanwhile", "move_leader", {"topic": "t", "partition": 0, "to": 2}),
            ClusterStep("end", "heal", {}),
        )
    )
    assert ClusterRecord.of_json(record.to_json()) == record


def test_every_step_is_a_method_of_a_cluster() -> None:
    assert all(hasattr(ClusterPort, name) for name in ARGUMENTS)


@pytest.mark.parametrize(
    "wrong",
    [
        "[]",
        "no JSON",
        text(STEP, format=2),
        text(STEP | {"do": "stop"}),
        text(STEP | {"when": "later"}),
        text(STEP | {"arguments": {}}),
        text(STEP | {"arguments": 1}),
        text(1),
        text({"do": "heal"}),
    ],
)
def test_what_is_no_record_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"step|format|Expecting"):
        ClusterRecord.of_json(wrong)
