"""What a user of kafka-python does around its calls."""

from __future__ import annotations

import time
from collections.abc import Mapping

import kafka


def commit_after_rebalance(
    consumer: kafka.KafkaConsumer,
    offsets: Mapping[kafka.TopicPartition, kafka.OffsetAndMetadata] | None,
    timeout_s: float,
) -> None:
    """Commit these offsets, or all positions.

    A poll of kafka-python may end, even with records, while the member joins its group again. The commit is then
    refused, and its error says what to do: poll, and commit again. What these polls return is dropped.
    """
    end = time.monotonic() + timeout_s
    while True:
        try:
            return consumer.commit(offsets)
        except kafka.errors.RebalanceInProgressError:
            if time.monotonic() > end:
                raise
            consumer.poll(100)
