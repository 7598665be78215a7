"""DescribeAcls (key 29), served: 0-3. SECURITY_DISABLED without an authorizer.

Kafka: KafkaApis.handleDescribeAcls, AclApis.handleDescribeAcls, DescribeAclsResponse.aclsResources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize_cluster, configured_authorizer
from odradek.broker.apis.security.acl_codes import filter_of, is_readable_filter
from odradek.broker.apis.services import in_slices
from odradek.controller.model.acls import AclOperation
from odradek.protocol.messages.describe_acls import AclDescription, DescribeAclsResource, DescribeAclsResponse

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.controller.model.acls import ResourcePattern
    from odradek.protocol.messages.describe_acls import DescribeAclsRequest
    from odradek.timer.sliced_work import Steps


@in_slices
def handle(broker: Services, ctx: RequestContext, request: DescribeAclsRequest) -> Steps:
    if not is_readable_filter(request, ctx.header.api_version):
        ctx.close_connection()
        return
    authorize_cluster(broker, ctx, AclOperation.DESCRIBE)
    authorizer = configured_authorizer(broker, "No Authorizer is configured on the broker")
    resources: dict[ResourcePattern, DescribeAclsResource] = {}
    for binding in authorizer.acls(filter_of(request)):
        if binding is None:
            yield None
            continue
        if binding.is_unknown:
            raise ValueError("DescribeAclsResponse contains UNKNOWN elements")
        (resource_type, name, pattern_type), (principal, host, operation, permission) = binding
        if binding.pattern not in resources:
            resources[binding.pattern] = DescribeAclsResource(
                resource_type=resource_type, resource_name=name, pattern_type=pattern_type
            )
        description = AclDescription(principal=principal, host=host, operation=operation, permission_type=permission)
        resources[binding.pattern].acls.append(description)
        yield None
    ctx.reply(DescribeAclsResponse(resources=list(resources.values())))
