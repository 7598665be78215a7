"""The list of Apache's test classes: which run, how many tests each has then, and why the others do not.

`classes.txt` has a section for each verdict. Under `[runs]` a line is the number of tests that run and their class; a
`*` before it puts the class into the selection of `make test`. `[runs with a KDC]` is the same for the classes that
`make test-kerberos` runs; there `CLASS#EXPRESSION` stands for some tests of a class of `[runs]`. Below a class, after a
`-`, are tests of it that are left out: their number, a regular expression that is looked for in "method display-name",
and the reason. In the other sections a line is a class, in those of `not yet` with the number of its tests, and the
section's name is the reason. A reason is `not yet: ` and the beginning of a row in README's table of that name,
`does not apply: ` and why, or `runs with a KDC`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

LIST = Path(__file__).parent / "classes.txt"
OTHER_VARIANTS = r"quorum=(?!zk\b)|groupProtocol=consumer|Type=Raft-"
"""Left out in every class: most tests have variants, of which ZooKeeper mode is one, and the others are KRaft's."""

WITH_KDC = "runs with a KDC"
REASON = r"(?:not yet|does not apply): .+"
HEADING = re.compile(rf"\[(runs|{WITH_KDC}|{REASON})\]")
ENTRY = re.compile(r"(?P<selected>[* ]) *(?P<tests>\d+)  (?P<name>[\w.]+)(?:#(?P<only>\S+))?")
LEFT_OUT = re.compile(rf" +- *(?P<tests>\d+)  (?P<pattern>\S.*?)  +(?P<reason>{WITH_KDC}|{REASON})")


@dataclass(frozen=True)
class LeftOut:
    """Tests of a class that do not run, found by a regular expression, and why."""

    tests: int
    pattern: str
    reason: str


@dataclass
class TestClass:
    """One of Apache's test classes, with the number of its tests that run."""

    __test__ = False
    name: str
    tests: int
    selected: bool = False
    needs_kdc: bool = False
    only: str = ""
    """A regular expression of the tests that run; empty: all."""
    left_out: list[LeftOut] = field(default_factory=list)

    @property
    def suite(self) -> str:
        """The part of Apache Kafka that it belongs to."""
        if self.name.startswith("org.apache.kafka.streams."):
            return "streams"
        return "tools" if self.name.startswith("org.apache.kafka.tools.") else "core"


@dataclass
class Listing:
    """The whole list; `excused` has the reason for each class that does not run."""

    classes: dict[str, TestClass] = field(default_factory=dict)
    with_kdc: dict[str, TestClass] = field(default_factory=dict)
    excused: dict[str, str] = field(default_factory=dict)
    run: int = 0
    """How many tests run."""
    wait: int = 0
    """How many tests apply and do not run yet."""

    def has(self, name: str) -> bool:
        return name in self.classes or name in self.with_kdc or name in self.excused

    def named(self, name: str) -> list[TestClass]:
        """The classes of a suite, of a package, or those whose full or simple name it is."""
        return [
            entry
            for entry in self.classes.values()
            if name in (entry.suite, entry.name) or entry.name.startswith(f"{name}.") or entry.name.endswith(f".{name}")
        ]

    def reasons(self) -> set[str]:
        """Every reason that is given for something that does not run."""
        classes = [*self.classes.values(), *self.with_kdc.values()]
        return {*self.excused.values(), *(left.reason for one in classes for left in one.left_out)}


def read_listing(path: Path = LIST) -> Listing:
    """The committed list. ValueError: a line that is none, or a class that is there twice."""
    listing = Listing()
    section = ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        is_read = True
        if heading := HEADING.fullmatch(line):
            section = heading[1]
        elif section.startswith("runs"):
            is_read = _read_running(listing, line, needs_kdc=section != "runs")
        else:
            is_read = _read_excused(listing, section, line)
        if not is_read:
            raise ValueError(f"{path.name}:{number}: {line!r} is neither a section nor an entry of one")
    return listing


def _read_running(listing: Listing, line: str, *, needs_kdc: bool) -> bool:
    classes = listing.with_kdc if needs_kdc else listing.classes
    if (entry := ENTRY.fullmatch(line)) and _is_new(listing, entry["name"], entry["only"], needs_kdc=needs_kdc):
        name, is_selected = entry["name"], entry["selected"] == "*"
        classes[name] = TestClass(name, int(entry["tests"]), is_selected, needs_kdc, entry["only"] or "")
        listing.run += int(entry["tests"])
        return True
    if (found := LEFT_OUT.fullmatch(line)) and classes:
        left = LeftOut(int(found["tests"]), found["pattern"], found["reason"])
        next(reversed(classes.values())).left_out.append(left)
        listing.wait += left.tests if left.reason.startswith("not yet") else 0
        return True
    return False


def _is_new(listing: Listing, name: str, only: str | None, *, needs_kdc: bool) -> bool:
    if only is None:
        return not listing.has(name)
    return needs_kdc and name in listing.classes and name not in listing.with_kdc


def _read_excused(listing: Listing, section: str, line: str) -> bool:
    waits = section.startswith("not yet")
    entry = ENTRY.fullmatch(line) if waits else re.fullmatch(r" +(?P<name>[\w.]+)", line)
    if not section or not entry or listing.has(entry["name"]) or "#" in line:
        return False
    listing.excused[entry["name"]] = section
    listing.wait += int(entry["tests"]) if waits else 0
    return True
