from __future__ import annotations

import logging

import pytest

from odradek.broker.machine.log_setup import AUTHORIZER_LOGGER, TRACE
from odradek.broker.security.authorizer.ports import Action
from odradek.controller.model.acls import (
    AclOperation,
    ResourceType,
)
from tests.support.acls.authorizers import (
    READ,
    TOPIC,
    WRITE,
    binding,
    brokers,
    client_of,
    create,
)
from tests.support.async_test import async_test


@async_test
async def test_audit_log(caplog: pytest.LogCaptureFixture) -> None:
    async with brokers() as cluster:
        one = await cluster.start(super_users="User:root")
        await create(one, binding())
        caplog.set_level(TRACE, AUTHORIZER_LOGGER)
        caplog.clear()
        questions = [
            Action(READ, TOPIC, "t", 2),
            Action(READ, TOPIC, "t", log_if_allowed=False),
            Action(AclOperation.DESCRIBE, TOPIC, "t"),
            Action(WRITE, TOPIC, "t"),
            Action(WRITE, TOPIC, "none", log_if_denied=False),
        ]
        assert one.authorize(client_of(), questions) == [True, True, True, False, False]
        one.authorize_by_resource_type(client_of(), WRITE, TOPIC)
        one.authorize(
            client_of("User:root"), [Action(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, "kafka-cluster")]
        )
        resource = "ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)"
        reason = (
            f"operation = READ on resource = {resource} from host = 10.0.0.1 is ALLOW based on acl = "
            "User:a has ALLOW permission for operations: READ from hosts: *"
        )
        line = "Principal = User:a is {} Operation = {} from host = 10.0.0.1 on resource = Topic:{} for request = Fetch"
        assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
            (logging.DEBUG, reason),
            (logging.DEBUG, line.format("Allowed", "Read", "LITERAL:t") + " with resourceRefCount = 2"),
            (logging.DEBUG, reason),
            (TRACE, line.format("Allowed", "Read", "LITERAL:t") + " with resourceRefCount = 1"),
            (logging.DEBUG, reason),  # READ implies DESCRIBE
            (logging.DEBUG, line.format("Allowed", "Describe", "LITERAL:t") + " with resourceRefCount = 1"),
            (logging.INFO, line.format("Denied", "Write", "LITERAL:t") + " with resourceRefCount = 1"),
            (logging.DEBUG, f"No acl found for resource {resource.replace('=t', '=none')}, authorized = false"),
            (TRACE, line.format("Denied", "Write", "LITERAL:none") + " with resourceRefCount = 1"),
            (logging.INFO, line.format("Denied", "Write", "UNKNOWN:NONE") + " with resourceRefCount = 0"),
            (
                logging.DEBUG,
                "principal = User:root is a super user, allowing operation without checking acls.",
            ),
            (
                logging.DEBUG,
                "Principal = User:root is Allowed Operation = ClusterAction from host = 10.0.0.1 on resource = "
                "Cluster:LITERAL:kafka-cluster for request = Fetch with resourceRefCount = 1",
            ),
        ]
