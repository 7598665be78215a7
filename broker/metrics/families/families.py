"""All metrics of the broker, in the order of the text."""

from __future__ import annotations

from typing import Final

from odradek.broker.metrics.families.broker_families import BROKER_FAMILIES
from odradek.broker.metrics.families.cleaner_families import CLEANER_FAMILIES
from odradek.broker.metrics.families.connection_families import CONNECTION_FAMILIES
from odradek.broker.metrics.families.controller_families import CONTROLLER_FAMILIES
from odradek.broker.metrics.families.exporter_families import EXPORTER_FAMILIES
from odradek.broker.metrics.families.group_families import GROUP_FAMILIES
from odradek.broker.metrics.families.quota_families import QUOTA_FAMILIES
from odradek.broker.metrics.families.replica_families import REPLICA_FAMILIES
from odradek.broker.metrics.families.request_families import REQUEST_FAMILIES
from odradek.broker.metrics.families.topic_families import TOPIC_FAMILIES

FAMILIES: Final = (
    *BROKER_FAMILIES,
    *CONNECTION_FAMILIES,
    *CLEANER_FAMILIES,
    *TOPIC_FAMILIES,
    *REQUEST_FAMILIES,
    *QUOTA_FAMILIES,
    *REPLICA_FAMILIES,
    *CONTROLLER_FAMILIES,
    *GROUP_FAMILIES,
    *EXPORTER_FAMILIES,
)
