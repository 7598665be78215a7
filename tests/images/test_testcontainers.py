"""The Kafka modules of testcontainers start the image, publish its port, and its clients write and read.

Ryuk, the container that removes what a killed test left, is off: its image comes from a registry.
"""

from __future__ import annotations

import os
from typing import Final

import pytest

from tests.support.images.docker import run
from tests.support.loads.clients import Confluent, Message
from tests.support.processes.apache.jvm import QUICK_START, REPOSITORY, java_executable, libs_dir

pytestmark = pytest.mark.images

PROGRAM: Final = REPOSITORY / "tests" / "support" / "images" / "jvm" / "StartedByTestcontainers.java"
ENVIRONMENT: Final = {"TESTCONTAINERS_RYUK_DISABLED": "true", "TESTCONTAINERS_HOST_OVERRIDE": "localhost"}
"""The host: a test machine may itself look like a container. Testcontainers for Java then asks for another image."""

START_TIMEOUT_S: Final = 240


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize(
    ("module", "compatible", "methods"),
    [
        ("kafka.KafkaContainer", "apache/kafka", ()),
        ("kafka.ConfluentKafkaContainer", "confluentinc/cp-kafka", ()),
        ("containers.KafkaContainer", "confluentinc/cp-kafka", ()),
        ("containers.KafkaContainer", "confluentinc/cp-kafka", ("withKraft",)),
    ],
    ids=["apache", "confluent", "zookeeper", "kraft"],
)
def test_java(testcontainers_image: str, version: str, module: str, compatible: str, methods: tuple[str, ...]) -> None:
    libs = REPOSITORY / ".cache" / "images" / f"testcontainers-{version}"
    assert (libs / ".complete").is_file(), f"no jars in {libs}: make test-images fetches them"
    arguments = [f"org.testcontainers.{module}", testcontainers_image, compatible, *methods]
    path = f"{libs}/*:{libs_dir()}/*"
    printed = run(
        [java_executable(), *QUICK_START, "-cp", path, str(PROGRAM), *arguments],
        environment=ENVIRONMENT,
        timeout_s=START_TIMEOUT_S,
    )
    assert "read: hello from Java" in printed.splitlines()


@pytest.mark.parametrize("kraft", [False, True], ids=["zookeeper", "kraft"])
def test_python(testcontainers_image: str, kraft: bool) -> None:
    os.environ.update(ENVIRONMENT)  # testcontainers reads it when it is imported
    from testcontainers.community.kafka import KafkaContainer

    container = KafkaContainer(testcontainers_image)
    if kraft:
        container = container.with_kraft()
    with container as kafka:
        address = kafka.get_bootstrap_server()
        assert Confluent().produce(address, "t", [Message(key=b"k", value=b"v")]) == [0]
        assert [one.value for one in Confluent().consume(address, "t", 1)] == [b"v"]
