"""Values of configs for tests of what is refused: borders of every type, and texts that are no value at all.

Both brokers are asked, so a value needs no expectation here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from odradek.storage.config.config_def import ConfigKey, ConfigType

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1

NUMBERS: Final = (
    *("", "x", " 5 ", "+7", "-", "0x10", "1_000", "1e3", "0.5", "1.0", "NaN", "-0"),
    *("-2", "-1", "0", "1", "2", "3", "14", "1000"),
    *(str(INT_MAX), str(INT_MAX + 1), str(-INT_MAX - 1), str(-INT_MAX - 2)),
    *(str(LONG_MAX), str(LONG_MAX + 1), str(-LONG_MAX - 1), str(-LONG_MAX - 2)),
)

DOUBLES: Final = ("Infinity", "-Infinity", "1.5", "-0.5", "1e400", "1e-400", "0.9999", "1d", "1f", ".5", "5.")

BOOLEANS: Final = ("true", "false", "TRUE", " true ", "yes", "1", "", "null")

TEXTS: Final = ("", " ", "x", "a,b", ",", "producer", "gzip", "compact", "delete", "compact,delete", "compact, delete")
TEXTS_OF_TOPICS: Final = (
    "CreateTime",
    "LogAppendTime",
    "logappendtime",
    "*",
    "0:0",
    "0:0,1:1",
    "0-0",
    "3.0",
    "0.10.2",
    "9.9",
)


def hostile_values(key: ConfigKey) -> Iterator[str]:
    """What to try on a key, each value once."""
    match key.type:
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            values: tuple[str, ...] = NUMBERS
        case ConfigType.DOUBLE:
            values = NUMBERS + DOUBLES
        case ConfigType.BOOLEAN:
            values = BOOLEANS
        case _:
            values = TEXTS + TEXTS_OF_TOPICS
    yield from dict.fromkeys(values)
