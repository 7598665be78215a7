from __future__ import annotations

import pytest

from odradek.broker.tools.data.consumer.member_metadata import (
    Claim,
    Subscriber,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from odradek.protocol.codec.codec import encode
from odradek.protocol.codec.decode_error import DecodeError
from odradek.protocol.messages.consumer_protocol import ConsumerProtocolSubscription, SubscriptionTopicPartition
from odradek.protocol.topic_partition import TopicPartition

A, B = frozenset({"a"}), frozenset({"a", "b"})
KEYS = [TopicPartition("a", 0), TopicPartition("a", 3), TopicPartition("b", 1)]


def topics(data: bytes) -> frozenset[str]:
    return decode_subscription("m", None, data).topics


def test_bytes_of_subscriptions_and_assignments() -> None:
    assert encode_subscription(["b", "a"]) == b"\0\0\0\0\0\2\0\1a\0\1b\xff\xff\xff\xff"
    assert topics(encode_subscription(B)) == B
    assert decode_assignment(encode_assignment(KEYS)) == KEYS
    assert decode_assignment(b"") == []


def test_claims() -> None:
    claim = Claim(frozenset(KEYS), 7)
    assert decode_subscription("m", "i", encode_subscription(A, claim)) == Subscriber("m", "i", A, claim)
    assert decode_subscription("m", None, encode_subscription(A)).claim == Claim()
    first = ConsumerProtocolSubscription(
        topics=["a"],
        user_data=b"\0\0\0\7",
        owned_partitions=[SubscriptionTopicPartition(topic="a", partitions=[0])],
    )
    found = decode_subscription("m", None, b"\0\1" + encode(first, 1))
    assert found.claim == Claim(frozenset(KEYS[:1]), 7), "version 1 has the generation in the user data"


def test_a_later_version_is_read_as_the_highest_known_one() -> None:
    later = b"\0\x09" + encode_subscription(A)[2:] + b"\0\0\0\0" + b"\xff\xff\xff\xff" + b"\xff\xff" + b"new field"
    assert topics(later) == A


@pytest.mark.parametrize("data", [b"\0", b"\xff\xff\0\0\0\0", b"\0\0\0\0\0\7"])
def test_bytes_that_are_no_subscription(data: bytes) -> None:
    with pytest.raises(DecodeError):
        topics(data)
