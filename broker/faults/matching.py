"""Which rule a request meets, and whether that rule fires: pure decisions, which depend on nothing but the sequence of
requests, the clock that is passed in, and the seeds of the rules.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from odradek.broker.faults.answers.answer_errors import deepest, levels
from odradek.broker.faults.request_topics import Keep, TopicName, means_all_topics, topics_of
from odradek.broker.faults.rules.rules import ALWAYS, CorruptCrc, Error, Level, Match, Rule, StaleMetadata
from odradek.protocol.api import API, ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.broker.faults.record import FaultEvent
    from odradek.protocol.codec.schema import Request
    from odradek.protocol.headers import RequestHeader


class Facts:
    """What conditions are about, of one request. Topics are looked for when a condition first needs them."""

    def __init__(
        self,
        header: RequestHeader,
        request: Request,
        *,
        principal: str,
        connection: int,
        address: str,
        topic_name: TopicName,
        of_session: Iterable[tuple[str, int | None]] = (),
    ) -> None:
        """`of_session`: the partitions that a Fetch means without naming them."""
        self.header = header
        self.request = request
        self.principal = principal
        self.connection = connection
        self.address = address
        self.topic_name = topic_name
        self._of_session = of_session

    @cached_property
    def partitions(self) -> frozenset[tuple[str, int | None]]:
        return frozenset(topics_of(self.request, self.topic_name)) | frozenset(self._of_session)

    @cached_property
    def means_all_topics(self) -> bool:
        return means_all_topics(self.request, self.header.api_version)

    @property
    def has_topics(self) -> bool:
        return self.means_all_topics or bool(self.partitions)

    def names(self, keep: Keep) -> bool:
        return self.means_all_topics or any(keep(topic, index) for topic, index in self.partitions)


@dataclass(slots=True)
class RuleState:
    """A rule, and what it has done."""

    id: int
    rule: Rule
    added_ms: int
    """By the monotonic clock of the broker."""
    rng: random.Random
    met: int = 0
    fired: int = 0
    events: list[FaultEvent] = field(default_factory=list)

    def fires(self, facts: Facts, now_ms: int) -> bool:
        """Whether the rule decides about this request; it counts it then."""
        rule = self.rule
        match = rule.match
        if not rule.is_enabled or (match.times is not None and self.fired >= match.times):
            return False
        age_ms = now_ms - self.added_ms
        if age_ms < match.after_ms or (match.until_ms is not None and age_ms > match.until_ms):
            return False
        if not (_meets(match, facts) and _has_effect(rule, facts)):
            return False
        self.met += 1
        if match.nth is not None and self.met != match.nth:
            return False
        if match.every is not None and self.met % match.every:
            return False
        if match.probability < ALWAYS and self.rng.random() >= match.probability:
            return False
        self.fired += 1
        return True


def new_state(number: int, rule: Rule, now_ms: int) -> RuleState:
    return RuleState(number, rule, now_ms, random.Random(rule.match.seed))


def keeps(match: Match) -> Keep | None:
    """Which topics and partitions the rule is for; None: all."""
    if match.topic is None:
        return None
    return lambda topic, index: topic == match.topic and (match.partition in (None, index) or index is None)


def level_of(action: Error, key: ApiKey, version: int) -> Level | None:
    """Where the code goes in this version of the API; None: it has no place for it."""
    found = levels(API[key].response_type(), version)
    return deepest(found) if action.at is None else action.at if action.at in found else None


def _meets(match: Match, facts: Facts) -> bool:
    header = facts.header
    if match.apis is not None and header.api_key not in match.apis:
        return False
    if match.versions is not None and not match.versions.covers(header.api_version):
        return False
    if match.client_id is not None and header.client_id != match.client_id:
        return False
    if match.principal is not None and facts.principal != match.principal:
        return False
    if match.connection is not None and match.connection not in (facts.connection, facts.address):
        return False
    keep = keeps(match)
    return keep is None or facts.names(keep)


def _has_effect(rule: Rule, facts: Facts) -> bool:
    """Whether the API, in this version, has what the action changes, and the answer has such an entry.

    Clients may begin with a Metadata that names no topics: an error of topics has no place in its answer.
    """
    action, key = rule.action, ApiKey(facts.header.api_key)
    if isinstance(action, StaleMetadata):
        return key is ApiKey.METADATA
    if isinstance(action, CorruptCrc):
        return key is ApiKey.FETCH
    if isinstance(action, Error):
        level = level_of(action, key, facts.header.api_version)
        is_of_topics = level is Level.PARTITION or (level is Level.ENTRY and key is ApiKey.METADATA)
        return facts.has_topics if is_of_topics else level is not None
    return True
