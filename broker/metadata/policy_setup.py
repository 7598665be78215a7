"""Loads the policies and the authorizer that the configuration file names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.config.python_class import new_instance
from odradek.controller.admin.policies import AlterConfigPolicy, CreateTopicPolicy, Policies

if TYPE_CHECKING:
    from random import Random

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.security.authorizer.ports import Authorizer
    from odradek.controller.znodes.metadata_client import MetadataClient
    from odradek.timer.clock import Clock
    from odradek.timer.system_timer import SystemTimer


def load_policies(config: BrokerConfig, clock: Clock) -> Policies:
    """The configured policies of new topics and of changes of configs. Raises: StartupError."""
    settings, topics, configs = config.settings, "create.topic.policy.class.name", "alter.config.policy.class.name"
    create, alter = config.create_topic_policy_class_name, config.alter_config_policy_class_name
    return Policies(
        clock,
        create_topic=None if create is None else new_instance(topics, create, CreateTopicPolicy, settings),
        alter_config=None if alter is None else new_instance(configs, alter, AlterConfigPolicy, settings),
    )


async def load_authorizer(
    config: BrokerConfig, client: MetadataClient, clock: Clock, timer: SystemTimer, rng: Random
) -> Authorizer | None:
    """The configured authorizer, ready for questions; None if none is named. Raises: StartupError, TreeError."""
    if not config.authorizer_class_name:
        return None
    from odradek.broker.security.authorizer.authorizer_setup import make_authorizer

    return await make_authorizer(config, client, clock, timer, rng.randrange)
