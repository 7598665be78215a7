"""The page of tested clients, from the suite: `python -m tests.documentation.clients_page` prints it.

`docs/clients.md` is its output; a test compares them. Versions are read where they are pinned. Which client a test file
uses is read from its imports: a client library, a class of the modules that wrap several clients, Apache Kafka's tools,
or a module of the test support that uses one of these.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import confluent_kafka

from tests.documentation.pages import REPOSITORY
from tests.support.apache_tests.listing import read_listing

AIOKAFKA, CONFLUENT, KAFKA_PYTHON, JAVA, SPARK = "aiokafka", "confluent-kafka", "kafka-python", "Java", "Spark"
COLUMNS = (CONFLUENT, AIOKAFKA, KAFKA_PYTHON, JAVA, SPARK)
LIBRARIES = {"aiokafka": AIOKAFKA, "confluent_kafka": CONFLUENT, "kafka": KAFKA_PYTHON, "pyspark": SPARK}
WRAPPERS = ("client_kinds", "clients", "faulted_clients", "transactional_clients")
"""The modules that wrap several clients; the names that are imported from them tell which."""
WRAPPED = {
    "Aiokafka": {AIOKAFKA},
    "Confluent": {CONFLUENT},
    "KafkaPython": {KAFKA_PYTHON},
    "Librdkafka": {CONFLUENT},
    "Console": {JAVA},
    "KINDS": {AIOKAFKA, CONFLUENT, KAFKA_PYTHON},
    "Java": {JAVA},
    "python_clients": {AIOKAFKA, CONFLUENT, KAFKA_PYTHON},
}
JAVA_MODULES = ("tools", "runs", "newer_client")
"""The modules that run Apache Kafka's tools, its own tests, and a newer client."""
BROKER_MODULES = ("apache",)
"""The modules that run Apache Kafka's broker and ZooKeeper: Java programs, but not clients."""
SPARK_MODULES = ("pieces", "session")
"""Of `tests/support/spark/`."""

SUITES = ("tests/conformance", "tests/soak")
KAFKA_POM = "tests/support/jvm/pom.xml"
APACHE_TESTS_POM = "tests/support/apache_tests/jvm/pom.xml"
SPARK_POM = "spark_jobs/common/pom.xml"
RELEASES_POM = "tests/support/jvm/releases/pom.xml"

HEAD = """\
# Clients

Which clients the suite runs against Odradek, in which versions, and in which test files. This page is the output of
`python -m tests.documentation.clients_page`.

Most of the conformance tests also run against Apache Kafka 3.9 itself (`make test-oracle`). Clients in other languages
than Python and Java are not in the suite, except librdkafka, which is C and is used through confluent-kafka. Every
client agrees with the broker on the versions of requests through ApiVersions: Odradek names those of Apache Kafka 3.9,
and the tests hold them against Apache Kafka's definitions.
"""


def page() -> str:
    """The page."""
    return "\n".join((HEAD, *_versions(), "", *_apache_tests(), "", *_files(), ""))


def _versions() -> Iterator[str]:
    pinned = _python_pins()
    kafka = _pom_version(KAFKA_POM, "kafka-tools")
    newer = max(re.findall(r"<version>([\d.]+)</version>", (REPOSITORY / RELEASES_POM).read_text("utf-8")))
    streams = _pom_version(APACHE_TESTS_POM, "kafka-streams")
    clients = _pom_version(SPARK_POM, "kafka-clients")
    connector = _pom_version(SPARK_POM, "spark-sql-kafka-0-10_2.13")
    yield "## Versions\n"
    yield "| client | version | pinned in |"
    yield "| --- | --- | --- |"
    for client, version, where in (
        ("confluent-kafka (Python) with librdkafka", _confluent(pinned), "`pyproject.toml`"),
        ("aiokafka (Python, asyncio)", pinned["aiokafka"], "`pyproject.toml`"),
        ("kafka-python", pinned["kafka-python"], "`pyproject.toml`"),
        ("Apache Kafka's Java clients: producer, consumer, admin, and the command-line tools", kafka, f"`{KAFKA_POM}`"),
        ("a newer Java client: over SSL and SASL_SSL, also with GSSAPI", newer, f"`{RELEASES_POM}`"),
        ("Apache Kafka Streams, by its own integration tests", streams, f"`{APACHE_TESTS_POM}`"),
        (
            "Apache Spark with its Kafka connector",
            f"pyspark {pinned['pyspark']}, connector {connector}, kafka-clients {clients}",
            f"`pyproject.toml`, `{SPARK_POM}`",
        ),
        ("Apache Kafka brokers, as other members of a cluster", kafka, f"`{KAFKA_POM}`"),
        ("kio, a protocol library: its bytes are compared with ours", pinned["kio"], "`pyproject.toml`"),
    ):
        yield f"| {client} | {version} | {where} |"


def _confluent(pinned: dict[str, str]) -> str:
    return f"{pinned['confluent-kafka']}, librdkafka {confluent_kafka.libversion()[0]}"


def _python_pins() -> dict[str, str]:
    """Of each optional dependency with an exact version, that version."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    requirements = (each for group in project["optional-dependencies"].values() for each in group)
    pinned = (each.partition(";")[0].partition("==") for each in requirements)  # without the condition behind `;`
    return {name: version for name, equals, version in pinned if equals}


def _pom_version(path: str, artifact: str) -> str:
    text = (REPOSITORY / path).read_text("utf-8")
    found = re.search(rf"<artifactId>{re.escape(artifact)}</artifactId>\s*<version>([^<]+)<", text)
    assert found, f"{path} has no {artifact}"
    variable = re.fullmatch(r"\$\{(.+)\}", found[1])
    return re.findall(rf"<{variable[1]}>([^<]+)<", text)[0] if variable else found[1]


def _apache_tests() -> Iterator[str]:
    listing = read_listing()
    ran = [*listing.classes.values(), *listing.with_kdc.values()]
    classes = Counter(each.suite for each in ran if not each.only)
    tests = Counter(dict.fromkeys(classes, 0))
    for each in ran:
        tests[each.suite] += each.tests
    yield "## Apache Kafka's own integration tests\n"
    yield "They run unmodified, with Odradek in place of the broker (`make apache-tests`; those that need a KDC:"
    yield "`make test-kerberos`), and use the Java clients."
    yield "What only a JVM reads is translated: login files become `sasl.jaas.config`, key stores are made as PKCS12"
    yield "with certificates signed with SHA-256, and classes that the tests give to their broker have equal ones in"
    yield "Python.\n"
    yield "| suite | test classes that run | tests |"
    yield "| --- | --- | --- |"
    for suite in sorted(classes):
        yield f"| {suite} | {classes[suite]} | {tests[suite]:,} |"
    yield f"| all | {classes.total()} | {listing.run:,} |"


def _files() -> Iterator[str]:
    yield "## Test files and their clients\n"
    yield "Files that import no client library are not listed: most of them send bytes and compare the answers.\n"
    yield f"| test file | {' | '.join(COLUMNS)} |"
    yield f"| --- |{' --- |' * len(COLUMNS)}"
    for suite in SUITES:
        for path in sorted((REPOSITORY / suite).rglob("test_*.py")):
            if clients := clients_of(path):
                marks = " | ".join("yes" if column in clients else "" for column in COLUMNS)
                yield f"| `{path.relative_to(REPOSITORY)}` | {marks} |"


@cache
def clients_of(path: Path) -> frozenset[str]:
    """The clients that a module uses, by itself or through the test support."""
    tree = ast.parse(path.read_text("utf-8"))
    clients = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                clients |= _named(alias.name, ())
        elif isinstance(node, ast.ImportFrom) and node.module:
            clients |= _named(node.module, tuple(alias.name for alias in node.names))
        elif isinstance(node, ast.arg) and node.arg == "tools":  # the fixture that runs Apache Kafka's tools
            clients.add(JAVA)
    return frozenset(clients)


def _named(module: str, names: tuple[str, ...]) -> frozenset[str]:
    """The clients that come with an import of `names` from `module`."""
    top, *_, last = module.split(".") if "." in module else (module, module)
    if top in LIBRARIES:
        return frozenset({LIBRARIES[top]})
    if not module.startswith("tests.support."):
        return frozenset()
    if last in JAVA_MODULES:
        return frozenset({JAVA})
    if last in SPARK_MODULES:
        return frozenset({SPARK})
    if last in WRAPPERS:
        found = (clients for name in names for prefix, clients in WRAPPED.items() if name.startswith(prefix))
        return frozenset().union(*found)
    if "java_command" in names and last == "jvm":
        return frozenset({JAVA})
    file = (REPOSITORY / module.replace(".", "/")).with_suffix(".py")
    if not file.is_file() or last in BROKER_MODULES:
        return frozenset()
    return clients_of(file)


if __name__ == "__main__":
    sys.stdout.write(page())
