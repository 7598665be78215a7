"""What faults did, as a value that can be stored and replayed.

A request is identified by its client id, its API and how many requests of this client id and API came before it. That
is the same in two runs of a test, while correlation ids, ports and the order among clients may differ. Requests for
metadata are told apart further, because clients send them at times of their own: see `FaultEvent.call`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from odradek.broker.faults.rules.rule_texts import INT_MAX, TEXT_MAX, Plain, RuleError, api_key, rule_of

FORMAT_VERSION: Final = 1

MAX_EVENTS: Final = 50_000
"""Of a record. Later faults happen and are not recorded."""

MAX_TOPICS: Final = 10
"""Topics of a request that an event names."""

_KEYS: Final = (
    "number",
    "rule",
    "client_id",
    "api",
    "version",
    "call",
    "topics",
    "connection",
    "correlation_id",
    "fault",
)

_LATER_KEYS: Final = ("all_topics",)
"""That records from before do not have."""

Asked = tuple[str, ...] | None
"""What a Metadata request asks for: the first topics that it names, sorted; None: all topics, as in the protocol. Empty
for requests of other APIs.
"""

EventKey = tuple[str, str, Asked, bool, int]

_STALE_METADATA: Final = "stale_metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultEvent:
    """A request that a rule changed."""

    number: int
    """Of the event, from 1."""
    rule: str
    """Its name, or its number."""
    client_id: str
    api: str
    version: int
    call: int
    """Of the requests of this client id and API, from 1. A Metadata counts among those with the same topics: a client
    that connects asks for the brokers at a moment of its own. One that is answered with stale metadata counts among
    those that asked what had been answered before, from 2: all that came before them are the first, because it depends
    on the time that an answer takes how often a client asks until it has one.
    """
    topics: tuple[str, ...]
    """The first topics that the request names, sorted."""
    all_topics: bool = False
    """A Metadata for all topics, which names none."""
    connection: int
    correlation_id: int
    fault: Plain
    """The action, and the topic and partition that it is for, as `rule_texts.rule_of` reads them."""

    @property
    def key(self) -> EventKey:
        """What a request has that is answered as recorded: client id, API, what a Metadata asks for, whether `call`
        counts those that were answered before, `call`.
        """
        asked = () if self.api != "Metadata" else None if self.all_topics else self.topics
        return self.client_id, self.api, asked, self.fault["action"] == _STALE_METADATA, self.call

    def to_plain(self) -> Plain:
        return {key: getattr(self, key) for key in (*_KEYS, *_LATER_KEYS)} | {"topics": list(self.topics)}


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord:
    """The events in the order in which they happened."""

    events: tuple[FaultEvent, ...] = ()
    is_cut_off: bool = False
    """There were more than `MAX_EVENTS`."""

    def header(self) -> Plain:
        """The plain form without the events."""
        return {"format": FORMAT_VERSION, "cut_off": self.is_cut_off}

    def to_plain(self) -> Plain:
        return self.header() | {"events": [event.to_plain() for event in self.events]}

    def to_json(self) -> str:
        return json.dumps(self.to_plain(), indent=1)

    def sequence(self) -> list[tuple[str, str, int, str]]:
        """What two runs of a test have in common: client id, API, number of the call, and the action."""
        return [(event.client_id, event.api, event.call, str(event.fault["action"])) for event in self.events]

    @staticmethod
    def of_json(text: str) -> FaultRecord:
        """Raises: RuleError."""
        try:
            return FaultRecord.of_plain(json.loads(text))
        except (json.JSONDecodeError, RecursionError) as error:
            raise RuleError("", f"is no JSON: {str(error)[:200]}") from None

    @staticmethod
    def of_plain(plain: object) -> FaultRecord:
        """Raises: RuleError."""
        if not isinstance(plain, Mapping) or plain.get("format") != FORMAT_VERSION:
            raise RuleError("format", f"is not {FORMAT_VERSION}")
        events = plain.get("events")
        if not isinstance(events, Sequence) or isinstance(events, str) or len(events) > MAX_EVENTS:
            raise RuleError("events", f"is no list of at most {MAX_EVENTS} events")
        return FaultRecord(
            events=tuple(_event(event, f"events[{index}]") for index, event in enumerate(events)),
            is_cut_off=plain.get("cut_off") is True,
        )


def _event(plain: object, where: str) -> FaultEvent:
    if not isinstance(plain, Mapping) or {*plain.keys(), *_LATER_KEYS} != {*_KEYS, *_LATER_KEYS}:
        raise RuleError(where, f"has not exactly the keys {', '.join(sorted((*_KEYS, *_LATER_KEYS)))}")
    topics, fault = plain["topics"], plain["fault"]
    if not isinstance(topics, list) or not all(isinstance(topic, str) for topic in topics):
        raise RuleError(f"{where}.topics", "is no list of texts")
    all_topics = plain.get("all_topics", None if plain["api"] == "Metadata" and not topics else False)
    if not isinstance(all_topics, bool):
        raise RuleError(f"{where}.all_topics", "is neither true nor false, and the request names no topics")
    if not isinstance(fault, Mapping):
        raise RuleError(f"{where}.fault", "is no object")
    api_key(plain["api"])
    rule_of(fault)
    numbers = {name: _whole(plain[name], f"{where}.{name}") for name in ("number", "version", "call", "connection")}
    return FaultEvent(
        rule=_text(plain["rule"], f"{where}.rule"),
        client_id=_text(plain["client_id"], f"{where}.client_id"),
        api=_text(plain["api"], f"{where}.api"),
        topics=tuple(topics),
        all_topics=all_topics,
        correlation_id=_whole(plain["correlation_id"], f"{where}.correlation_id", -INT_MAX - 1),
        fault=dict(fault),
        number=numbers["number"],
        version=numbers["version"],
        call=numbers["call"],
        connection=numbers["connection"],
    )


def _whole(value: object, where: str, low: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= INT_MAX:
        raise RuleError(where, "is no whole number that fits")
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or len(value) > TEXT_MAX:
        raise RuleError(where, "is no text that fits")
    return value
