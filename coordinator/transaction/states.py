"""The life of a transaction, as its coordinator keeps it.

A transactional id names a producer across its restarts. Each id has one transaction at a time, and that goes through
two logs: the coordinator's (`__transaction_state`), which decides, and those of the partitions written to, which learn
the decision by a marker. The states say how far that is:

    Empty              the id has a producer id and epoch, and no transaction.
    Ongoing            partitions have been added; records may be written to them.
    PrepareCommit      decided, and in the coordinator's log: the point of no return. Markers are being written; a
    PrepareAbort       coordinator that takes over writes them again.
    CompleteCommit     every partition has its marker. The next transaction may begin.
    CompleteAbort
    Dead               the id has expired and is being removed. Never written to the log.
    PrepareEpochFence  the producer epoch is being raised so that whoever uses the old one is shut out, because a new
                       producer with this id came, or the transaction has timed out. Never written either: the abort
                       that follows at once writes the new epoch.

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

While a change is on its way into the log the state it leads to is *pending*, and no other change may begin. That is
what most requests come across when they are told CONCURRENT_TRANSACTIONS: come again.

Three rules. A state is entered only from the states `VALID_PREVIOUS` names, anything else is a bug and raises. What
EndTxn is told in a state that is not Ongoing is in `END_ANSWERS`. Only an id in one of the `EXPIRABLE` states can be
forgotten.

Kafka: TransactionState.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from odradek.protocol.errors import ErrorCode


class TransactionState(IntEnum):
    """Where a transaction stands; the number is what is stored."""

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
"""By state and whether a commit is asked for. The same end twice is a retry and no error; the other one is refused."""


class IllegalTransitionError(RuntimeError):
    """A transaction was to enter a state that does not follow from its own: a bug in the coordinator."""
