"""Refuses requests that need a newer `inter.broker.protocol.version`: other brokers may not support them yet.

Before 2.3 another coordinator would lose the instance ids of static members (KIP-345); before 0.11 there are no
transactions (KIP-98).

Kafka: KafkaApis.ensureInterBrokerVersion, ApiKeys.minRequiredInterBrokerMagic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_version import MetadataVersion

if TYPE_CHECKING:
    from odradek.protocol.codec.schema import Request

TRANSACTIONAL: Final = frozenset(
    {
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.TXN_OFFSET_COMMIT,
    }
)
"""Not advertised before 0.11 either."""

_OF_MEMBERS: Final = frozenset({ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT})
"""OffsetCommit is checked by its handler: Apache Kafka asks the authorizer first there."""


def check(api_key: int, request: Request, metadata_version: MetadataVersion) -> None:
    """Raises: KafkaError UNSUPPORTED_VERSION."""
    if api_key in TRANSACTIONAL and not metadata_version.has_transactions:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"metadata.version: {metadata_version} is less than the required version: {MetadataVersion.IBP_0_11_0_IV0}",
        )
    is_static = api_key in _OF_MEMBERS and getattr(request, "group_instance_id", None) is not None
    if is_static and not metadata_version.has_static_membership:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
