"""`kafka-transactions`: what it lists and describes, and a hanging transaction found and ended with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from odradek.protocol.api import ApiKey
from tests.conformance.transcripts.test_transcripts_produce import produce
from tests.support.broker import Broker
from tests.support.loads.transactional_clients import ConfluentTransactions
from tests.support.processes.apache.tools import Tools
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import OLD, batch, build

pytestmark = pytest.mark.oracle

HANGING_PRODUCER_ID = 4_000
MAX_TRANSACTION_MS = 900_000
"""Apache's `transaction.max.timeout.ms`: however slow the tools are, the transaction is open."""


@pytest.fixture
def unverified(new_broker: Callable[..., Broker]) -> Broker:
    """A broker that takes records of a transaction without asking whether there is one, as all did before 3.6."""
    return new_broker(**{"transaction.partition.verification.enable": "false"})


def rows(tool: list[str]) -> list[dict[str, str]]:
    """A table of the tool; its columns are separated by tabs."""
    head, *lines = ([cell.strip() for cell in re.split(r"\t", line)] for line in tool)
    return [dict(zip(head, line, strict=True)) for line in lines]


def test_the_tool(unverified: Broker, tools: Tools) -> None:
    broker = unverified
    at = ["--bootstrap-server", broker.bootstrap]
    with RawClient(broker.host, broker.port) as client:
        new = [{"name": "t", "num_partitions": 2, "replication_factor": 1}]
        client.call(build(ApiKey.CREATE_TOPICS, topics=new, timeout_ms=10_000), 2)
        producer = ConfluentTransactions().producer(broker.bootstrap, "lively", MAX_TRANSACTION_MS)
        producer.begin()
        producer.send("t", "a")
        listed = rows(tools.run("transactions", *at, "list").lines)
        assert [(row["TransactionalId"], row["Coordinator"], row["TransactionState"]) for row in listed] == [
            ("lively", "0", "Ongoing")
        ]
        producer_id = listed[0]["ProducerId"]
        (described,) = rows(tools.run("transactions", *at, "describe", "--transactional-id", "lively").lines)
        assert described["TransactionState"] == "Ongoing"
        assert described["ProducerId"] == producer_id
        assert described["TopicPartitions"] == "t-0"
        (producing,) = rows(
            tools.run("transactions", *at, "describe-producers", "--topic", "t", "--partition", "0").lines
        )
        assert producing["ProducerId"] == producer_id
        assert (producing["LastSequence"], producing["CurrentTransactionStartOffset"]) == ("0", "0")
        producer.commit()

        lost = batch(b"lost", producer_id=HANGING_PRODUCER_ID, producer_epoch=3, base_sequence=0, is_transactional=True)
        answer: Any = client.call(produce("t", lost, partition=1, transactional_id="forgotten"), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
        (hanging,) = rows(tools.run("transactions", *at, "find-hanging", "--broker-id", "0").lines)
        assert (hanging["Topic"], hanging["Partition"]) == ("t", "1")
        assert (hanging["ProducerId"], hanging["ProducerEpoch"]) == (str(HANGING_PRODUCER_ID), "3")
        assert (hanging["StartOffset"], hanging["LastTimestamp"]) == ("0", str(OLD))
        tools.run("transactions", *at, "abort", "--topic", "t", "--partition", "1", "--start-offset", "0")
        assert not rows(tools.run("transactions", *at, "find-hanging", "--broker-id", "0").lines)
        asked = [{"name": "t", "partitions": [{"partition_index": 1, "timestamp": -1}]}]
        offsets: Any = client.call(build(ApiKey.LIST_OFFSETS, replica_id=-1, isolation_level=1, topics=asked), 7)
        assert offsets.topics[0].partitions[0].offset == 2
        producer.close()
