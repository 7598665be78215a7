"""docs/configuration.md agrees with the tables."""

from __future__ import annotations

from pathlib import Path

from odradek.broker.config.config_reference import reference

PAGE = Path(__file__).parents[4] / "docs" / "configuration.md"


def test_the_page_is_what_the_command_prints() -> None:
    assert PAGE.read_text("utf-8") == reference(), (
        "python -m odradek.broker.config.config_reference > docs/configuration.md"
    )


def test_a_row_has_the_effect_of_the_key() -> None:
    rows = {line.split("|")[1].strip(): line for line in reference().splitlines() if line.startswith("| `")}
    assert "| cluster-wide | acts |" in rows["`log.retention.ms`"]
    assert "| refused: there is no tiered storage |" in rows["`remote.log.storage.system.enable`"]
    assert "| refused if true with zookeeper.ssl.client.enable=true: " in rows["`zookeeper.ssl.ocsp.enable`"]
    assert "| none: only KRaft uses it |" in rows["`controller.quorum.voters`"]
    assert "log.roll.ms, log.roll.hours" in rows["`segment.ms`"]


def test_the_page_has_the_defaults_of_a_single_node() -> None:
    assert "| `offsets.topic.replication.factor` | 1 |" in reference().splitlines()
