"""Kafka's Java client of a newer release, which writes a record and reads what is there."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from tests.support.processes.apache.jvm import QUICK_START, REPOSITORY, JvmMissingError, libs_dir, program_command

RELEASE: Final = "4.1.0"
VALUE: Final = b"from java 4"
"""What the client writes."""
_JAR: Final = REPOSITORY / ".cache" / "releases" / f"kafka-clients-{RELEASE}.jar"
_NEEDED_JARS: Final = ("slf4j-api", "lz4-java", "jackson-core", "jackson-databind", "jackson-annotations", "jose4j")
"""Those of OAUTHBEARER are not in the client's own jar."""
_PROGRAM: Final = REPOSITORY / "tests" / "support" / "jvm" / "ReadAndWrite.java"
_TIMEOUT_S: Final = 60


def write_and_read(config: Path, topic: str, count: int, *options: str) -> set[bytes]:
    """The different values of the first `count` records, of which one is the client's own.

    `config`: its properties, with the address of the broker. `options`: of the JVM.
    """
    if not _JAR.is_file():
        raise JvmMissingError(f"{_JAR} is not there: run `make .cache/releases/.complete`")
    path = ":".join(map(str, (_JAR, *(jar for name in _NEEDED_JARS for jar in libs_dir().glob(f"{name}-*.jar")))))
    command = program_command(_PROGRAM, options=(*QUICK_START, *options), class_path=path)
    finished = subprocess.run(
        [*command, str(config), topic, VALUE.decode(), str(count)],
        capture_output=True,
        check=False,
        timeout=_TIMEOUT_S,
    )
    version, *values = finished.stdout.splitlines() or [b""]
    assert version == RELEASE.encode(), finished.stderr.decode()
    return set(values)
