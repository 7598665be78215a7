from __future__ import annotations

import pytest

from odradek.controller.admin.partition_allowance import MAX_PARTITIONS_PER_REQUEST, PartitionAllowance
from odradek.protocol.errors import ErrorCode, KafkaError


def test_the_limit_is_one_of_all_topics_together() -> None:
    allowance = PartitionAllowance(10)
    allowance.take(4)
    allowance.take(6)
    with pytest.raises(KafkaError) as refusal:
        allowance.take(1)
    assert refusal.value.code is ErrorCode.POLICY_VIOLATION


def test_what_is_refused_is_not_counted() -> None:
    allowance = PartitionAllowance(10)
    with pytest.raises(KafkaError):
        allowance.take(11)
    allowance.take(10)


def test_counts_that_make_no_sense_add_nothing() -> None:
    allowance = PartitionAllowance(1)
    allowance.take(-(2**31))
    allowance.take(1)
    with pytest.raises(KafkaError):
        allowance.take(1)


def test_the_default() -> None:
    PartitionAllowance().take(MAX_PARTITIONS_PER_REQUEST)
    with pytest.raises(KafkaError):
        PartitionAllowance().take(MAX_PARTITIONS_PER_REQUEST + 1)
