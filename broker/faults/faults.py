"""The faults of one broker: the rules that are in force, what they have done, records and replays.

Before the first rule or replay the broker's dispatcher does not know of it. That puts an interceptor before the
handlers, which counts requests, and `clear` takes it away again.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from odradek.broker.faults.interceptor import FaultInterceptor
from odradek.broker.faults.matching import RuleState, new_state
from odradek.broker.faults.rules.rule_texts import Plain, RuleError, rule_of, rule_to_plain
from odradek.broker.faults.rules.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from odradek.broker.apis.services import Services
    from odradek.broker.dispatch import Dispatcher
    from odradek.broker.faults.record import FaultEvent, FaultRecord

logger = logging.getLogger(__name__)

MAX_RULES: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleStatus:
    """A rule in force."""

    id: int
    rule: Plain
    """As `rule_texts.rule_of` reads it."""
    met: int
    """Requests that fulfilled all its conditions but `nth`, `every` and `probability`."""
    fired: int

    def to_plain(self) -> Plain:
        return {"id": self.id, "rule": self.rule, "met": self.met, "fired": self.fired}


class Faults:
    """The faults of one broker. Not for threads other than that of the broker's event loop."""

    def __init__(self, dispatcher: Dispatcher, services: Services) -> None:
        self._dispatcher = dispatcher
        self._clock = services.clock
        self._interceptor = FaultInterceptor(dispatcher, services)
        self._interceptor.on_event = self._happened
        self._rules: dict[int, RuleState] = {}
        self._last_id = 0
        self._removed: dict[int, RuleState] = {}
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._counts_requests = False
        """Since the first rule, until `clear`: a record says which request of a client something happened to."""

    # Rules

    def add(self, rule: Rule | Mapping[str, object]) -> int:
        """Put a rule into force, after the others. Returns its number. Raises: RuleError."""
        return self.add_all([rule])[0]

    def add_all(self, rules: Sequence[Rule | Mapping[str, object]]) -> list[int]:
        """Put some rules into force, or none of them. Returns their numbers. Raises: RuleError."""
        if len(self._rules) + len(rules) > MAX_RULES:
            raise RuleError("", f"there may be {MAX_RULES} rules, and there are {len(self._rules)}")
        added = []
        for rule in [each if isinstance(each, Rule) else rule_of(each) for each in rules]:
            self._last_id += 1
            state = self._rules[self._last_id] = new_state(self._last_id, rule, self._clock.monotonic_ms())
            added.append(state.id)
            logger.warning("Fault %d added: %s", state.id, rule_to_plain(rule))
        self._counts_requests |= bool(added)
        self._changed()
        return added

    def remove(self, number: int) -> bool:
        """Whether the rule was in force. What it has delayed still comes."""
        state = self._rules.pop(number, None)
        if state is None:
            return False
        self._removed[number] = state
        while len(self._removed) > MAX_RULES:
            del self._removed[next(iter(self._removed))]
        self._changed()
        logger.warning("Fault %d removed; it fired %d times", number, state.fired)
        return True

    def enable(self, number: int, *, enabled: bool) -> None:
        """Raises: RuleError if there is no such rule."""
        state = self._known(number)
        state.rule = replace(state.rule, is_enabled=enabled)

    def clear(self) -> None:
        """Remove all rules, forget what happened, end a replay. Delayed answers still come."""
        if self._rules:
            fired = sum(state.fired for state in self._rules.values())
            logger.warning("All %d faults removed; they fired %d times", len(self._rules), fired)
        self._rules.clear()
        self._removed.clear()
        self._interceptor.replay(None)
        self._counts_requests = False
        self._changed()

    def rules(self) -> list[RuleStatus]:
        return list(self.iter_rules())

    def iter_rules(self) -> Iterator[RuleStatus]:
        """The rules that are in force now; the status of each is made when it is asked for."""
        return map(_status, tuple(self._rules.values()))

    def status(self, number: int) -> RuleStatus:
        """Of a rule, also one that is removed. Raises: RuleError if there was none."""
        return _status(self._known(number))

    # What happened

    def record(self) -> FaultRecord:
        """What happened since the first rule was added, or since `clear`."""
        return self._interceptor.record()

    def events(self, number: int) -> list[FaultEvent]:
        """What one rule did."""
        return list(self._known(number).events)

    async def wait_fired(self, number: int, times: int) -> None:
        """Return when the rule has fired so often. Raises: RuleError if there is no such rule."""
        if self._known(number).fired >= times:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((number, times, future))
        await future

    def replay(self, record: FaultRecord) -> None:
        """Do what the record says to the same requests; the rules rest until `clear`. Requests count from now on."""
        self._interceptor.replay(record.events)
        self._counts_requests = True
        self._changed()

    @property
    def difference(self) -> str | None:
        """How the requests first differed from the record that is replayed; None while they do not."""
        return self._interceptor.difference

    @property
    def unplayed(self) -> list[FaultEvent]:
        """Events of the record that is replayed whose requests have not come."""
        return self._interceptor.unplayed

    def close(self) -> None:
        """The broker stops: delayed answers are given up."""
        self._dispatcher.intercept(None)
        self._interceptor.actions.close()

    def _changed(self) -> None:
        self._interceptor.set_rules(list(self._rules.values()))
        self._dispatcher.intercept(self._interceptor if self._counts_requests else None)

    def _known(self, number: int) -> RuleState:
        state = self._rules.get(number) or self._removed.get(number)
        if state is None:
            raise RuleError("", f"there is no rule {number}")
        return state

    def _happened(self, event: FaultEvent) -> None:
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        for number, times, future in waiting:
            if future.done():
                continue
            state = self._rules.get(number) or self._removed.get(number)
            if state is None or state.fired >= times:
                future.set_result(None)
            else:
                self._waiting.append((number, times, future))


def _status(state: RuleState) -> RuleStatus:
    return RuleStatus(id=state.id, rule=rule_to_plain(state.rule), met=state.met, fired=state.fired)
