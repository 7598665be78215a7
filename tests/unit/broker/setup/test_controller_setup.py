from __future__ import annotations

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.setup.controller_setup import controller_config_of


def test_the_controller_has_the_id_that_the_broker_was_given_and_reads_present_settings() -> None:
    config = BrokerConfig({"num.partitions": "3"})
    config.assign_broker_id(7)
    found = controller_config_of(config)
    assert (found.broker_id, found.num_partitions) == (7, 3)
    config.apply_dynamic(broker={}, default={"min.insync.replicas": "2"})
    assert found.broker_settings()["min.insync.replicas"] == "2"
