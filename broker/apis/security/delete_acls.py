"""DeleteAcls (key 31), served: 0-3. SECURITY_DISABLED, as from Apache Kafka without an authorizer.

Kafka: KafkaApis.handleDeleteAcls, AclApis.handleDeleteAcls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.request import RequestContext
    from odradek.protocol.messages.delete_acls import DeleteAclsRequest


def handle(broker: Services, ctx: RequestContext, request: DeleteAclsRequest) -> None:
    raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
