from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest

from odradek.broker.faults.http.http_api import ENTRIES_AT_ONCE, MAX_RULES_AT_ONCE, HttpApi
from tests.support.in_process.connections.faulty_dispatching import Faulty


@pytest.fixture
def broker() -> Iterator[Faulty]:
    served = Faulty()
    yield served
    served.close()


def ask(broker: Faulty, method: str, path: str, body: object = None) -> tuple[int, object]:
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    answer = HttpApi(broker.faults).answer(method, path, data)
    content = b"".join(answer.pieces())
    return answer.status, json.loads(content) if content else None


RULE = {"action": "error", "code": "UNKNOWN_MEMBER_ID", "times": 1}


def test_rules_are_added_listed_rested_and_removed(broker: Faulty) -> None:
    assert ask(broker, "POST", "/faults", RULE) == (201, {"ids": [1]})
    assert ask(broker, "POST", "/faults", [RULE, RULE]) == (201, {"ids": [2, 3]})
    assert ask(broker, "GET", "/faults/1") == (200, {"id": 1, "rule": RULE | {"name": "error"}, "met": 0, "fired": 0})
    assert ask(broker, "PUT", "/faults/1", {"enabled": False}) == (204, None)
    broker.ask()
    status, body = ask(broker, "GET", "/faults")
    assert status == 200
    assert [rule["fired"] for rule in body["faults"]] == [0, 1, 0]  # type: ignore[index, call-overload]
    assert ask(broker, "DELETE", "/faults/2") == (204, None)
    assert ask(broker, "GET", "/faults/2")[0] == 200
    assert ask(broker, "DELETE", "/faults") == (204, None)
    assert ask(broker, "GET", "/faults") == (200, {"faults": []})


def test_a_record_is_fetched_and_replayed(broker: Faulty) -> None:
    ask(broker, "POST", "/faults", RULE)
    broker.ask()
    status, record = ask(broker, "GET", "/record")
    assert status == 200
    assert ask(broker, "DELETE", "/faults") == (204, None)
    assert ask(broker, "POST", "/replay", record) == (204, None)
    status, state = ask(broker, "GET", "/replay")
    assert (state["difference"], len(state["unplayed"])) == (None, 1)  # type: ignore[index, call-overload]
    broker.ask()
    assert ask(broker, "GET", "/replay") == (200, {"difference": None, "unplayed": []})


def test_lists_in_lists_of_any_depth_are_refused_with_an_answer(broker: Faulty) -> None:
    limit = sys.getrecursionlimit()
    for depth in range(limit - 100, limit):
        body = b'{"action": "error", "code": 3, "at": %s}' % (b"[" * depth + b"]" * depth)
        assert ask(broker, "POST", "/faults", body)[0] == 400
    assert broker.faults.rules() == []


def test_long_lists_are_encoded_a_few_entries_at_a_time(broker: Faulty) -> None:
    count = 2 * ENTRIES_AT_ONCE + 1
    broker.faults.add_all([RULE] * count)
    answer = HttpApi(broker.faults).answer("GET", "/faults", b"")
    broker.faults.clear()
    pieces = list(answer.pieces())
    assert [piece.count(b'"id"') for piece in pieces] == [0, ENTRIES_AT_ONCE, ENTRIES_AT_ONCE, 1, 0]
    assert [rule["id"] for rule in json.loads(b"".join(pieces))["faults"]] == [*range(1, count + 1)]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("GET", "/", None, 404, "there are /faults"),
        ("GET", "/faults/", None, 404, "there is no rule 0"),
        ("GET", "/faults/7", None, 404, "there is no rule 7"),
        ("GET", "/faults/\u0663", None, 404, "there is no rule 0"),
        ("GET", "/faults/" + "9" * 50, None, 404, "there is no rule 0"),
        ("PATCH", "/faults", None, 405, "GET, POST, DELETE"),
        ("POST", "/faults/1", None, 405, "GET, PUT, DELETE"),
        ("POST", "/record", None, 405, "GET"),
        ("DELETE", "/replay", None, 405, "GET, POST"),
        ("POST", "/faults", b"", 400, "the body is no JSON"),
        ("POST", "/faults", b"\xff", 400, "the body is no JSON"),
        ("POST", "/faults", b"[" * 100_000, 400, "the body is no JSON"),
        ("POST", "/faults", [], 400, "a rule, or a list"),
        ("POST", "/faults", [RULE, 3], 400, "a rule, or a list"),
        ("POST", "/faults", [RULE] * (MAX_RULES_AT_ONCE + 1), 400, "a rule, or a list"),
        ("POST", "/faults", [RULE, {"action": "explode"}], 400, "action: 'explode' is none of"),
        ("PUT", "/faults/1", {"enabled": 1}, 400, "enabled"),
        ("PUT", "/faults/1", [], 400, "enabled"),
        ("POST", "/replay", {}, 400, "format"),
    ],
)
def test_what_is_refused_changes_nothing(
    broker: Faulty, method: str, path: str, body: object, status: int, said: str
) -> None:
    broker.faults.add(RULE)
    found, answer = ask(broker, method, path, body)
    assert found == status
    assert said in answer["error"]  # type: ignore[index, call-overload]
    assert [rule.id for rule in broker.faults.rules()] == [1]
