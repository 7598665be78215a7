"""One request that the broker has answered, as a test sees it.

The recorder keeps request and answer as encoded bytes, without the frame. They are decoded when a test looks at them,
in the process of the test, so that the broker spends no time on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from odradek.protocol.api import API
from odradek.protocol.codec.codec import decode
from odradek.testing.observations.plain_values import Plain, errors_in, plain, topics_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.testing.observations.records import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionView:
    """The connection of a request. `connection_id` is Kafka's: broker's address, client's address, index."""

    connection_id: str
    client_host: str
    client_port: int
    listener: str
    security_protocol: str
    is_own_broker: bool


@dataclass(frozen=True, kw_only=True)
class RecordedRequest:
    """A request and its answer. Numbers count the answered requests of the broker, from 1.

    `body` and `answer` are dicts with the field names of Kafka's definitions: `request.body["transactionalId"]`.
    """

    number: int
    api: str
    """Kafka's name: `Produce`."""
    api_key: int
    version: int
    correlation_id: int
    client_id: str
    connection: ConnectionView
    principal: str
    software_name: str
    software_version: str
    received_ms: int
    """Time of the broker, in milliseconds since the epoch."""
    duration_ms: float
    """From the arrival of the frame until the answer was sent."""
    encoded_body: bytes | None = field(repr=False)
    """None: too large to be kept."""
    encoded_answer: tuple[bytes | int, ...] | None = field(repr=False)
    """In parts; a number is the size of records that were not kept. None: there is no answer (Produce with acks=0, or
    the connection was closed), or it is too large to be kept."""
    has_answer: bool
    is_answer_sent: bool = True
    """False: the connection was closed before the answer was sent."""
    topic_names: Mapping[str, str] = field(default_factory=dict, repr=False)
    """By topic id, of requests that name topics by their ids."""

    @cached_property
    def body(self) -> dict[str, Plain]:
        """Raises: ValueError if it was too large to be kept."""
        if self.encoded_body is None:
            raise ValueError(f"The body of {self} was too large to be kept")
        return plain(decode(API[self.api_key].request_type(), self.encoded_body, self.version), self.version)

    @cached_property
    def answer(self) -> dict[str, Plain] | None:
        """None if there was no answer. Raises: ValueError if it was too large to be kept."""
        if not self.has_answer:
            return None
        if self.encoded_answer is None:
            raise ValueError(f"The answer to {self} was too large to be kept")
        parts = self.encoded_answer
        data = b"".join(bytes(part) if isinstance(part, int) else part for part in parts)
        response = decode(API[self.api_key].response_type(), data, self.version)
        return plain(response, self.version, has_records=all(isinstance(part, bytes) for part in parts))

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """The topics that the body names, each once. A Fetch names only the changes of its fetch session."""
        if self.encoded_body is None:
            return ()
        return tuple(dict.fromkeys(topics_in(self.body, self.topic_names)))

    @cached_property
    def errors(self) -> tuple[str, ...]:
        """Kafka's names of the error codes in the answer, each once."""
        if self.encoded_answer is None:
            return ()
        return tuple(dict.fromkeys(errors_in(self.answer)))

    @property
    def kept_bytes(self) -> int:
        """Memory of body and answer."""
        answer = sum(len(part) for part in self.encoded_answer or () if isinstance(part, bytes))
        return len(self.encoded_body or b"") + answer

    def records(self) -> list[tuple[str, Record]]:
        """The records of a Produce request with their topics, as the client sent them: their offsets begin at 0."""
        return list(self._records())

    def _records(self) -> Iterator[tuple[str, Record]]:
        from odradek.testing.observations.records import records_of  # of no use to the recorder

        topics = self.body.get("topicData")
        for topic in topics if isinstance(topics, list) else ():
            assert isinstance(topic, dict)
            partitions = topic["partitionData"]
            assert isinstance(partitions, list)
            for partition in partitions:
                assert isinstance(partition, dict)
                data, index = partition["records"], partition["index"]
                assert isinstance(index, int)
                if isinstance(data, bytes):
                    for record in records_of(data, index):
                        yield str(topic["name"]), record

    def __str__(self) -> str:
        return f"{self.api} v{self.version} of {self.client_id or '(no client id)'} (request {self.number})"
