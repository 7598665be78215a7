"""The versions of the protocol between brokers that `inter.broker.protocol.version` names, and what each one changed.

A version is written as a release (`2.8`), as a step on the way to one (`2.8-IV0`), or with further parts, which are
ignored (`2.8.1`). A release means its last step. The steps to 4.0 are known to 3.9 and can be named, but its release
cannot. `log.message.format.version` and `message.format.version` are written in the same way, and mean the newest
record format of that version.

Each property is one thing that a broker or controller does at a version; request versions are those that it sends.

Kafka: MetadataVersion and RecordVersion.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from odradek.protocol.java_split import java_split
from odradek.protocol.records.layout import MAGIC_V0, MAGIC_V1, MAGIC_V2


class MetadataVersion(IntEnum):
    """Later versions are greater."""

    IBP_0_8_0 = 0
    IBP_0_8_1 = 1
    IBP_0_8_2 = 2
    IBP_0_9_0 = 3
    IBP_0_10_0_IV0 = 4
    IBP_0_10_0_IV1 = 5
    IBP_0_10_1_IV0 = 6
    IBP_0_10_1_IV1 = 7
    IBP_0_10_1_IV2 = 8
    IBP_0_10_2_IV0 = 9
    IBP_0_11_0_IV0 = 10
    IBP_0_11_0_IV1 = 11
    IBP_0_11_0_IV2 = 12
    IBP_1_0_IV0 = 13
    IBP_1_1_IV0 = 14
    IBP_2_0_IV0 = 15
    IBP_2_0_IV1 = 16
    IBP_2_1_IV0 = 17
    IBP_2_1_IV1 = 18
    IBP_2_1_IV2 = 19
    IBP_2_2_IV0 = 20
    IBP_2_2_IV1 = 21
    IBP_2_3_IV0 = 22
    IBP_2_3_IV1 = 23
    IBP_2_4_IV0 = 24
    IBP_2_4_IV1 = 25
    IBP_2_5_IV0 = 26
    IBP_2_6_IV0 = 27
    IBP_2_7_IV0 = 28
    IBP_2_7_IV1 = 29
    IBP_2_7_IV2 = 30
    IBP_2_8_IV0 = 31
    IBP_2_8_IV1 = 32
    IBP_3_0_IV0 = 33
    IBP_3_0_IV1 = 34
    IBP_3_1_IV0 = 35
    IBP_3_2_IV0 = 36
    IBP_3_3_IV0 = 37
    IBP_3_3_IV1 = 38
    IBP_3_3_IV2 = 39
    IBP_3_3_IV3 = 40
    IBP_3_4_IV0 = 41
    IBP_3_5_IV0 = 42
    IBP_3_5_IV1 = 43
    IBP_3_5_IV2 = 44
    IBP_3_6_IV0 = 45
    IBP_3_6_IV1 = 46
    IBP_3_6_IV2 = 47
    IBP_3_7_IV0 = 48
    IBP_3_7_IV1 = 49
    IBP_3_7_IV2 = 50
    IBP_3_7_IV3 = 51
    IBP_3_7_IV4 = 52
    IBP_3_8_IV0 = 53
    IBP_3_9_IV0 = 54
    IBP_4_0_IV0 = 55
    IBP_4_0_IV1 = 56

    def __str__(self) -> str:
        """As configurations write it: `2.8-IV1`."""
        release, _, step = self.name.removeprefix("IBP_").partition("_IV")
        return release.replace("_", ".") + (f"-IV{step}" if step else "")

    @property
    def release(self) -> str:
        return str(self).partition("-")[0]

    @property
    def record_version(self) -> int:
        """The magic of the newest batches that brokers of this version know."""
        if self < MetadataVersion.IBP_0_10_0_IV0:
            return MAGIC_V0
        return MAGIC_V1 if self < MetadataVersion.IBP_0_11_0_IV0 else MAGIC_V2

    # What exists at all

    @property
    def ignores_message_format(self) -> bool:
        """Whether records are written in format 2 whatever a message format version says (KIP-724)."""
        return self >= MetadataVersion.IBP_3_0_IV1

    @property
    def has_features(self) -> bool:
        """Whether `/feature` and registrations contain features (KIP-584)."""
        return self >= MetadataVersion.IBP_2_7_IV0

    @property
    def has_topic_ids(self) -> bool:
        """KIP-516"""
        return self >= MetadataVersion.IBP_2_8_IV0

    @property
    def has_producer_id_allocation(self) -> bool:
        """Whether brokers ask the controller for producer ids (KIP-730); before, each took them by itself."""
        return self >= MetadataVersion.IBP_3_0_IV0

    @property
    def has_leader_recovery(self) -> bool:
        """Whether an unclean election is marked in the partition's state (KIP-704)."""
        return self >= MetadataVersion.IBP_3_2_IV0

    @property
    def has_static_membership(self) -> bool:
        """Whether members of groups may name their instance (KIP-345)."""
        return self >= MetadataVersion.IBP_2_3_IV0

    @property
    def has_transactions(self) -> bool:
        """KIP-98"""
        return self >= MetadataVersion.IBP_0_11_0_IV0

    @property
    def has_zstd(self) -> bool:
        """KIP-110"""
        return self >= MetadataVersion.IBP_2_1_IV0

    @property
    def survives_log_dir_failure(self) -> bool:
        """Whether a broker keeps running without a directory that failed (KIP-112)."""
        return self >= MetadataVersion.IBP_1_0_IV0

    # What is stored

    @property
    def broker_registration_version(self) -> int:
        if self < MetadataVersion.IBP_0_10_0_IV1:
            return 2
        return 4 if self < MetadataVersion.IBP_2_7_IV0 else 5

    @property
    def feature_node_version(self) -> int:
        """Since version 2 a finalised feature is one level instead of a range (KIP-778)."""
        return 1 if self < MetadataVersion.IBP_3_3_IV0 else 2

    @property
    def group_metadata_value_version(self) -> int:
        if self < MetadataVersion.IBP_0_10_1_IV0:
            return 0
        if self < MetadataVersion.IBP_2_1_IV0:
            return 1
        return 2 if self < MetadataVersion.IBP_2_3_IV0 else 3

    @property
    def offset_commit_value_version(self) -> int:
        """Of an offset without an expiry of its own; one that has it is written in version 1."""
        if self < MetadataVersion.IBP_2_1_IV0:
            return 1
        return 2 if self < MetadataVersion.IBP_2_1_IV1 else 3

    # What is sent to other brokers

    @property
    def fetch_request_version(self) -> int:
        """At least 12, the first whose response says where logs diverge: our followers truncate by nothing else."""
        for since, version in _FETCH_VERSIONS:
            if self >= since:
                return version
        return FIRST_FETCH_VERSION

    @property
    def list_offsets_request_version(self) -> int:
        """At least 5, which the releases from 2.2 on understand."""
        for since, version in _LIST_OFFSETS_VERSIONS:
            if self >= since:
                return version
        return FIRST_LIST_OFFSETS_VERSION

    @property
    def leader_and_isr_request_version(self) -> int:
        if self >= MetadataVersion.IBP_3_4_IV0:
            return 7
        if self >= MetadataVersion.IBP_3_2_IV0:
            return 6
        return 5 if self >= MetadataVersion.IBP_2_8_IV1 else 4

    @property
    def update_metadata_request_version(self) -> int:
        if self >= MetadataVersion.IBP_3_4_IV0:
            return 8
        return 7 if self >= MetadataVersion.IBP_2_8_IV1 else 6

    @property
    def stop_replica_request_version(self) -> int:
        return 4 if self >= MetadataVersion.IBP_3_4_IV0 else 3

    @property
    def alter_partition_request_version(self) -> int:
        """Of a request that names topics by id, from 2 on. Apache Kafka asks the controller what it knows instead."""
        if self >= MetadataVersion.IBP_3_5_IV1:
            return 3
        if self >= MetadataVersion.IBP_3_3_IV0:
            return 2
        return 1 if self.has_leader_recovery else 0

    @property
    def write_txn_markers_request_version(self) -> int:
        return 1 if self >= MetadataVersion.IBP_2_8_IV0 else 0

    @classmethod
    def of_text(cls, text: str) -> MetadataVersion:
        """The version that a text names. Raises: ValueError."""
        parts = java_split(text, ".")
        length = 3 if text.startswith("0.") else 2
        key = text if len(parts) <= length else ".".join(parts[:length])
        found = _BY_TEXT.get(key)
        if found is None:
            raise ValueError(f"Version {text} is not a valid version")
        return found

    @classmethod
    def first_of_record_version(cls, magic: int) -> MetadataVersion:
        """The first version that knows batches of this magic."""
        return next(version for version in cls if version.record_version == magic)


LATEST_PRODUCTION: Final = MetadataVersion.IBP_3_9_IV0

FIRST_FETCH_VERSION: Final = 12

OLDEST_BETWEEN_BROKERS: Final = MetadataVersion.IBP_2_7_IV0
"""The oldest version whose brokers understand all that is sent here: Fetch v12 and AlterPartition came with 2.7."""

FIRST_LIST_OFFSETS_VERSION: Final = 5

_FETCH_VERSIONS: Final = (
    (MetadataVersion.IBP_3_9_IV0, 17),
    (MetadataVersion.IBP_3_7_IV4, 16),
    (MetadataVersion.IBP_3_5_IV1, 15),
    (MetadataVersion.IBP_3_5_IV0, 14),
    (MetadataVersion.IBP_3_1_IV0, 13),
)
_LIST_OFFSETS_VERSIONS: Final = (
    (MetadataVersion.IBP_3_9_IV0, 9),
    (MetadataVersion.IBP_3_5_IV0, 8),
    (MetadataVersion.IBP_3_0_IV1, 7),
    (MetadataVersion.IBP_2_8_IV0, 6),
)


def _by_text() -> dict[str, MetadataVersion]:
    steps = {str(version): version for version in MetadataVersion}
    releases = {version.release: version for version in MetadataVersion if version <= LATEST_PRODUCTION}
    return steps | releases


_BY_TEXT: Final = _by_text()
