"""Makes the authorizer that the configuration file names.

Kafka: KafkaConfig.createNewAuthorizer.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from odradek.broker.config.keys.general import ACL_AUTHORIZER
from odradek.broker.config.python_class import new_instance
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.security.authorizer.acl_authorizer import AclAuthorizer
from odradek.broker.security.authorizer.ports import Authorizer
from odradek.controller.znodes.znode_json import BadZnode
from odradek.protocol.metadata_version import MetadataVersion
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.controller.znodes.metadata_client import MetadataClient
    from odradek.timer.clock import Clock
    from odradek.timer.system_timer import SystemTimer

logger = logging.getLogger(__name__)

KEY: Final = "authorizer.class.name"
KRAFT_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


async def make_authorizer(
    config: BrokerConfig,
    client: MetadataClient,
    clock: Clock,
    timer: SystemTimer,
    random_below: Callable[[int], int],
) -> Authorizer:
    """The configured authorizer, ready for questions. Raises: StartupError, TreeError."""
    path = config.authorizer_class_name
    if path == KRAFT_AUTHORIZER:
        raise StartupError(f"{KEY}={path}: it keeps ACLs in KRaft, and there is no KRaft mode; use {ACL_AUTHORIZER}.")
    if path != ACL_AUTHORIZER:
        return new_instance(KEY, path, Authorizer, config.settings)
    try:
        has_prefixed_acls = config.metadata_version >= MetadataVersion.IBP_2_0_IV1
        authorizer = AclAuthorizer(client, clock, timer, random_below, has_prefixed_acls=has_prefixed_acls)
        authorizer.configure(config.settings)
        await authorizer.start()
    except (BadZnode, ConfigError) as error:
        raise StartupError(f"{KEY}={path}: {error}.") from error
    logger.info("%d ACLs are in force", authorizer.acl_count)
    return authorizer
