"""The options of Spark's JVMs in the tests, which live a minute."""

from __future__ import annotations

from typing import Final

from tests.support.processes.apache.jvm import REPOSITORY

CLASSES: Final = REPOSITORY / ".cache" / "spark" / "test-classes.jsa"
"""What shared_classes.py makes. Loading Spark's classes is most of a start; from the archive it takes half as long."""

FRUGAL: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
"""Without the second compiler, and without the files by which other programs watch a JVM."""

DIAGNOSTIC: Final = "-XX:+UnlockDiagnosticVMOptions"
"""Has to come before some of the others."""

TRUSTING: Final = "-XX:-BytecodeVerificationRemote -XX:MetaspaceSize=192m"
"""Spark's classes are not verified, and no garbage is collected because there are many of them."""

NO_REMARKS: Final = "-Xlog:disable"
"""Of the JVM, which says so when the archive does not fit."""

AT_ITS_ADDRESS: Final = "-XX:ArchiveRelocationMode=0"
"""Else a JVM maps the archive at a random address, and changes each pointer in it."""


def short_lived() -> str:
    """The options, in one line."""
    archive = [f"-XX:SharedArchiveFile={CLASSES}"] if CLASSES.is_file() else []
    return " ".join([FRUGAL, DIAGNOSTIC, TRUSTING, NO_REMARKS, AT_ITS_ADDRESS, *archive])
