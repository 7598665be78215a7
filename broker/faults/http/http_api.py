"""The interface to faults for other languages: paths, methods and JSON, without sockets.

| method and path | what it does |
| --- | --- |
| `GET /faults` | the rules in force, with what they did |
| `POST /faults` | add a rule, or a list of rules |
| `DELETE /faults` | remove all rules, forget what happened, end a replay |
| `GET /faults/NUMBER` | one rule, also after it was removed |
| `PUT /faults/NUMBER` | `{"enabled": false}` lets the rule rest |
| `DELETE /faults/NUMBER` | remove it |
| `GET /record` | what happened |
| `POST /replay` | replay a record |
| `GET /replay` | how the requests differ from the record |
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.faults.record import FaultRecord
from odradek.broker.faults.rules.rule_texts import RuleError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from odradek.broker.faults.faults import Faults
    from odradek.broker.faults.rules.rule_texts import Plain

MAX_RULES_AT_ONCE: Final = 1_000

RULES: Final = "/faults"
"""The path of all rules."""


ENTRIES_AT_ONCE: Final = 20
"""Entries of a list that are encoded in one turn of the event loop; those with the longest texts take 20 ms."""


class Entries(NamedTuple):
    """A list that may be long, under its key. The entries are made when they are sent."""

    key: str
    values: Iterable[Plain]


class Answer(NamedTuple):
    """A status and a body that is JSON; None: no body. `entries` are one more key of the body."""

    status: int
    body: Plain | None = None
    entries: Entries | None = None

    def pieces(self) -> Iterator[bytes]:
        """The encoded body. Other work may come between two pieces."""
        if self.entries is None:
            if self.body is not None:
                yield json.dumps(self.body).encode() + b"\n"
            return
        start = json.dumps({**(self.body or {}), self.entries.key: []})
        yield start.removesuffix("]}").encode()
        values, separator = iter(self.entries.values), ""
        while some := list(islice(values, ENTRIES_AT_ONCE)):
            yield (separator + ", ".join(map(json.dumps, some))).encode()
            separator = ", "
        yield b"]}\n"


class HttpApi:
    """Answers requests."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def answer(self, method: str, path: str, body: bytes) -> Answer:
        """Do what a request asks for. What it says wrongly is an answer with status 400."""
        try:
            if path == RULES:
                return self._all(method, body)
            if path.startswith(f"{RULES}/"):
                return self._one(method, path.removeprefix(f"{RULES}/"), body)
            if path == "/record":
                return self._record() if method == "GET" else _no_method("GET")
            if path == "/replay":
                return self._replay(method, body)
        except RuleError as error:
            return Answer(400, {"error": str(error), "key": error.key})
        except RecursionError:  # the text of a value that is refused takes a few levels more than its JSON
            return Answer(400, {"error": "the body has too many lists in lists", "key": ""})
        return Answer(404, {"error": "there are /faults, /faults/NUMBER, /record and /replay"})

    def _all(self, method: str, body: bytes) -> Answer:
        match method:
            case "GET":
                return Answer(200, {}, Entries("faults", (status.to_plain() for status in self._faults.iter_rules())))
            case "POST":
                return Answer(201, {"ids": self._faults.add_all(_rules(_json(body)))})
            case "DELETE":
                self._faults.clear()
                return Answer(204)
        return _no_method("GET, POST, DELETE")

    def _one(self, method: str, text: str, body: bytes) -> Answer:
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
        try:
            status = self._faults.status(number)
        except RuleError as error:
            return Answer(404, {"error": str(error)})
        match method:
            case "GET":
                return Answer(200, status.to_plain())
            case "DELETE":
                self._faults.remove(number)
                return Answer(204)
            case "PUT":
                plain = _json(body)
                enabled = plain.get("enabled") if isinstance(plain, dict) and len(plain) == 1 else None
                if not isinstance(enabled, bool):
                    raise RuleError("enabled", "is the only key here, and is true or false")
                self._faults.enable(number, enabled=enabled)
                return Answer(204)
        return _no_method("GET, PUT, DELETE")

    def _record(self) -> Answer:
        record = self._faults.record()
        return Answer(200, record.header(), Entries("events", (event.to_plain() for event in record.events)))

    def _replay(self, method: str, body: bytes) -> Answer:
        if method == "POST":
            self._faults.replay(FaultRecord.of_plain(_json(body)))
            return Answer(204)
        if method == "GET":
            unplayed = Entries("unplayed", (event.to_plain() for event in self._faults.unplayed))
            return Answer(200, {"difference": self._faults.difference}, unplayed)
        return _no_method("GET, POST")


def _rules(plain: object) -> list[dict[str, object]]:
    """Raises: RuleError."""
    given: list[object] = plain if isinstance(plain, list) else [plain]
    rules = [rule for rule in given if isinstance(rule, dict)]
    if not rules or len(rules) < len(given) or len(rules) > MAX_RULES_AT_ONCE:
        raise RuleError("", f"a rule, or a list of at most {MAX_RULES_AT_ONCE} rules, is expected")
    return rules


def _no_method(allowed: str) -> Answer:
    return Answer(405, {"error": f"the methods here are {allowed}"})


def _json(body: bytes) -> object:
    """Raises: RuleError."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RuleError("", f"the body is no JSON: {str(error)[:200]}") from None
