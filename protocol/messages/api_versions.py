"""ApiVersions (API key 18), versions 0-4, flexible from 3.

Asks which APIs and versions the broker serves. The response header never has tagged fields, and a version that is not
served is answered in version 0 with UNSUPPORTED_VERSION and the range of this API (KIP-511).

v1   throttle_time_ms in the response
v2   the response goes out before the client is throttled (KIP-219)
v3   flexible; name and version of the client software (KIP-511); supported and finalized features (KIP-584)
v4   a supported feature may start at version 0; for v3 such a feature has to be left out (KAFKA-17011)
"""

from __future__ import annotations

from odradek.protocol.codec.schema import Request, Response, Struct, array, boolean, int16, int32, int64, string


class ApiVersionsRequest(Request, key=18, versions="0-4", flexible="3+"):
    client_software_name: str = string("3+", ignorable=True)
    client_software_version: str = string("3+", ignorable=True)


class ApiVersion(Struct):
    api_key: int = int16("0+")
    min_version: int = int16("0+")
    max_version: int = int16("0+")


class SupportedFeatureKey(Struct):
    name: str = string("3+")
    min_version: int = int16("3+")
    max_version: int = int16("3+")


class FinalizedFeatureKey(Struct):
    name: str = string("3+")
    max_version_level: int = int16("3+")
    min_version_level: int = int16("3+")


class ApiVersionsResponse(Response, key=18, versions="0-4", flexible="3+"):
    error_code: int = int16("0+")
    api_keys: list[ApiVersion] = array(ApiVersion, "0+")
    throttle_time_ms: int = int32("1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = array(SupportedFeatureKey, "3+", ignorable=True, tag=0, tagged="3+")
    finalized_features_epoch: int = int64("3+", default=-1, ignorable=True, tag=1, tagged="3+")
    finalized_features: list[FinalizedFeatureKey] = array(FinalizedFeatureKey, "3+", ignorable=True, tag=2, tagged="3+")
    zk_migration_ready: bool = boolean("3+", ignorable=True, tag=3, tagged="3+")
