"""The right to alter the configs of a resource: a topic's own, or the cluster's for brokers and their loggers.

Kafka: KafkaApis.processIncrementalAlterConfigsRequest, KafkaApis.configsAuthorizationApiError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize, require
from odradek.controller.admin.config_admin import RequestRefused
from odradek.controller.model import acls
from odradek.controller.model.config_codes import ResourceType
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.controller.admin.config_admin import ResourceChanges


def require_right(broker: Services, ctx: RequestContext, resource: ResourceChanges) -> None:
    """Raises: KafkaError TOPIC_AUTHORIZATION_FAILED or CLUSTER_AUTHORIZATION_FAILED; RequestRefused for client metrics,
    for which Apache has no such code.
    """
    alter = acls.AclOperation.ALTER_CONFIGS
    if resource.resource_type == ResourceType.TOPIC:
        require(broker, ctx, alter, acls.ResourceType.TOPIC, resource.resource_name)
    elif resource.resource_type == ResourceType.CLIENT_METRICS:
        if broker.authorizer is not None and not authorize(
            broker, ctx, alter, acls.ResourceType.CLUSTER, acls.CLUSTER_NAME
        ):
            message = f"Unexpected resource type CLIENT_METRICS for resource {resource.resource_name}"
            raise RequestRefused(ErrorCode.INVALID_REQUEST, message)
    else:
        require(broker, ctx, alter, acls.ResourceType.CLUSTER, acls.CLUSTER_NAME)
