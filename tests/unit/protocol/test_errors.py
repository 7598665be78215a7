from __future__ import annotations

import pickle

from odradek.protocol.errors import DEFAULT_MESSAGES, REFRESHES_METADATA, RETRIABLE, ErrorCode, KafkaError
from odradek.protocol.records.errors import CorruptRecordError


def test_codes_are_consecutive() -> None:
    assert [code.value for code in ErrorCode] == list(range(-1, 128))


def test_every_error_but_none_has_a_message() -> None:
    assert set(DEFAULT_MESSAGES) == set(ErrorCode) - {ErrorCode.NONE}


def test_default_message_is_kafkas() -> None:
    error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert error.message == str(error) == "This server does not host this topic-partition."
    assert error.code == 3


def test_a_message_of_its_own_replaces_the_default() -> None:
    assert KafkaError(ErrorCode.INVALID_CONFIG, "no such key").message == "no such key"


def test_retriable_errors_are_known() -> None:
    assert KafkaError(ErrorCode.NOT_COORDINATOR).retriable
    assert KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER).retriable
    assert not KafkaError(ErrorCode.INVALID_RECORD).retriable
    assert REFRESHES_METADATA < RETRIABLE


def test_repr_names_the_code() -> None:
    assert repr(KafkaError(ErrorCode.INVALID_CONFIG, "x")) == "KafkaError(INVALID_CONFIG, 'x')"


def test_unknown_codes_are_unknown_server_errors() -> None:
    assert ErrorCode.for_code(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ErrorCode.for_code(128) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert ErrorCode.for_code(-2) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_errors_cross_processes() -> None:
    for error in (
        KafkaError(ErrorCode.NOT_COORDINATOR),
        KafkaError(ErrorCode.NONE, "text"),
        CorruptRecordError("bytes"),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), copy.code, copy.message, str(copy)) == (type(error), error.code, error.message, str(error))
