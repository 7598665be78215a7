"""The suites: where their sources are, which of their tests need a broker, and the settings of the broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

WITH_ACLS: Final = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


KERBEROS: Final = "needs Kerberos"
OWN_SERVERS: Final = "starts servers from Apache's distribution; SASL and TLS are in our own tests of this client"
AIOKAFKA_FILES: Final = (
    *("admin", "client", "conn", "consumer", "coordinator", "pep492", "producer", "sasl", "sender"),
    *("transactional_consumer", "transactional_producer"),
)
"""Those with tests that use a broker; the other files test classes of aiokafka alone."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Tests of another project, which stay as they are."""

    name: str
    version: str
    folders: tuple[str, ...]
    """What is copied from its sources; its library is the installed one."""
    arguments: tuple[str, ...]
    """Of pytest, with the tests that need a broker."""
    stand_ins: str = ""
    """The folder of `stand_ins` with modules that take the place of modules that start servers."""
    requirements: str = "clients.txt"
    """The file beside this one with the packages of its environment."""
    connector: bool = False
    """It needs Spark's Kafka connector."""
    is_package: bool = False
    """Its source package of the package index contains the tests; else a checkout is needed."""
    settings: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    starts_broker: bool = False
    """A stand-in starts the broker, because the suite chooses the ports."""
    excused: Mapping[str, str] = field(default_factory=dict)
    """Tests that cannot pass with Apache Kafka 3.9 here, by the end of their names, with the reason."""

    @property
    def source(self) -> str:
        return f"{self.name}-{self.version}"


SUITES: Final = {
    suite.name: suite
    for suite in (
        Suite(
            name="kafka-python",
            version="3.0.12",
            folders=("test",),
            arguments=("--timeout=120", "test/integration"),
            stand_ins="kafka_python",
            is_package=True,
            settings={**WITH_ACLS, "num.partitions": "4", "log.cleaner.enable": "false"},
            excused={"test_ssl_handshake": OWN_SERVERS, "test_legacy_kafka_client_ssl": OWN_SERVERS},
            environment={"KAFKA_VERSION": "3.9.1", "KAFKA_URI": "kafka://{bootstrap}", "KAFKA_ROOT": "{place}"},
        ),
        Suite(
            name="faststream",
            version="0.7.4",
            folders=("tests", "docs/docs_src", "pyproject.toml"),
            arguments=(
                *("-m", "connected and (kafka or confluent)"),
                *("--ignore-glob=*/test_misconfigure.py",),  # needs the clients of other brokers, and no Kafka
                *("tests/brokers/kafka", "tests/brokers/confluent"),
            ),
            port=9092,
        ),
        Suite(
            name="aiokafka",
            version="0.14.0",
            folders=("tests", "docker", "gen-ssl-certs.sh", "pyproject.toml"),
            arguments=(
                *("--docker-image=odradek/kafka:2.13_3.9.1", "--no-pull", "--timeout=180"),
                *(f"tests/test_{name}.py" for name in AIOKAFKA_FILES),
            ),
            stand_ins="aiokafka",
            starts_broker=True,
            excused={
                "test_sasl_plaintext_gssapi": KERBEROS,
                "test_admin_client_sasl_plaintext_gssapi": KERBEROS,
            },
        ),
        Suite(
            name="pyspark",
            version="4.2.0",
            folders=("python/pyspark/sql/tests/streaming",),
            arguments=(
                *("-p", "pyspark_tests", "--import-mode=importlib", "--timeout=240"),
                "python/pyspark/sql/tests/streaming/test_streaming_kafka_rtm.py",
            ),
            stand_ins="pyspark",
            requirements="pyspark.txt",
            connector=True,
            environment={"STRANGERS_BOOTSTRAP": "{bootstrap}"},
        ),
    )
}
