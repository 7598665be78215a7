"""Apache Kafka's own integration tests with Odradek as the broker: a selection, and a check of the list.

`make apache-tests` runs them all, and the soak does; tests/support/apache_tests says how.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from tests.support.apache_tests.listing import WITH_KDC, TestClass, read_listing
from tests.support.apache_tests.runs import LIBS, check, run_class
from tests.support.processes.apache.jvm import KAFKA_VERSION, REPOSITORY

LISTING = read_listing()
SELECTION = [entry for entry in LISTING.classes.values() if entry.selected]
COVERED = {
    f"kafka_2.13-{KAFKA_VERSION}-test.jar": (
        r"(?:integration/|unit/)?kafka/(?:(?:admin|api|integration|server)/.*|network/Dynamic.*|.*/MirrorMakerIntegration"
        r"|.*/ProducerIdsIntegration)"
    ),
    f"kafka-tools-{KAFKA_VERSION}-test.jar": r"org/apache/kafka/tools/.*",
    f"kafka-streams-{KAFKA_VERSION}-test.jar": r"org/apache/kafka/streams/integration/.*",
}


@pytest.mark.parametrize("entry", SELECTION, ids=lambda entry: entry.name)
def test_a_class_of_apaches_tests_passes(entry: TestClass, tmp_path: Path) -> None:
    check(entry, run_class(entry, tmp_path))


def test_every_class_of_apaches_tests_is_listed() -> None:
    published = set[str]()
    for jar, covered in COVERED.items():
        with zipfile.ZipFile(LIBS / jar) as archive:
            names = [re.fullmatch(rf"({covered}Test)\.class", name) for name in archive.namelist()]
        published |= {name[1].replace("/", ".") for name in names if name and "$" not in name[1]}
    assert published == {*LISTING.classes, *LISTING.with_kdc, *LISTING.excused}


def test_what_does_not_run_yet_is_in_the_readme() -> None:
    readme = (REPOSITORY / "README.md").read_text()
    rows = re.findall(r"^\| (.*?) \|", readme.partition("## Not yet")[2].partition("\n## ")[0], re.MULTILINE)
    for reason in LISTING.reasons():
        verdict, _, row = reason.partition(": ")
        assert verdict in ("does not apply", WITH_KDC) or any(line.startswith(row) for line in rows), reason


def test_the_readme_has_the_count() -> None:
    counts = f"{LISTING.run:,} of the {LISTING.run + LISTING.wait:,}"
    readme = (REPOSITORY / "README.md").read_text()
    assert f"{counts} that apply have passed" in " ".join(readme.split())
    reliability = (REPOSITORY / "docs" / "reliability.md").read_text()
    assert f"{counts} of Apache's tests that apply have passed" in reliability


def test_the_list_of_classes_is_refused_with_a_line_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "classes.txt"
    for text in (
        "kafka.A\n",
        "[runs]\nkafka.A\n",
        "[runs]\n  3  kafka.A\n  3  kafka.A\n",
        "[ignored: slow]\n",
        "[runs]\n      - 1 x  slow\n",
        "[runs]\n  3  kafka.A#test\n",
        "[runs with a KDC]\n  3  kafka.A#test\n",
        "[runs]\n  3  kafka.A\n[runs with a KDC]\n  3  kafka.A\n",
        "[runs]\n  3  kafka.A\n[runs with a KDC]\n  1  kafka.A#one\n  1  kafka.A#two\n",
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"classes\.txt:\d"):
            read_listing(path)
