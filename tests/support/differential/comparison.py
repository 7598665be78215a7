"""Sends the same random requests to Apache Kafka and to Odradek, and compares their answers field by field.

What differs from run to run is hidden as in transcripts. In addition, records are shown batch by batch, without the
checksum, and with a name for each time of today.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import ErrorCode
from tests.support.broker import Broker
from tests.support.differential import requests_of_producers as producers
from tests.support.differential import requests_of_topics as topics
from tests.support.differential.choices import TOPICS, TRANSACTIONAL_IDS, Choices
from tests.support.differential.steps import Known, Step
from tests.support.transcripts.transcript import NOW_TEXT, Plain, Transcript, differences_of
from tests.support.waiting import eventually
from tests.support.wire.requests import build

HEAD = struct.Struct(">qiibIhiqqqhii")
"""Offset, size, leader epoch, magic, checksum, attributes, last delta, two timestamps, producer id and epoch, sequence,
number of records."""
MAGIC_POSITION = 16
CHECKSUM = 4

GENERATORS: dict[Callable[[Choices], Step], int] = {
    topics.create_topics: 6,
    topics.delete_topics: 2,
    topics.create_partitions: 2,
    topics.metadata: 3,
    topics.describe_configs: 3,
    topics.alter_configs: 3,
    topics.list_offsets: 8,
    topics.offset_for_leader_epoch: 3,
    topics.delete_records: 3,
    topics.fetch: 14,
    producers.produce: 10,
    producers.produce_with_sequences: 12,
    producers.init_producer_id: 6,
    producers.add_partitions: 9,
    producers.add_offsets: 3,
    producers.end_transaction: 6,
    producers.describe_transactions: 3,
    producers.describe_producers: 3,
    producers.commit_offsets: 5,
    producers.commit_offsets_in_transaction: 4,
    producers.fetch_offsets: 5,
    producers.delete_offsets: 2,
    producers.describe_groups: 3,
    producers.delete_groups: 2,
}


def steps(seed: int, count: int) -> Iterator[Step]:
    """The first ones create topics, so that most of the others find some."""
    choices, order = Choices(seed), random.Random(seed)
    kinds = order.choices(list(GENERATORS), list(GENERATORS.values()), k=count)
    for generator in [topics.create_topics] * 5 + kinds:
        yield generator(choices)


class Side(Transcript):
    """One of the two brokers."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker, lambda stem: stem, Path())
        self.known = Known()

    def begin(self) -> None:
        """Wait until it serves groups, transactions and producer ids."""
        self.with_internal_topics()
        self.until_accepted(build(ApiKey.INIT_PRODUCER_ID, transactional_id=None, transaction_timeout_ms=1000), 4)
        for name in TRANSACTIONAL_IDS:
            init = build(ApiKey.INIT_PRODUCER_ID, transactional_id=name, transaction_timeout_ms=60_000)
            answer: Any = self.until_accepted(init, 4)
            self.known.producers[name] = answer.producer_id, answer.producer_epoch

    def take(self, step: Step) -> Plain:
        """The answer, in plain words; returns when everything behind it is done."""
        answer = self.call("answer", step.request(self.known), step.version)
        plain = self.answers.pop("answer")
        if answer is not None:
            step.learn(self.known, answer)
        if step.settles:
            self._settle()
        if step.changes_topics:
            self._learn_topics()
        return _comparable(plain)

    def _settle(self) -> None:
        def described() -> Response:
            return self.quietly(build(ApiKey.DESCRIBE_TRANSACTIONS, transactional_ids=list(TRANSACTIONAL_IDS)), 0)

        def is_settled(answer: Any) -> bool:
            return not any(state.transaction_state.startswith("Prepare") for state in answer.transaction_states)

        eventually(described, accept=is_settled)

    def _learn_topics(self) -> None:
        grown = [{"name": topic, "count": 1, "assignments": None} for topic in TOPICS]
        grow = build(ApiKey.CREATE_PARTITIONS, topics=grown, timeout_ms=1000, validate_only=True)

        def is_deleted(answer: Any) -> bool:
            """Apache Kafka answers a DeleteTopics a little before it forgets the topic's deletion."""
            return all(result.error_code != ErrorCode.INVALID_TOPIC_EXCEPTION for result in answer.results)

        eventually(lambda: self.quietly(grow, 1), accept=is_deleted)
        answer: Any = self.quietly(build(ApiKey.METADATA, topics=None), 12)
        self.known.topic_ids = {topic.name: topic.topic_id for topic in answer.topics if topic.name in TOPICS}

    def plain_records(self, records: bytes) -> Plain:
        found: list[Plain] = []
        position = 0
        while position + HEAD.size <= len(records) and records[position + MAGIC_POSITION] == 2:
            head = list(HEAD.unpack_from(records, position))
            end = position + 12 + head[1]
            del head[CHECKSUM]
            found.append([NOW_TEXT.sub("<time>", str(head)), records[position + HEAD.size : end].hex()])
            position = end
        return [*found, records[position:].hex()]


def _comparable(plain: Plain) -> Plain:
    """Without times of today, and with a fixed order of what comes in that of a hash map: the partitions of a
    transaction, the producers of a partition.
    """
    match plain:
        case dict():
            found = {key: _comparable(value) for key, value in plain.items()}
            unordered = "topics" if "transactional_id" in found else "active_producers"
            if isinstance(items := found.get(unordered), list):
                found[unordered] = sorted(items, key=str)
            return found
        case list():
            items = [_comparable(item) for item in plain]
            return sorted(items, key=str) if all(isinstance(item, int) for item in items) else items
        case int() if NOW_TEXT.fullmatch(str(plain)):
            return "<time>"
    return plain


def _finds_nothing_by_time(step: Step, plain: Plain) -> bool:
    if step.api_key != ApiKey.LIST_OFFSETS:
        return False
    request: Any = step.request(Known())
    answer: Any = plain
    found = answer["topics"][0]["partitions"][0]
    return request.topics[0].partitions[0].timestamp >= 0 and found["error_code"] == 0 and found.get("offset") == -1


def compare(apache: Broker, odradek: Broker, seed: int, count: int) -> list[str]:
    """The differences, a text for each answer."""
    found = []
    sides = Side(apache), Side(odradek)
    try:
        for side in sides:
            side.begin()
        for number, step in enumerate(steps(seed, count)):
            theirs, ours = (side.take(step) for side in sides)
            if _finds_nothing_by_time(step, theirs):
                continue  # docs/differences.md: a lookup that Apache Kafka ends too early after DeleteRecords
            if lines := differences_of(theirs, ours):
                request = f"{number}: {API[step.api_key].name} v{step.version} {step.fields(sides[1].known)}"
                found.append("\n    ".join([request, *lines]))
    finally:
        for side in sides:
            side.disconnect()
    return found
