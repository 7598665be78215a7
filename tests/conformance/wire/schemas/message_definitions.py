"""Apache Kafka's message definitions, read from the jars they are shipped in."""

from __future__ import annotations

import json
import re
from functools import cache
from zipfile import ZipFile

from tests.support.processes.apache.jvm import KAFKA_VERSION, libs_dir

JARS = ("kafka-clients", "kafka-group-coordinator", "kafka-transaction-coordinator")
Definition = dict[str, object]


@cache
def definitions() -> dict[str, Definition]:
    """By name, as in the JSON: `ProduceRequest`, `OffsetCommitKey`."""
    found = {}
    for jar in JARS:
        with ZipFile(libs_dir() / f"{jar}-{KAFKA_VERSION}.jar") as archive:
            for name in archive.namelist():
                if re.fullmatch(r"common/message/\w+\.json", name):
                    definition = json.loads(_without_comments(archive.read(name).decode()))
                    found[definition["name"]] = definition
    return found


def _without_comments(text: str) -> str:
    """JSON allows no comments; Kafka's definitions have them on lines of their own."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))
