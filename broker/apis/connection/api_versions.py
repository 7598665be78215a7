"""ApiVersions (key 18), served: 0-4.

v1: throttle time. v3: name and version of the client's software, which must match a pattern; flexible encoding, but
never in the response header (KIP-511). v4: supported features with a minimum of 0 may be named.

Every API is advertised that has a handler and is not refused for the inter-broker protocol. The list is the same before
and after authentication. With `odradek.as.version` it is the list of an older release.

Kafka: KafkaApis.handleApiVersionsRequest, ApiVersionManager.apiVersionResponse.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from odradek.broker.apis import HANDLERS
from odradek.broker.apis.version_gates import TRANSACTIONAL
from odradek.protocol.api import API, ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from odradek.broker.apis.services import Services
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.network.requests.request import ClientConnection, RequestContext
    from odradek.protocol.api import ApiSpec
    from odradek.protocol.metadata_version import MetadataVersion

FIRST_SOFTWARE_VERSION: Final = 3

FIRST_WITH_OWN_RANGE: Final = 3
"""Releases with this version of ApiVersions answer an unsupported version with the range of ApiVersions (KIP-511)."""

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", re.ASCII)


def handle(broker: Services, ctx: RequestContext, request: ApiVersionsRequest) -> None:
    epoch = broker.metadata_cache.finalized_features_epoch
    ctx.reply(response_to(request, ctx.header.api_version, ctx.connection, broker.config, epoch))


def response_to(
    request: ApiVersionsRequest,
    version: int,
    connection: ClientConnection,
    config: BrokerConfig,
    finalized_features_epoch: int,
) -> ApiVersionsResponse:
    """The response, also before authentication. Notes the software of the client.

    In ZooKeeper mode 3.9 supports no features and finalizes none, but their epoch changes with their node.
    """
    if version >= FIRST_SOFTWARE_VERSION:
        name, software_version = request.client_software_name, request.client_software_version
        if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(software_version)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        connection.client_software_name = name
        connection.client_software_version = software_version
    return ApiVersionsResponse(
        api_keys=_served(config.apis, config.metadata_version), finalized_features_epoch=finalized_features_epoch
    )


def unsupported_version_response(apis: Mapping[int, ApiSpec] = API) -> ApiVersionsResponse:
    """The response, in version 0, to a version that is not served: it contains the served versions of this API.

    A release before 2.4 names no API.
    """
    own = apis[ApiKey.API_VERSIONS]
    named = [_advertised(own)] if own.max_version >= FIRST_WITH_OWN_RANGE else []
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=named)


def error_response(
    request: ApiVersionsRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, ApiVersionsResponse]:
    yield
    return ApiVersionsResponse(error_code=code)


def _served(apis: Mapping[int, ApiSpec], metadata_version: MetadataVersion) -> list[ApiVersion]:
    hidden = frozenset() if metadata_version.has_transactions else TRANSACTIONAL
    return [_advertised(spec) for spec in apis.values() if spec.key in HANDLERS and spec.key not in hidden]


@cache
def _advertised(spec: ApiSpec) -> ApiVersion:
    return ApiVersion(api_key=spec.key, min_version=spec.min_version, max_version=spec.max_version)
