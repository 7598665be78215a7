"""The state machine of a transaction.

A transactional id identifies a producer across its restarts. Each id has one transaction at a time. The coordinator's
log (`__transaction_state`) holds its outcome; the logs of its partitions then get the outcome as a marker. The states:

    Empty              the id has a producer id and epoch, and no transaction.
    Ongoing            partitions have been added; records may be written to them.
    PrepareCommit      the outcome is in the coordinator's log and cannot change. Markers are being written; a new
    PrepareAbort       coordinator writes them again.
    CompleteCommit     every partition has its marker. The next transaction may begin.
    CompleteAbort
    Dead               the id has expired and is being removed. Never written to the log.
    PrepareEpochFence  the producer epoch is being bumped to fence the old producer, because a new producer with this
                       id has called InitProducerId, or the transaction has timed out. Never written to the log: the
                       abort that follows at once writes the new epoch.

                  partitions added            end                markers written
        +-------+ ---------------> +---------+ ---> +----------------+ ---> +----------------+
    o-->| Empty |                  | Ongoing |      | PrepareCommit  |      | CompleteCommit |
        +-------+ <-+              +---------+      | PrepareAbort   |      | CompleteAbort  |
                    |                |     ^        +----------------+      +----------------+
                    |          fence v     |                ^                 |     |
                    |   PrepareEpochFence -|----------------+   added again   |     |
                    |                      +----------------------------------+     |
                    +---------------------------------------------------------------+
                                          a producer is initialised

While a change is being appended to the log, its new state is *pending* and no other change may begin: requests get
CONCURRENT_TRANSACTIONS and retry.

A state is entered only from the states in `VALID_PREVIOUS`; any other transition is a bug and raises. `END_ANSWERS`
has the errors of EndTxn in the states other than Ongoing. Only an id in one of the `EXPIRABLE` states can expire.

Kafka: TransactionState.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from odradek.protocol.errors import ErrorCode


class TransactionState(IntEnum):
    """The state of a transaction; the numbers are those in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    __hash__ = int.__hash__  # Enum's own hashes the name, in Python

    def __str__(self) -> str:
        """Kafka's name: `PrepareCommit`."""
        return "".join(word.capitalize() for word in self.name.split("_"))


_S = TransactionState
_E = ErrorCode

STATES_BY_NAME: Mapping[str, TransactionState] = {str(state): state for state in TransactionState}

VALID_PREVIOUS: Mapping[TransactionState, frozenset[TransactionState]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    _S.PREPARE_ABORT: frozenset({_S.ONGOING, _S.PREPARE_EPOCH_FENCE}),
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: frozenset({_S.EMPTY, _S.COMPLETE_ABORT, _S.COMPLETE_COMMIT}),
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.ONGOING}),
}

EXPIRABLE = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})

PREPARED = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})

END_ANSWERS: Mapping[TransactionState, Mapping[bool, ErrorCode]] = {
    _S.EMPTY: {True: _E.INVALID_TXN_STATE, False: _E.INVALID_TXN_STATE},
    _S.PREPARE_COMMIT: {True: _E.CONCURRENT_TRANSACTIONS, False: _E.INVALID_TXN_STATE},
    _S.PREPARE_ABORT: {True: _E.INVALID_TXN_STATE, False: _E.CONCURRENT_TRANSACTIONS},
    _S.COMPLETE_COMMIT: {True: _E.NONE, False: _E.INVALID_TXN_STATE},
    _S.COMPLETE_ABORT: {True: _E.INVALID_TXN_STATE, False: _E.NONE},
}
"""The error of EndTxn, by state and by whether it commits. A repeated EndTxn is no error, the opposite one is."""


class IllegalTransitionError(RuntimeError):
    """The transition is not in VALID_PREVIOUS: a bug in the coordinator."""
