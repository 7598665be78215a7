"""What `inter.broker.protocol.version` means; the whole of it is compared with Kafka in `tests/golden`."""

from __future__ import annotations

import pytest

from odradek.protocol.metadata_version import LATEST_PRODUCTION, MetadataVersion


def test_a_release_is_its_last_step() -> None:
    assert MetadataVersion.of_text("2.8") is MetadataVersion.IBP_2_8_IV1
    assert MetadataVersion.of_text("2.8-IV0") is MetadataVersion.IBP_2_8_IV0
    assert MetadataVersion.of_text("0.10.2.1") is MetadataVersion.IBP_0_10_2_IV0
    assert MetadataVersion.of_text("3.9") is LATEST_PRODUCTION


def test_steps_to_an_unfinished_release_can_be_named_but_not_the_release() -> None:
    assert MetadataVersion.of_text("4.0-IV1") is MetadataVersion.IBP_4_0_IV1
    with pytest.raises(ValueError, match=r"Version 4\.0 is not a valid version"):
        MetadataVersion.of_text("4.0")


@pytest.mark.parametrize(
    ("last_without", "rule"),
    [
        ("0.10.2-IV0", "has_transactions"),
        ("0.11.0-IV2", "survives_log_dir_failure"),
        ("2.0-IV1", "has_zstd"),
        ("2.2-IV1", "has_static_membership"),
        ("2.6-IV0", "has_features"),
        ("2.7-IV2", "has_topic_ids"),
        ("3.0-IV0", "ignores_message_format"),
        ("3.1-IV0", "has_leader_recovery"),
    ],
)
def test_features_of_a_version_are_absent_before(last_without: str, rule: str) -> None:
    version = MetadataVersion.of_text(last_without)
    assert not getattr(version, rule)
    assert getattr(MetadataVersion(version + 1), rule)


def test_request_versions_and_registration_follow_the_version() -> None:
    def numbers(text: str) -> tuple[int, ...]:
        version = MetadataVersion.of_text(text)
        return (
            version.leader_and_isr_request_version,
            version.update_metadata_request_version,
            version.stop_replica_request_version,
            version.broker_registration_version,
            version.feature_node_version,
        )

    assert numbers("0.9.0") == (4, 6, 3, 2, 1)
    assert numbers("2.6") == (4, 6, 3, 4, 1)
    assert numbers("2.8-IV0") == (4, 6, 3, 5, 1)
    assert numbers("2.8-IV1") == (5, 7, 3, 5, 1)
    assert numbers("3.3") == (6, 7, 3, 5, 2)
    assert numbers("3.4") == (7, 8, 4, 5, 2)


def test_the_first_version_of_each_record_format() -> None:
    assert [str(MetadataVersion.first_of_record_version(magic)) for magic in (0, 1, 2)] == [
        "0.8.0",
        "0.10.0-IV0",
        "0.11.0-IV0",
    ]
