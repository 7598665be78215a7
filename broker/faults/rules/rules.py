"""What a fault is, as values: which requests it meets (`Match`), and what happens to them (an action).

A rule is evaluated on each request of a client, in the order in which the rules were added; the first one that fires
decides. A rule *meets* a request when all conditions of its `Match` on the request hold; `nth`, `every`, `probability`
and `times` then decide whether it *fires*. They count only requests that the rule has met, so the same sequence of
requests always has the same faults.

Kafka has nothing like it for users; its own tests replace parts of the client or of the broker (MockClient,
NetworkClientTest).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.field import VersionRange
from odradek.protocol.errors import ErrorCode

ALWAYS: Final = 1.0

MAX_DELAY_MS: Final = 24 * 60 * 60 * 1000
"""Of one delay or throttle time."""

MAX_AGE_MS: Final = 365 * 24 * 60 * 60 * 1000
"""Of a rule, where its conditions name one."""


class Level(Enum):
    """Where in a response an error code is."""

    TOP = "top"
    """A field of the response itself."""
    ENTRY = "entry"
    """An entry of a list that stands for anything else than a partition: a topic, a group, a resource."""
    PARTITION = "partition"
    """An entry with the index of a partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Conditions that all hold for a request; None: any value."""

    apis: frozenset[ApiKey] | None = None
    versions: VersionRange | None = None
    topic: str | None = None
    """A request without topics is never met. One that means all topics (Metadata) is met."""
    partition: int | None = None
    client_id: str | None = None
    principal: str | None = None
    """`User:name`."""
    connection: int | str | None = None
    """The number of the connection, counted from 1 as faults see them first, or its address `host:port`."""
    nth: int | None = None
    """Only this request of those that are met, counted from 1."""
    every: int | None = None
    """Each such request: 2 is the second, the fourth, ..."""
    probability: float = ALWAYS
    seed: int = 0
    """Of the random numbers of `probability`."""
    times: int | None = None
    """At most so often."""
    after_ms: int = 0
    """Not before the rule is so old, by the broker's clock."""
    until_ms: int | None = None
    """Not when the rule is older."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """An error code in the answer, where the API has one."""

    code: ErrorCode
    at: Level | None = None
    """None: where Kafka has the code in an answer to a request that failed."""
    applied: bool = False
    """The request takes effect nevertheless. Without it only requests that read do."""
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """The answer comes later; with `before`, the request takes effect later too."""

    ms: int
    before: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """The connection is closed instead of an answer. `reset`: the client gets a RST and no orderly end."""

    applied: bool = False
    """The request takes effect first."""
    reset: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BlackHole:
    """No answer ever comes, and the connection stays open."""

    applied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfAnswer:
    """A whole frame whose size is right, with the first `bytes` of the answer only (None: half of them)."""

    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfFrame:
    """The first `bytes` of the frame (None: half of them); then the connection is closed, or stays open and silent."""

    bytes: int | None = None
    close: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowBytes:
    """The answer comes at this rate."""

    bytes_per_second: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """The request takes effect twice, as if the network had repeated it. The client gets the second answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorruptCrc:
    """One byte of each fetched batch is changed, so that its checksum is wrong. Only Fetch has batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleMetadata:
    """The answer to the previous Metadata request with the same question. The first one is answered as usual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle:
    """A throttle time in the answer, and a connection that is muted for that time, as by a quota."""

    ms: int
    mute: bool = True


Action: TypeAlias = (
    Error
    | Delay
    | Drop
    | BlackHole
    | HalfAnswer
    | HalfFrame
    | SlowBytes
    | Duplicate
    | CorruptCrc
    | StaleMetadata
    | Throttle
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A match and its action. `name` is for people."""

    match: Match
    action: Action
    name: str = ""
    is_enabled: bool = True


READING: Final = frozenset(
    {
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.OFFSET_FETCH,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.DESCRIBE_CLUSTER,
    }
)
"""APIs that change nothing: an error is put into the real answer, so that the rest of it is true."""
