"""The written reference of all configs, from the tables: `python -m odradek.broker.config.config_reference` prints it.

`docs/configuration.md` is its output; a test compares them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Final

from odradek.broker.config.broker_config import EMBEDDED_METADATA_DEFAULTS
from odradek.broker.config.config_keys import BROKER_CONFIG_KEYS
from odradek.broker.config.keys.not_served.effects import effect
from odradek.broker.config.keys.quotas import BROKER_QUOTAS
from odradek.storage.config.config_def import ConfigKey, NoDefault
from odradek.storage.config.log_config import TOPIC_CONFIG_SYNONYMS, TOPIC_CONFIGS

_HEAD: Final = """\
# Configuration

All configs of Apache Kafka 3.9 in ZooKeeper mode and the few that Odradek adds, with their effect here. This page is
the output of `python -m odradek.broker.config.config_reference`.

*Effect* of the key here: "acts" means that it works as in Apache Kafka. "none" means that it changes nothing; the start
logs a warning if it is not set to its default. "refused" means that the broker does not start with it.
*Dynamic*, whether the value can be changed while the broker runs: "read-only" needs a restart, "per-broker" can be
changed for one broker, "cluster-wide" for one broker or for all.
"""

_TOPIC_EFFECTS: Final = {
    "remote.storage.enable": "refused if true: there is no tiered storage",
    "remote.log.copy.disable": "refused if true: there is no tiered storage",
    "remote.log.delete.on.disable": "refused if true: there is no tiered storage",
    "local.retention.ms": "none: there is no tiered storage",
    "local.retention.bytes": "none: there is no tiered storage",
}


def reference() -> str:
    """The page."""
    return "\n".join(
        (
            _HEAD,
            "## Brokers\n",
            *_table(
                ("Name", "Type", "Default", "Valid values", "Dynamic", "Effect", "What it is"),
                (
                    (*_columns(key), key.update_mode.value, effect(key.name), key.doc)
                    for key in sorted(BROKER_CONFIG_KEYS.values(), key=lambda key: key.name)
                ),
            ),
            "",
            "Without `zookeeper.connect` these keys have other defaults, so that a single node needs no settings:\n",
            *_table(("Name", "Default"), ((f"`{name}`", value) for name, value in EMBEDDED_METADATA_DEFAULTS.items())),
            "",
            "These can only be set with AlterConfigs, for one broker or for all; all of them act:\n",
            *_table(
                ("Name", "Type", "Default", "Valid values", "What it is"),
                ((*_columns(key), key.doc) for key in BROKER_QUOTAS),
            ),
            "",
            "## Topics\n",
            "All of them can be set when a topic is created, and changed at any time. *Default from*: the keys of the",
            "broker for the default; the first of them that is set counts.\n",
            *_table(
                ("Name", "Type", "Default", "Valid values", "Default from", "Effect", "What it is"),
                (
                    (*_columns(key), _synonyms(key.name), _TOPIC_EFFECTS.get(key.name, "acts"), key.doc)
                    for key in sorted(TOPIC_CONFIGS, key=lambda key: key.name)
                ),
            ),
            "",
        )
    )


def _columns(key: ConfigKey) -> tuple[str, str, str, str]:
    default = "required" if isinstance(key.default, NoDefault) else "null" if key.default is None else key.default
    valid = "" if key.validator is None else str(key.validator)
    return f"`{key.name}`", key.type.name.lower(), default or '""', valid


def _synonyms(name: str) -> str:
    return ", ".join(synonym.name for synonym in TOPIC_CONFIG_SYNONYMS.get(name, ()))


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield _row(head)
    yield _row(("---",) * len(head))
    yield from map(_row, rows)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


if __name__ == "__main__":
    sys.stdout.write(reference())
