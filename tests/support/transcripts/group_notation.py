"""The notation of group transcripts: parses a command line, and writes records as text."""

from __future__ import annotations

from dataclasses import dataclass, field

from odradek.coordinator.group.state.records import (
    is_group_key,
    read_group_key,
    read_group_value,
    read_offset_key,
    read_offset_value,
)
from odradek.protocol.codec.codec import encode
from odradek.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from odradek.protocol.messages.join_group import JoinGroupRequestProtocol

START_MS = 1_700_000_000_000


@dataclass
class Line:
    """A command, its plain words and its options."""

    command: str
    words: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def parse(text: str) -> Line:
        command, *rest = text.split()
        line = Line(command)
        for word in rest:
            key, equals, value = word.partition("=")
            if equals and "-" not in key.rsplit(":", 1)[-1]:
                line.options[key] = value
            else:
                line.words.append(word)
        return line


def duration(text: str) -> int:
    """Milliseconds of 5ms, 3s, 2m, 1h or 7d."""
    units = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
    number = text.rstrip("mshd")
    return int(number) * units[text[len(number) :]]


def split_partition(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


def nullable(text: str) -> str | None:
    return None if text == "null" else text


def expanded(text: str) -> str:
    """`x*4096` is a long string."""
    letter, star, times = text.partition("*")
    return letter * int(times) if star else text


def protocol(text: str) -> JoinGroupRequestProtocol:
    """`range:t+u`: the consumer protocol's subscription to t and u; `range:!abc`: those bytes."""
    name, _, topics = text.partition(":")
    if topics.startswith("!"):
        return JoinGroupRequestProtocol(name=name, metadata=topics[1:].encode())
    subscription = ConsumerProtocolSubscription(topics=topics.split("+") if topics else [])
    return JoinGroupRequestProtocol(name=name, metadata=b"\0\1" + encode(subscription, 1))


def show_record(key: bytes, value: bytes | None) -> str:
    if is_group_key(key):
        text = f"group {read_group_key(key)}"
        if value is None:
            return f"{text} deleted"
        group = read_group_value(value)
        members = " ".join(f"{member.member_id}:{member.assignment.decode()}" for member in group.members)
        return (
            f"{text} v{int.from_bytes(value[:2], 'big')} gen={group.generation} protocol={group.protocol} "
            f"leader={group.leader} since={group.current_state_timestamp - START_MS} members=[{members}]"
        )
    group_id, topic_partition = read_offset_key(key)
    text = f"offset {group_id} {topic_partition}"
    if value is None:
        return f"{text} deleted"
    offset = read_offset_value(value)
    expiry = "" if offset.expire_timestamp_ms is None else f" expires={offset.expire_timestamp_ms - START_MS}"
    return (
        f"{text} v{int.from_bytes(value[:2], 'big')} offset={offset.offset} epoch={offset.leader_epoch} "
        f"at={offset.commit_timestamp_ms - START_MS}{expiry} metadata={offset.metadata[:20]}"
    )
