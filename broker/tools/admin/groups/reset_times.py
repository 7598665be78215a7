"""Times on the command line: `2024-05-01T12:00:00.000`, and durations such as `P1DT2H`.

Kafka: Utils.getDateTime, java.time.Duration.parse.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from odradek.broker.tools.command.failures import CommandFailed

_DATETIME: Final = re.compile(
    r"(\d+)-(\d{1,2})-(\d{1,2})T(\d{1,2}):(\d{1,2}):(\d{1,2})\.(\d+)(?:Z|([+-])(\d\d):?(\d\d)?)?", re.ASCII
)
_DURATION: Final = re.compile(
    r"([-+]?)P(?:([-+]?[0-9]+)D)?(T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?",
    re.IGNORECASE,
)


def parse_datetime(text: str) -> int:
    """Milliseconds since 1970; without a time zone it is UTC. Raises: CommandFailed.

    As in Apache Kafka, the digits after the point are a number of milliseconds: `.5` is 5 ms.
    """
    if "T" not in text:
        raise CommandFailed("Error parsing timestamp. It does not contain a 'T' according to ISO8601 format")
    match = _DATETIME.fullmatch(text)
    if match is None:
        raise CommandFailed(f'Unparseable date: "{text}"')
    year, month, day, hour, minute, second, millis = (int(match[index]) for index in range(1, 8))
    offset = timedelta(hours=int(match[9] or 0), minutes=int(match[10] or 0))
    try:
        zone = timezone(-offset if match[8] == "-" else offset)
        found = datetime(year, month, day, hour, minute, second, millis * 1000, tzinfo=zone)
    except (ValueError, OverflowError):
        raise CommandFailed(f'Unparseable date: "{text}"') from None
    since = found - datetime(1970, 1, 1, tzinfo=UTC)
    return since // timedelta(milliseconds=1)


def parse_duration(text: str) -> int:
    """A duration in milliseconds. Raises: CommandFailed."""
    match = _DURATION.fullmatch(text)
    if match is None or match[3] in ("T", "t") or not (match[2] or match[3]):
        raise CommandFailed(f"Text cannot be parsed to a Duration: {text}")
    days, hours, minutes, seconds = (int(match[index] or 0) for index in (2, 4, 5, 6))
    fraction = int((match[7] or "").ljust(9, "0")[:3])
    if (match[6] or "").startswith("-"):
        fraction = -fraction
    millis = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + fraction
    return -millis if match[1] == "-" else millis
