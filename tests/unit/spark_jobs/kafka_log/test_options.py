from __future__ import annotations

import json

import pytest

from spark_jobs.kafka_log.errors import KafkaLogError
from spark_jobs.kafka_log.options import EARLIEST, LATEST, ReadOptions, parse_options


def parsed(*, streaming: bool = False, **options: str) -> ReadOptions:
    return parse_options({"path": "/data", **options}, streaming=streaming)


def test_defaults() -> None:
    options = parsed()
    assert options.log_dirs == ("/data",)
    assert (options.starting.offset, options.ending.offset) == (EARLIEST, LATEST)
    assert options.selects("any", 7)
    assert (options.read_committed, options.include_control, options.include_headers) == (False, False, False)
    assert (options.beyond_high_watermark, options.all_replicas, options.permissive) == (False, False, False)
    assert options.fail_on_data_loss
    assert parsed(streaming=True).starting.offset == LATEST


def test_names_and_choices_have_no_case() -> None:
    options = parsed(STARTINGOFFSET="5", IsolationLevel="READ_COMMITTED", MODE="permissive", includeheaders="TRUE")
    assert (options.starting.offset, options.read_committed, options.permissive) == (5, True, True)
    assert options.include_headers


def test_directories() -> None:
    assert parsed(path="/a, /b,/a").log_dirs == ("/a", "/b")
    assert parsed(path="file:///a").log_dirs == ("/a",)
    assert parse_options({"paths": json.dumps(["/a,b", "/c"])}).log_dirs == ("/a,b", "/c")


def test_topics_and_partitions() -> None:
    named = parsed(topic="orders, clicks", partition="0,2")
    assert [named.selects(*tp) for tp in (("orders", 0), ("orders", 1), ("clicks", 2), ("click", 0))] == [
        True,
        False,
        True,
        False,
    ]
    matched = parsed(topicPattern="ord.*")
    assert (matched.selects("orders", 1), matched.selects("disorder", 1)) == (True, False)


def test_offsets_of_partitions() -> None:
    options = parsed(startingOffset='{"orders": {"0": 23, "1": -1}}', endingOffset="latest")
    assert [options.starting.of("orders", number) for number in (0, 1, 2)] == [23, LATEST, EARLIEST]
    assert options.ending.of("orders", 0) == LATEST
    assert parsed(startingTimestamp="17").starting.timestamp_ms == 17


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"path": ""}, "no log directory is given"),
        ({"startingOffsets": "earliest"}, "there is no option startingoffsets; the options are path, "),
        ({"topic": "a", "topicPattern": "b"}, "topic and topicPattern exclude each other"),
        ({"topicPattern": "("}, r"topicPattern '\(' is no regular expression"),
        ({"partition": "x"}, "partition 'x' is not a number of 0 or more"),
        ({"startingOffset": "soon"}, "startingOffset 'soon' is not a number"),
        ({"startingOffset": '{"a": 1}'}, "startingOffset .* is not earliest, latest, a number, or JSON"),
        ({"endingTimestamp": "-1"}, "endingTimestamp '-1' is not a number"),
        ({"isolationLevel": "serializable"}, "isolationLevel 'serializable' is not read_uncommitted or read_committed"),
        ({"mode": "DROPMALFORMED"}, "mode 'DROPMALFORMED' is not FAILFAST or PERMISSIVE"),
        ({"includeControl": "yes"}, "includeControl 'yes' is not false or true"),
        ({"maxRowsPerBatch": "0"}, "maxRowsPerBatch must be at least 1"),
    ],
)
def test_wrong_options_are_one_line(options: dict[str, str], line: str) -> None:
    with pytest.raises(KafkaLogError, match=line) as raised:
        parsed(**options)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("option", [{"endingOffset": "5"}, {"endingTimestamp": "5"}, {"replicas": "all"}])
def test_options_of_a_batch_are_none_of_a_stream(option: dict[str, str]) -> None:
    parsed(**option)
    with pytest.raises(KafkaLogError, match="of a batch"):
        parsed(streaming=True, **option)
