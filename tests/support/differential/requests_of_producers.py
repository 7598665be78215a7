"""Random requests of producers, of their transactions and of groups that keep offsets; most are valid."""

from __future__ import annotations

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Response
from odradek.protocol.messages.init_producer_id import InitProducerIdResponse
from odradek.protocol.messages.produce import ProduceResponse
from tests.support.differential.choices import GROUPS, IDEMPOTENT_PRODUCERS, TRANSACTIONAL_IDS, Choices
from tests.support.differential.steps import Known, Step
from tests.support.wire.requests import batch, message_set

UNCOMPRESSED_OR_GZIP = (0, 0, 1)


def produce(c: Choices) -> Step:
    """A batch without a producer, in the format of the version."""
    version, topic, index = c.version(ApiKey.PRODUCE), c.topic(), c.partition()
    values = c.pick((b"a",), (b"a", b"b", None), (b"x" * 300,), (b"a",) * 8)
    key, codec = c.pick(None, b"k"), c.pick(*UNCOMPRESSED_OR_GZIP)
    magic = c.pick(0, 1) if version < 3 else 2
    if magic == 2:
        records = batch(*values, key=key, compression_type=codec)
    else:
        records = message_set(magic, *values, key=key, compression_type=codec)
    if c.chance(0.05):
        records = c.pick(records[:-1], records + records, b"", b"junk" * 9)
    fields = _produced(topic, index, records, c.pick(-1, 1))
    return Step(ApiKey.PRODUCE, version, lambda _: fields)


def produce_with_sequences(c: Choices) -> Step:
    """By an idempotent or transactional producer; some sequences and epochs are wrong."""
    is_transactional = c.chance(0.5)
    name = c.pick(*TRANSACTIONAL_IDS) if is_transactional else c.pick(*IDEMPOTENT_PRODUCERS)
    topic, index, count = c.topic(), c.partition(), c.pick(1, 2, 5)
    newer, ahead = c.pick(*(0,) * 12, 1, -1), c.pick(*(0,) * 8, 1, -1, -100)
    acks = c.pick(-1, 1)

    def fields(known: Known) -> dict[str, object]:
        producer_id, epoch = known.producer(name)
        sequence = known.sequences.get((name, epoch, topic, index), 0)
        records = batch(
            *(b"v",) * count,
            producer_id=producer_id,
            producer_epoch=max(0, epoch + newer),
            base_sequence=max(0, sequence + ahead),
            is_transactional=is_transactional,
        )
        return {**_produced(topic, index, records, acks), "transactional_id": name if is_transactional else None}

    def learn(known: Known, response: Response) -> None:
        assert isinstance(response, ProduceResponse)
        [partition] = response.responses[0].partition_responses
        key = (name, known.producer(name)[1], topic, index)
        if partition.error_code == 0 and not newer and not ahead:
            known.sequences[key] = known.sequences.get(key, 0) + count

    return Step(ApiKey.PRODUCE, c.version(ApiKey.PRODUCE, first=3), fields, learn)


def _produced(topic: str, index: int, records: bytes, acks: int) -> dict[str, object]:
    data = [{"name": topic, "partition_data": [{"index": index, "records": records}]}]
    return {"acks": acks, "timeout_ms": 3000, "topic_data": data}


def init_producer_id(c: Choices) -> Step:
    name = c.pick(*TRANSACTIONAL_IDS, *TRANSACTIONAL_IDS, *IDEMPOTENT_PRODUCERS)
    version, timeout_ms = c.version(ApiKey.INIT_PRODUCER_ID), c.pick(60_000, 60_000, 0, 10**9)
    keeps = c.chance(0.3)

    def fields(known: Known) -> dict[str, object]:
        found: dict[str, object] = {
            "transactional_id": name if name in TRANSACTIONAL_IDS else None,
            "transaction_timeout_ms": timeout_ms,
        }
        if keeps and name in known.producers:
            found["producer_id"], found["producer_epoch"] = known.producers[name]
        return found

    def learn(known: Known, response: Response) -> None:
        assert isinstance(response, InitProducerIdResponse)
        if response.error_code == 0:
            known.producers[name] = response.producer_id, response.producer_epoch

    return Step(ApiKey.INIT_PRODUCER_ID, version, fields, learn, settles=True)


class Transaction:
    """Who asks about a transaction; some epochs are wrong."""

    def __init__(self, c: Choices) -> None:
        self.name = c.pick(*TRANSACTIONAL_IDS)
        self._newer = c.pick(*(0,) * 12, 1, -1)

    def fields(self, known: Known) -> dict[str, object]:
        producer_id, epoch = known.producer(self.name)
        return {"transactional_id": self.name, "producer_id": producer_id, "producer_epoch": epoch + self._newer}


def add_partitions(c: Choices) -> Step:
    who, topics = Transaction(c), [{"name": c.topic(), "partitions": [c.partition() for _ in range(c.pick(1, 1, 2))]}]
    verify_only = c.chance(0.4)

    def fields(known: Known) -> dict[str, object]:
        found = who.fields(known)
        old = {f"v3_and_below_{name}": value for name, value in found.items()}
        transaction = {**found, "verify_only": verify_only, "topics": topics}
        return {**old, "v3_and_below_topics": topics, "transactions": [transaction]}

    return Step(ApiKey.ADD_PARTITIONS_TO_TXN, c.version(ApiKey.ADD_PARTITIONS_TO_TXN), fields)


def add_offsets(c: Choices) -> Step:
    who, group = Transaction(c), c.pick(*GROUPS)
    version = c.version(ApiKey.ADD_OFFSETS_TO_TXN)
    return Step(ApiKey.ADD_OFFSETS_TO_TXN, version, lambda known: {**who.fields(known), "group_id": group})


def end_transaction(c: Choices) -> Step:
    who, committed = Transaction(c), c.chance(0.6)
    version = c.version(ApiKey.END_TXN)
    return Step(ApiKey.END_TXN, version, lambda known: {**who.fields(known), "committed": committed}, settles=True)


def describe_transactions(c: Choices) -> Step:
    fields = {"transactional_ids": [c.pick(*TRANSACTIONAL_IDS, "nobody", "")]}
    return Step(ApiKey.DESCRIBE_TRANSACTIONS, 0, lambda _: fields)


def describe_producers(c: Choices) -> Step:
    fields = {"topics": [{"name": c.topic(), "partition_indexes": [c.pick(0, 1, 5)]}]}
    return Step(ApiKey.DESCRIBE_PRODUCERS, 0, lambda _: fields)


def commit_offsets(c: Choices) -> Step:
    fields = {"group_id": c.pick(*GROUPS, ""), "topics": _offsets(c)}
    if c.chance(0.1):
        fields["generation_id_or_member_epoch"], fields["member_id"] = c.pick((0, ""), (5, "m"))
    return Step(ApiKey.OFFSET_COMMIT, c.version(ApiKey.OFFSET_COMMIT, first=1), lambda _: fields)


def commit_offsets_in_transaction(c: Choices) -> Step:
    who, group, topics = Transaction(c), c.pick(*GROUPS), _offsets(c)
    version = c.version(ApiKey.TXN_OFFSET_COMMIT)
    return Step(
        ApiKey.TXN_OFFSET_COMMIT, version, lambda known: {**who.fields(known), "group_id": group, "topics": topics}
    )


def _offsets(c: Choices) -> list[dict[str, object]]:
    partition = {
        "partition_index": c.partition(),
        "committed_offset": c.pick(0, 5, -1),
        "committed_leader_epoch": c.pick(-1, 0, 3),
        "committed_metadata": c.pick("", "m", None, "x" * 4097),
    }
    return [{"name": c.topic(), "partitions": [partition]}]


def fetch_offsets(c: Choices) -> Step:
    group, asked = c.pick(*GROUPS, "no group"), [{"name": c.topic(), "partition_indexes": [c.partition()]}]
    fields = {"group_id": group, "topics": asked, "groups": [{"group_id": group, "topics": asked}]}
    return Step(ApiKey.OFFSET_FETCH, c.version(ApiKey.OFFSET_FETCH, first=1), lambda _: fields)


def delete_offsets(c: Choices) -> Step:
    topics = [{"name": c.topic(), "partitions": [{"partition_index": c.partition()}]}]
    fields = {"group_id": c.pick(*GROUPS, "no group"), "topics": topics}
    return Step(ApiKey.OFFSET_DELETE, 0, lambda _: fields)


def describe_groups(c: Choices) -> Step:
    fields = {"groups": [c.pick(*GROUPS, "no group", "")]}
    return Step(ApiKey.DESCRIBE_GROUPS, c.version(ApiKey.DESCRIBE_GROUPS), lambda _: fields)


def delete_groups(c: Choices) -> Step:
    fields = {"groups_names": [c.pick(*GROUPS, "no group")]}
    return Step(ApiKey.DELETE_GROUPS, c.version(ApiKey.DELETE_GROUPS), lambda _: fields)
