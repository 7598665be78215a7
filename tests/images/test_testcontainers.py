"""The Kafka modules of testcontainers start the image, publish its port, and its clients write and read.

Ryuk, the container that removes what a killed test left, is off: its image comes from a registry.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.conformance.testing.test_testing_page import FILES, write_files
from tests.support.images.docker import docker, run
from tests.support.loads.clients import Confluent, Message
from tests.support.processes.apache.jvm import QUICK_START, REPOSITORY, java_executable, libs_dir
from tests.unit.testing.test_pytest_plugin import run_pytest

pytestmark = pytest.mark.images

PROGRAM: Final = REPOSITORY / "tests" / "support" / "images" / "jvm" / "StartedByTestcontainers.java"
ENVIRONMENT: Final = {"TESTCONTAINERS_RYUK_DISABLED": "true", "TESTCONTAINERS_HOST_OVERRIDE": "localhost"}
"""The host: a test machine may itself look like a container. Testcontainers for Java then asks for another image."""

START_TIMEOUT_S: Final = 240

IMAGE_OF_THE_MODULE: Final = "confluentinc/cp-kafka:7.6.0"
"""What `KafkaContainer()` of testcontainers-python starts."""


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


def test_the_page_beside_the_plugin(testcontainers_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test with testcontainers in docs/testing.md, as it is there: the module starts its own image by name."""
    docker("tag", testcontainers_image, IMAGE_OF_THE_MODULE)
    write_files(tmp_path, *(FILES.keys() - {"shop.py", "test_with_testcontainers.py"}))
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    try:
        done = run_pytest(tmp_path, "-q", "-W", "default", timeout_s=START_TIMEOUT_S)  # the module has a newer name
    finally:
        docker("image", "rm", IMAGE_OF_THE_MODULE)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
