"""Faults by the names that people look for: each stands for an action, some APIs and an error code.

Further keys add to a shorthand or replace what it has: `{"action": "not_leader", "topic": "t", "times": 2}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

_GROUP_APIS: Final = (
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "LeaveGroup",
    "OffsetCommit",
    "OffsetFetch",
    "TxnOffsetCommit",
)
_TRANSACTION_APIS: Final = ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn")
_LEADER_APIS: Final = ("Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch", "DeleteRecords")


class Shorthand(NamedTuple):
    """`first` is the key that a positional argument stands for."""

    first: str
    keys: Mapping[str, object]


def _error(code: str, *apis: str, first: str = "topic", **keys: object) -> Shorthand:
    return Shorthand(first, {"action": "error", "code": code, "api": list(apis), **keys})


SHORTHANDS: Final[Mapping[str, Shorthand]] = {
    "not_leader": _error("NOT_LEADER_OR_FOLLOWER", *_LEADER_APIS),
    "leader_not_available": _error("LEADER_NOT_AVAILABLE", "Metadata", at="partition"),
    "unknown_topic": _error("UNKNOWN_TOPIC_OR_PARTITION", "Metadata", "Produce", "Fetch"),
    "coordinator_moved": _error("NOT_COORDINATOR", *_GROUP_APIS, *_TRANSACTION_APIS, first="api"),
    "coordinator_loading": _error("COORDINATOR_LOAD_IN_PROGRESS", *_GROUP_APIS, *_TRANSACTION_APIS, first="api"),
    "coordinator_not_available": _error("COORDINATOR_NOT_AVAILABLE", "FindCoordinator", first="api"),
    "isr_shrunk": _error("NOT_ENOUGH_REPLICAS", "Produce"),
    "isr_shrunk_after_append": _error("NOT_ENOUGH_REPLICAS_AFTER_APPEND", "Produce", applied=True),
    "offset_out_of_range": _error("OFFSET_OUT_OF_RANGE", "Fetch"),
    "producer_fenced": _error("PRODUCER_FENCED", *_TRANSACTION_APIS, first="api"),
    "invalid_producer_epoch": _error("INVALID_PRODUCER_EPOCH", "Produce", "TxnOffsetCommit"),
    "rebalance": _error("REBALANCE_IN_PROGRESS", "Heartbeat", "OffsetCommit", "SyncGroup", first="api"),
    "member_kicked": _error("UNKNOWN_MEMBER_ID", "Heartbeat", "OffsetCommit", "SyncGroup", first="api"),
    "storage_error": _error("KAFKA_STORAGE_ERROR", "Produce", "Fetch"),
    "not_authorized": _error("TOPIC_AUTHORIZATION_FAILED", "Produce", "Fetch", "Metadata"),
    "not_controller": _error("NOT_CONTROLLER", "CreateTopics", "DeleteTopics", "CreatePartitions", first="api"),
    "corrupt_crc": Shorthand("topic", {"action": "corrupt_crc", "api": ["Fetch"]}),
    "stale_metadata": Shorthand("client_id", {"action": "stale_metadata", "api": ["Metadata"]}),
    "error": Shorthand("code", {"action": "error"}),
    "delay": Shorthand("ms", {"action": "delay"}),
    "drop": Shorthand("api", {"action": "drop"}),
    "drop_after_apply": Shorthand("api", {"action": "drop", "applied": True}),
    "reset": Shorthand("api", {"action": "drop", "reset": True}),
    "black_hole": Shorthand("api", {"action": "black_hole"}),
    "half_answer": Shorthand("api", {"action": "half_answer"}),
    "half_frame": Shorthand("api", {"action": "half_frame"}),
    "slow_bytes": Shorthand("bytes_per_second", {"action": "slow_bytes"}),
    "duplicate": Shorthand("api", {"action": "duplicate"}),
    "throttle": Shorthand("ms", {"action": "throttle"}),
}


def spelled_out(name: str, first: object = None, keys: Mapping[str, object] | None = None) -> dict[str, object]:
    """The keys of the rule that a shorthand stands for. Raises: KeyError for an unknown name."""
    shorthand = SHORTHANDS[name]
    plain = {**shorthand.keys, **(keys or {})}
    if first is not None:
        plain[shorthand.first] = first
    plain.setdefault("name", name)
    return plain
