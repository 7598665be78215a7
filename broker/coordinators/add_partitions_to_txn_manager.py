"""Asks transaction coordinators whether partitions belong to a transaction (KIP-890), many questions in one request.

Each coordinator has at most one request in flight; later questions go with the next one. At most one question of a
transactional id waits. When a second one comes, the one with the lower producer epoch gets INVALID_PRODUCER_EPOCH; of
two with the same epoch the earlier one gets NETWORK_EXCEPTION, since its client has sent the request again.

Kafka: AddPartitionsToTxnManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from odradek.coordinator.batched_requests import BatchedRequests, call_all
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.meters.verification_stats import VerificationStats

_E = ErrorCode

OnPartitionErrors = Callable[[Mapping[TopicPartition, ErrorCode]], None]
"""Called with the partitions that are not in the transaction or could not be verified, and their errors."""


class VerificationChannel(Protocol):
    """Sends requests to transaction coordinators."""

    def coordinator_of(self, transactional_id: str) -> int | None:
        """The coordinator's broker id; None while no live broker is the coordinator."""
        ...

    def send_verification(
        self,
        broker_id: int,
        request: AddPartitionsToTxnRequest,
        respond: Callable[[AddPartitionsToTxnResponse | None], None],
    ) -> None:
        """Send the request; `respond` gets the response, or None after a failure. UNSUPPORTED_VERSION means that the
        coordinator cannot verify.
        """
        ...


class _Question(NamedTuple):
    transaction: AddPartitionsToTxnTransaction
    partitions: Sequence[TopicPartition]
    knows_abortable_error: bool
    respond: OnPartitionErrors

    def fail(self, error: ErrorCode) -> None:
        self.respond(dict.fromkeys(self.partitions, error))


_Questions: TypeAlias = dict[str, _Question]
"""The questions of one request, by transactional id."""


class AddPartitionsToTxnManager:
    """Collects questions per coordinator."""

    def __init__(self, channel: VerificationChannel) -> None:
        self._channel = channel
        self.stats: VerificationStats | None = None
        """None while metrics are off."""
        self._waiting: dict[int, dict[str, _Question]] = {}
        self._requests: BatchedRequests[int, _Questions, AddPartitionsToTxnResponse] = BatchedRequests(self)

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        respond: OnPartitionErrors,
        *,
        knows_abortable_error: bool,
    ) -> None:
        """Ask the coordinator; `respond` gets errors that may be sent to clients."""
        broker_id = self._channel.coordinator_of(transactional_id)
        topics: dict[str, list[int]] = {}
        for name, partition in partitions:
            topics.setdefault(name, []).append(partition)
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            verify_only=True,
            topics=[AddPartitionsToTxnTopic(name=name, partitions=found) for name, found in topics.items()],
        )
        if broker_id is not None and self.stats is not None:
            respond = self.stats.counted(respond)
        question = _Question(transaction, partitions, knows_abortable_error, respond)
        if broker_id is None:
            question.fail(_E.COORDINATOR_NOT_AVAILABLE)
        elif self._displace(self._waiting.setdefault(broker_id, {}), question):
            self._requests.send(broker_id)

    @staticmethod
    def _displace(waiting: dict[str, _Question], question: _Question) -> bool:
        """Let the question replace an earlier one of its transactional id; False if the earlier one is newer."""
        transaction = question.transaction
        earlier = waiting.get(transaction.transactional_id)
        if earlier is None:
            waiting[transaction.transactional_id] = question
            return True
        earlier_epoch, epoch = earlier.transaction.producer_epoch, transaction.producer_epoch
        if earlier_epoch > epoch:
            question.fail(_E.INVALID_PRODUCER_EPOCH)
            return False
        # First the place, then the answer: it may let the connection ask its next question before `fail` returns.
        waiting[transaction.transactional_id] = question
        earlier.fail(_E.INVALID_PRODUCER_EPOCH if earlier_epoch < epoch else _E.NETWORK_EXCEPTION)
        return True

    # Implements `BatchOwner`.

    def take_batch(self, broker_id: int, /) -> _Questions | None:
        return self._waiting.pop(broker_id, None)

    def send_batch(
        self, broker_id: int, questions: _Questions, respond: Callable[[AddPartitionsToTxnResponse | None], None], /
    ) -> None:
        request = AddPartitionsToTxnRequest(transactions=[asked.transaction for asked in questions.values()])
        self._channel.send_verification(broker_id, request, respond)

    def batch_answered(self, questions: _Questions, response: AddPartitionsToTxnResponse | None, /) -> bool:
        call_all(partial(question.respond, errors) for question, errors in _errors_of(questions, response))
        return True


def _errors_of(
    questions: _Questions, response: AddPartitionsToTxnResponse | None
) -> Iterator[tuple[_Question, Mapping[TopicPartition, ErrorCode]]]:
    """The errors for each question, also for those that the response omits."""
    if response is None:
        error = _E.NETWORK_EXCEPTION
    elif response.error_code == _E.UNSUPPORTED_VERSION:
        yield from ((question, {}) for question in questions.values())  # append without verification
        return
    elif response.error_code != _E.NONE:
        error = ErrorCode.for_code(response.error_code)
        if error == _E.CLUSTER_AUTHORIZATION_FAILED:
            error = _E.INVALID_TXN_STATE  # the client cannot change this broker's authorization
    else:
        results = {result.transactional_id: result for result in response.results_by_transaction}
        for transactional_id, question in questions.items():
            result = results.get(transactional_id)
            if result is None:  # the client retries
                yield question, dict.fromkeys(question.partitions, _E.NETWORK_EXCEPTION)
            else:
                yield question, _errors_for_client(result, question.knows_abortable_error)
        return
    yield from ((question, dict.fromkeys(question.partitions, error)) for question in questions.values())


def _errors_for_client(
    result: AddPartitionsToTxnResult, knows_abortable_error: bool
) -> dict[TopicPartition, ErrorCode]:
    errors: dict[TopicPartition, ErrorCode] = {}
    for topic in result.topic_results:
        for partition in topic.results_by_partition:
            error = ErrorCode.for_code(partition.partition_error_code)
            if error == _E.PRODUCER_FENCED:
                error = _E.INVALID_PRODUCER_EPOCH  # producers expect this error of a Produce
            elif error == _E.TRANSACTION_ABORTABLE and not knows_abortable_error:
                error = _E.INVALID_TXN_STATE
            if error != _E.NONE:
                errors[TopicPartition(topic.name, partition.partition_index)] = error
    return errors
