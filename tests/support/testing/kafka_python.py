"""What a user of kafka-python does around its calls."""

from __future__ import annotations

import time
from collections.abc import Mapping

import kafka

METADATA_MAX_AGE_MS = 1_000
"""`metadata_max_age_ms` of a consumer that subscribes or is assigned something as soon as it is made.

A request for metadata may be on its way then, without the new topic. Its answer ends the wish for metadata, so
kafka-python 3.0.12 asks for the topic's only when what it has is as old as this: 5 minutes by default. Java's consumer
had this fault, too: KAFKA-7831.
"""


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
