"""The text of a topic node is the same however it came about."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.znodes.topic_text import TopicText
from odradek.protocol.codec.primitives import uuid_to_text

INTS = st.lists(st.integers(0, 2**31 - 1), max_size=4).map(tuple)
ASSIGNMENTS = st.dictionaries(st.integers(0, 12), st.builds(ReplicaAssignment, INTS, INTS, INTS), max_size=12)
TOPIC_IDS = st.none() | st.binary(min_size=16, max_size=16)


def by_json(topic_id: bytes | None, assignment: dict[int, ReplicaAssignment]) -> bytes:
    in_order = sorted(assignment.items())
    node = {
        "partitions": {str(p): list(a.replicas) for p, a in in_order},
        **({} if topic_id is None else {"topic_id": uuid_to_text(topic_id)}),
        "adding_replicas": {str(p): list(a.adding_replicas) for p, a in in_order if a.adding_replicas},
        "removing_replicas": {str(p): list(a.removing_replicas) for p, a in in_order if a.removing_replicas},
        "version": 3,
    }
    return json.dumps(node, separators=(",", ":")).encode()


def test_text_of_apache() -> None:
    """As TopicZNode.encode of Apache Kafka 3.9 writes it."""
    text = TopicText(bytes(15) + b"\x01", {1: ReplicaAssignment((2, 0, 1), (2,), (1,)), 0: ReplicaAssignment((0,))})
    assert text.encode() == (
        b'{"partitions":{"0":[0],"1":[2,0,1]},"topic_id":"AAAAAAAAAAAAAAAAAAAAAQ",'
        b'"adding_replicas":{"1":[2]},"removing_replicas":{"1":[1]},"version":3}'
    )


@given(topic_id=TOPIC_IDS, assignment=ASSIGNMENTS, changes=st.lists(ASSIGNMENTS, max_size=4))
def test_changes_end_in_the_text_of_what_they_end_in(
    topic_id: bytes | None, assignment: dict[int, ReplicaAssignment], changes: list[dict[int, ReplicaAssignment]]
) -> None:
    text = TopicText(topic_id, assignment)
    assert text.encode() == by_json(topic_id, assignment)
    for changed in changes:
        for partition, replicas in changed.items():
            text.change(partition, replicas)
        assignment = {**assignment, **changed}
        assert text.encode() == by_json(topic_id, assignment)
