"""Gets each request of a client, finds the rule that decides about it, and does what its action says.

A request that no rule decides about is handled as usual. Another one is handled through a `FaultedRequest`, whose
answer comes back here. Until its answer is sent its connection is held, as by any request that waits, so answers stay
in order and the client sends at most one frame more. Its memory is back in the pool by then.

Requests that this broker sends to itself, and those of a SASL authentication, never come here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.faults.actions import Actions
from odradek.broker.faults.matching import Facts, RuleState, keeps
from odradek.broker.faults.record import MAX_EVENTS, MAX_TOPICS, Asked, EventKey, FaultEvent, FaultRecord
from odradek.broker.faults.rules.rule_texts import action_to_plain, rule_of
from odradek.broker.faults.rules.rules import Match, Rule, StaleMetadata
from odradek.protocol.api import API, ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.broker.apis.services import Services
    from odradek.broker.dispatch import Dispatcher
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.codec.schema import Request

MAX_CLIENTS: Final = 10_000
"""Connections that have a number, and pairs of a client id and an API whose requests are counted: clients choose both.
"""

FIRST_REPEAT: Final = 2
"""The number of the first Metadata that asks what was answered before, as `FaultEvent.call` says."""

MAX_NAME: Final = 249
"""Characters of a client id or a topic that are looked at: Kafka's longest name of a topic. Clients choose both."""


class Calls(NamedTuple):
    """The numbers of a request, as `FaultEvent.call`; 0: it has none."""

    all: int
    repeats: int
    """Of a Metadata that asks what was answered before, among these."""


class FaultInterceptor:
    """Implements `network.request_interceptor.RequestInterceptor`."""

    def __init__(self, dispatcher: Dispatcher, services: Services) -> None:
        self._dispatcher = dispatcher
        self._services = services
        self.actions = Actions(dispatcher, services)
        self._rules: tuple[RuleState, ...] = ()
        self._by_api: dict[int, tuple[RuleState, ...]] = {}
        self._connections: OrderedDict[str, int] = OrderedDict()
        self._last_connection = 0
        self._calls: dict[tuple[str, int, Asked, bool], int] = {}
        self._events: list[FaultEvent] = []
        self._is_cut_off = False
        self._replayed: dict[EventKey, FaultEvent] | None = None
        self.difference: str | None = None
        """How the requests first differed from the record that is replayed."""
        self.on_event: Callable[[FaultEvent], None] = _ignore

    # Rules, record and replay

    def set_rules(self, rules: Sequence[RuleState]) -> None:
        self._rules = tuple(rules)
        self._by_api.clear()
        self._remember_metadata()

    def begin_record(self) -> None:
        """Forget what happened; requests are counted from 1 again."""
        self._calls.clear()
        self._events = []
        self._is_cut_off = False
        self.difference = None

    def record(self) -> FaultRecord:
        return FaultRecord(events=tuple(self._events), is_cut_off=self._is_cut_off)

    def replay(self, events: Iterable[FaultEvent] | None) -> None:
        """Do what the events say to the requests that they name, and nothing else; None: use the rules again."""
        self.begin_record()
        self._replayed = None if events is None else {event.key: event for event in events}
        self.actions.forget_metadata()
        self._remember_metadata()

    def _remember_metadata(self) -> None:
        """Stale metadata is an earlier answer, so answers are kept before a rule or an event needs one."""
        if self._replayed is None:
            actions = [each.rule.action for each in self._rules]
        else:
            actions = [rule_of(event.fault).action for event in self._replayed.values()]
        self.actions.remembers_metadata = any(isinstance(each, StaleMetadata) for each in actions)

    @property
    def unplayed(self) -> list[FaultEvent]:
        """Events of the record whose requests have not come."""
        return list((self._replayed or {}).values())

    # Requests

    def handle(self, ctx: RequestContext, request: Request) -> None:
        if ctx.connection.is_own_broker:
            self._dispatcher.apply(ctx, request)
            return
        calls = self._count(ctx, request)
        rules = None if self._replayed is not None else self._rules_of(ctx.header.api_key)
        if rules == ():
            self.actions.nothing(ctx, request)
            return
        facts = self._facts(ctx, request)
        if rules is None:
            self._play(ctx, request, facts, calls)
            return
        now_ms = self._services.clock.monotonic_ms()
        for state in rules:
            if state.fires(facts, now_ms):
                if self.actions.do(state.rule.action, keeps(state.rule.match), ctx, request):
                    state.events += self._note(facts, calls, state.rule, state.rule.name or str(state.id))
                else:
                    state.fired -= 1
                return
        self.actions.nothing(ctx, request)

    def _play(self, ctx: RequestContext, request: Request, facts: Facts, calls: Calls) -> None:
        event = self._event_for(facts, calls)
        if event is not None and self.difference is None:
            seen = (facts.header.api_version, _topics(facts))
            if seen == (event.version, event.topics):
                rule = rule_of(event.fault)
                is_done = self.actions.do(rule.action, keeps(rule.match), ctx, request)
                assert is_done, "a Metadata has the number of a repeat only if there is an answer to repeat"
                self._note(facts, calls, rule, event.rule)
                return
            self.difference = (
                f"request {event.call} of {event.api} from {facts.header.client_id!r} was version {event.version} with "
                f"the topics {list(event.topics)} when it was recorded, and is version {seen[0]} with {list(seen[1])}"
            )
        self.actions.nothing(ctx, request)

    def _event_for(self, facts: Facts, calls: Calls) -> FaultEvent | None:
        """Take the event of this request out of those that are to be replayed."""
        assert self._replayed is not None
        client_id, api = facts.header.client_id[:MAX_NAME], API[facts.header.api_key].name
        asked = _asked(facts)
        event = self._replayed.pop((client_id, api, asked, False, calls.all), None)
        if event is None and calls.repeats:
            event = self._replayed.pop((client_id, api, asked, True, calls.repeats), None)
        return event

    def _rules_of(self, key: int) -> tuple[RuleState, ...]:
        found = self._by_api.get(key)
        if found is None:
            found = tuple(each for each in self._rules if each.rule.match.apis is None or key in each.rule.match.apis)
            self._by_api[key] = found
        return found

    def _facts(self, ctx: RequestContext, request: Request) -> Facts:
        connection = ctx.connection
        address = f"{connection.client_host}:{connection.client_port}"
        return Facts(
            ctx.header,
            request,
            principal=connection.principal,
            connection=self._number_of(address),
            address=address,
            topic_name=self._services.metadata_cache.topic_name,
            of_session=self.actions.partitions_of_session(request) if ctx.header.api_key == ApiKey.FETCH else (),
        )

    def _number_of(self, address: str) -> int:
        number = self._connections.get(address)
        if number is None:
            self._last_connection += 1
            number = self._connections[address] = self._last_connection
            if len(self._connections) > MAX_CLIENTS:
                self._connections.popitem(last=False)
        return number

    def _count(self, ctx: RequestContext, request: Request) -> Calls:
        """The numbers of the request."""
        name, key = ctx.header.client_id[:MAX_NAME], ctx.header.api_key
        if key != ApiKey.METADATA:
            return Calls(self._next((name, key, (), False), 1), 0)
        asked = _asked(self._facts(ctx, request))
        call = self._next((name, key, asked, False), 1)
        is_repeat = self.actions.has_answered(ctx, request)
        return Calls(call, self._next((name, key, asked, True), FIRST_REPEAT) if is_repeat else 0)

    def _next(self, key: tuple[str, int, Asked, bool], first: int) -> int:
        """The next number of this kind of requests; 0 when there are too many kinds."""
        call = self._calls.get(key)
        if call is None and len(self._calls) >= MAX_CLIENTS:
            return 0
        self._calls[key] = call = first if call is None else call + 1
        return call

    def _note(self, facts: Facts, calls: Calls, rule: Rule, name: str) -> list[FaultEvent]:
        """The event that is recorded; none if the record is full."""
        if len(self._events) >= MAX_EVENTS:
            self._is_cut_off = True
            return []
        header = facts.header
        event = FaultEvent(
            number=len(self._events) + 1,
            rule=name,
            client_id=header.client_id[:MAX_NAME],
            api=API[header.api_key].name,
            version=header.api_version,
            call=calls.repeats if isinstance(rule.action, StaleMetadata) else calls.all,
            topics=_topics(facts),
            all_topics=header.api_key == ApiKey.METADATA and facts.means_all_topics,
            connection=facts.connection,
            correlation_id=header.correlation_id,
            fault=action_to_plain(rule.action) | _part_of(rule.match),
        )
        self._events.append(event)
        self.on_event(event)
        return [event]


def _topics(facts: Facts) -> tuple[str, ...]:
    return tuple(sorted({topic[:MAX_NAME] for topic, _ in facts.partitions})[:MAX_TOPICS])


def _asked(facts: Facts) -> Asked:
    if facts.header.api_key != ApiKey.METADATA:
        return ()
    return None if facts.means_all_topics else _topics(facts)


def _part_of(match: Match) -> dict[str, object]:
    """Which topic and partition of a request the action is for."""
    if match.topic is None:
        return {}
    return {"topic": match.topic} | ({} if match.partition is None else {"partition": match.partition})


def _ignore(event: FaultEvent) -> None:
    """Takes the place of `on_event` where nobody waits for faults."""
