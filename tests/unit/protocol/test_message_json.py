from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.message_json import camel_case, json_text, to_json
from odradek.protocol.messages.consumer_group_records import ClassicMemberMetadata, ConsumerGroupMemberMetadataValue
from odradek.protocol.messages.control_records import KRaftVersionRecord
from odradek.protocol.messages.coordinator_records import OffsetCommitValue
from odradek.protocol.messages.create_topics import CreatableTopicResult

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_text_is_read_back_by_any_json_reader(value: object) -> None:
    assert json.loads(json_text(value)) == value  # type: ignore[arg-type]


def test_text_is_as_jackson_writes_it() -> None:
    assert json_text({"a": [1, None, True], "é": '\x01\x1f\t\n"\\/\x7f🧵'}) == (
        '{"a":[1,null,true],"é":"\\u0001\\u001F\\t\\n\\"\\\\/\x7f🧵"}'
    )


@pytest.mark.parametrize(
    ("version", "names"),
    [
        (1, ["offset", "metadata", "commitTimestamp", "expireTimestamp"]),
        (3, ["offset", "leaderEpoch", "metadata", "commitTimestamp"]),
    ],
)
def test_fields_are_those_of_the_version(version: int, names: list[str]) -> None:
    assert list(to_json(OffsetCommitValue(offset=1), version)) == names


def test_tagged_fields_are_left_out_at_their_default() -> None:
    value = ConsumerGroupMemberMetadataValue(client_id="c")
    assert "classicMemberMetadata" not in to_json(value, 0)
    value.classic_member_metadata = ClassicMemberMetadata(session_timeout_ms=5)
    assert to_json(value, 0)["classicMemberMetadata"] == {"sessionTimeoutMs": 5, "supportedProtocols": []}
    assert "topicConfigErrorCode" not in to_json(CreatableTopicResult(), 7)
    assert to_json(CreatableTopicResult(topic_config_error_code=3), 7)["topicConfigErrorCode"] == 3


def test_bytes_are_base64_and_uuids_their_text() -> None:
    result = to_json(CreatableTopicResult(topic_id=bytes(15) + b"\xfb"), 7)
    assert result["topicId"] == "AAAAAAAAAAAAAAAAAAAA-w"


@pytest.mark.parametrize(
    ("name", "expected"), [("timeout_ms", "timeoutMs"), ("name", "name"), ("is_kraft_controller", "isKRaftController")]
)
def test_names_are_kafkas(name: str, expected: str) -> None:
    assert camel_case(name) == expected


def test_irregular_names_of_records() -> None:
    assert to_json(KRaftVersionRecord(version=0, kraft_version=1), 0) == {"version": 0, "kRaftVersion": 1}
