"""Which texts name a version of the inter-broker protocol, and what each version means, as Apache Kafka 3.9.1 says.

`metadata_versions/kafka-3.9.1.txt` was written by `metadata_versions/CaptureMetadataVersions.java`.
"""

from __future__ import annotations

from pathlib import Path

from odradek.protocol.metadata_version import FIRST_FETCH_VERSION, FIRST_LIST_OFFSETS_VERSION, MetadataVersion

CAPTURED = (Path(__file__).parent / "metadata_versions" / "kafka-3.9.1.txt").read_text().splitlines()
ROWS = [line.split("\t") for line in CAPTURED]


def named(text: str) -> str:
    try:
        return str(MetadataVersion.of_text(text))
    except ValueError:
        return "refused"


def test_texts_name_what_they_name_in_kafka() -> None:
    expected = {text.replace("\\", ""): version for kind, text, version in (row[:3] for row in ROWS) if kind == "text"}
    assert {text: named(text) for text in expected} == expected
    assert (expected["4.0-IV0"], expected["4.0-IV1"], expected["4.0"]) == ("4.0-IV0", "4.0-IV1", "refused")


def test_each_version_means_what_it_means_in_kafka() -> None:
    captured = [row[1:] for row in ROWS if row[0] == "version"]
    ours = [
        [
            str(version),
            version.release,
            str(version.record_version),
            str(version.has_features).lower(),
            str(version.has_topic_ids).lower(),
            str(version.has_leader_recovery).lower(),
            str(version.group_metadata_value_version),
            str(version.offset_commit_value_version),
            "1",
            str(version.fetch_request_version),
            str(version.list_offsets_request_version),
            str(version.write_txn_markers_request_version),
        ]
        for version in MetadataVersion
    ]
    expected = [
        [
            *row[:9],
            str(max(int(row[9]), FIRST_FETCH_VERSION)),
            str(max(int(row[10]), FIRST_LIST_OFFSETS_VERSION)),
            row[11],
        ]
        for row in captured
    ]
    assert ours == expected
