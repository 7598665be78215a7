from __future__ import annotations

from odradek.protocol.codec.encode_error import EncodeError, TooLargeError, outside_version, wrong_uuid


def test_an_error_names_the_field_and_the_version() -> None:
    assert str(outside_version("Topic.id", 3)) == "Attempted to write a non-default Topic.id at version 3"
    assert str(wrong_uuid("Topic.id")) == "Topic.id is not a uuid of 16 bytes"


def test_what_is_too_large_is_caught_with_the_other_errors_of_encoding() -> None:
    assert issubclass(TooLargeError, EncodeError)
