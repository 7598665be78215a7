"""Loads the policies that the configuration file names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.config.python_class import new_instance
from odradek.controller.admin.policies import AlterConfigPolicy, CreateTopicPolicy, Policies

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.timer.clock import Clock


def load_policies(config: BrokerConfig, clock: Clock) -> Policies:
    """The configured policies of new topics and of changes of configs. Raises: StartupError."""
    settings, topics, configs = config.settings, "create.topic.policy.class.name", "alter.config.policy.class.name"
    create, alter = config.create_topic_policy_class_name, config.alter_config_policy_class_name
    return Policies(
        clock,
        create_topic=None if create is None else new_instance(topics, create, CreateTopicPolicy, settings),
        alter_config=None if alter is None else new_instance(configs, alter, AlterConfigPolicy, settings),
    )
