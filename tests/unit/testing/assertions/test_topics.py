from __future__ import annotations

import json

import pytest

from odradek.protocol.records.compression import CompressionType
from tests.support.in_process.observed_broker import ObservedBroker
from tests.support.wire.requests import OLD


def test_a_record_has_all_that_the_log_knows(observed: ObservedBroker) -> None:
    observed.produce("t", b"v", key=b"k", producer_id=7, producer_epoch=2, base_sequence=5)
    (record,) = observed.topic("t").records()
    assert (record.partition, record.offset, record.key, record.value, record.headers) == (0, 0, b"k", b"v", ())
    assert (record.timestamp, record.timestamp_type, record.leader_epoch) == (OLD, "CreateTime", 0)
    assert (record.producer_id, record.producer_epoch, record.sequence) == (7, 2, 5)
    assert (record.is_transactional, record.transaction, record.compression) == (False, None, "none")


@pytest.mark.parametrize("codec", CompressionType)
def test_records_of_all_codecs(observed: ObservedBroker, codec: CompressionType) -> None:
    observed.produce("t", b"a", b"b", None, compression_type=codec)
    records = observed.topic("t").records()
    assert [record.value for record in records] == [b"a", b"b", None]
    assert {record.compression for record in records} == {codec.name.lower()}


def test_keys_and_values_are_decoded_and_null_stays_none(observed: ObservedBroker) -> None:
    observed.produce("t", b'{"a": 1}', None, key=b"k")
    assert observed.topic("t").values(decode=json.loads) == [{"a": 1}, None]
    assert observed.topic("t").keys(decode=bytes.decode) == ["k", "k"]
    first, tombstone = observed.topic("t").records()
    assert (first.json(), first.text) == ({"a": 1}, '{"a": 1}')
    assert (tombstone.json(), tombstone.text) == (None, None)


def test_partitions_offsets_and_configs(observed: ObservedBroker) -> None:
    observed.inner.create_topic("p", 3, configs={"retention.ms": "1000"})
    observed.produce("p", b"a", b"b", partition=2)
    topic = observed.topic("p")
    assert observed.topics() == ["p", "t"]
    assert topic.configs == {"retention.ms": "1000"}
    assert topic.start_offsets == {0: 0, 1: 0, 2: 0}
    assert topic.end_offsets == topic.high_watermarks == {0: 0, 1: 0, 2: 2}
    assert [(each.leader, each.replicas, each.isr) for each in topic.partitions] == [(0, (0,), (0,))] * 3
    assert topic.values(2) == [b"a", b"b"]
    assert topic.values(1) == []
