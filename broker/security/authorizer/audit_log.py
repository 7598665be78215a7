"""The audit log: one line for each decision, to the logger `kafka.authorizer.logger`.

What is denied is logged at INFO, what is allowed at DEBUG. Questions that grant nothing by themselves (authorized
operations, filters of lists) are logged at TRACE.

Kafka: AclAuthorizer.logAuditMessage.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from odradek.broker.machine.log_setup import AUTHORIZER_LOGGER, TRACE
from odradek.controller.model.acls import PatternType, pascal_name
from odradek.protocol.api import API

if TYPE_CHECKING:
    from odradek.broker.security.authorizer.ports import Action, AuthorizableRequestContext

audit_logger = logging.getLogger(AUTHORIZER_LOGGER)


def log_decision(
    ctx: AuthorizableRequestContext,
    action: Action,
    is_allowed: bool,
    pattern_type: PatternType = PatternType.LITERAL,
) -> None:
    if is_allowed:
        level = logging.DEBUG if action.log_if_allowed else TRACE
    else:
        level = logging.INFO if action.log_if_denied else TRACE
    if not audit_logger.isEnabledFor(level):
        return
    key = ctx.request_type
    audit_logger.log(
        level,
        "Principal = %s is %s Operation = %s from host = %s on resource = %s:%s:%s for request = %s with "
        "resourceRefCount = %d",
        ctx.principal,
        "Allowed" if is_allowed else "Denied",
        pascal_name(action.operation),
        ctx.client_host,
        pascal_name(action.resource_type),
        pattern_type.name,
        action.resource_name,
        API[key].name if key in API else key,
        action.resource_reference_count,
    )
