"""UpdateFeatures (API key 57), versions 0-1, flexible.

Changes finalized features of the cluster (KIP-584).

v1   upgrade_type (1 upgrade, 2 safe downgrade, 3 unsafe downgrade) in place of allow_downgrade; validate_only
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import Request, Response, Struct, array, boolean, int8, int16, int32, string


class FeatureUpdateKey(Struct):
    feature: str = string("0+")
    max_version_level: int = int16("0+")
    allow_downgrade: bool = boolean("0")
    upgrade_type: int = int8("1+", default=1)


class UpdateFeaturesRequest(Request, key=57, versions="0-1", flexible="0+"):
    timeout_ms: int = int32("0+", default=60000)
    feature_updates: Sequence[FeatureUpdateKey] = array(FeatureUpdateKey, "0+", packed=True)
    validate_only: bool = boolean("1+")


class UpdatableFeatureResult(Struct):
    feature: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


class UpdateFeaturesResponse(Response, key=57, versions="0-1", flexible="0+"):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    results: Sequence[UpdatableFeatureResult] = array(UpdatableFeatureResult, "0+")
