"""A streaming query of Spark that notes every record it reads.

A test can hold the first batch and change the cluster meanwhile: the query still runs and keeps its clients, and plans
no batch until it is released.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from tests.support.spark.pieces import Sent, in_order, received
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import DataStreamReader

T = TypeVar("T")

TIMEOUT_S: Final = 90
"""Of waiting for a batch. Calls of Spark's clients end after 60 s."""

DATA_LOSS: Final = re.compile(
    r"Some data may have been lost because they are not available in Kafka any more;.*?"
    r"^Reason: ([^\n]*?)(?: SQLSTATE: \w+)?$",
    re.DOTALL | re.MULTILINE,
)

Hold = Literal["planned", "read"]


class SparkStream:
    """`hold`: the first batch stops before its records are read (`planned`), or after it (`read`), until `release`."""

    def __init__(self, reader: DataStreamReader, hold: Hold | None = None) -> None:
        self._hold = hold
        self._is_held = threading.Event()
        self._released = threading.Event()
        self._records: list[Sent] = []
        writer = reader.load().writeStream.trigger(processingTime="0 seconds")
        self._query = writer.foreachBatch(self._batch).start()

    def _batch(self, frame: DataFrame, number: int) -> None:
        """Spark calls it in a thread of its own, one batch after the other."""
        self._wait_if_held("planned")
        self._records += received(frame)
        self._wait_if_held("read")

    def _wait_if_held(self, moment: Hold) -> None:
        if self._hold == moment and not self._released.is_set():
            self._is_held.set()
            assert self._released.wait(TIMEOUT_S), "a batch that is held was not released"

    def __enter__(self) -> SparkStream:
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._query.stop()

    def await_held(self) -> None:
        self.until(self._is_held.is_set)

    def release(self) -> None:
        """From now on no batch is held."""
        self._released.set()

    def until(self, look: Callable[[], T], *, accept: Callable[[T], bool] = bool) -> T:
        """Wait for what the query does. Raises StreamingQueryException if the query fails meanwhile."""

        def look_at_query() -> T:
            if (failure := self._query.exception()) is not None:
                raise failure
            return look()

        return eventually(look_at_query, accept=accept, timeout_s=TIMEOUT_S)

    def counts(self) -> Counter[int]:
        """How many records were read of each partition."""
        return Counter(record.partition for record in list(self._records))

    def planned(self) -> dict[str, dict[str, int]]:
        """The offset of each topic and partition up to which the last batch has read."""
        progress = self._query.lastProgress
        return {} if progress is None else json.loads(progress["sources"][0]["endOffset"])

    def records(self) -> list[Sent]:
        """What was read when the query has read all there is. Raises StreamingQueryException if the query fails."""
        self._query.processAllAvailable()
        return in_order(self._records)

    def failure(self) -> str:
        """The text with which the query fails."""
        from pyspark.errors import StreamingQueryException

        try:
            has_ended = self._query.awaitTermination(TIMEOUT_S)
        except StreamingQueryException as error:
            return str(error)
        raise AssertionError("the query has ended" if has_ended else "the query goes on")

    def data_loss(self) -> str:
        """The query fails because records that it should read are not there; the first line of the reason it gives."""
        failure = self.failure()
        found = DATA_LOSS.search(failure)
        assert found is not None, failure
        return found[1]


def places(records: Iterable[Sent]) -> list[tuple[int, int]]:
    """The partition and offset of each."""
    return [(record.partition, record.offset) for record in records]
