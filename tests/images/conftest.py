"""Builds the images from the committed and tracked files. `make test-images` runs these tests."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.images.base_image import provide_base_image
from tests.support.images.docker import docker, require_engine
from tests.support.processes.apache.jvm import REPOSITORY

BROKER: Final = "odradek-tested"
TESTCONTAINERS: Final = "odradek-testcontainers-tested:7.6.0"
"""A module of testcontainers in KRaft mode wants a tag like a version of Confluent."""

BUILD_TIMEOUT_S: Final = 1200


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tracked files, and nothing else, as a checkout has them."""
    directory = tmp_path_factory.mktemp("checkout")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=True).stdout
    archive = ["tar", "--null", "--files-from=-", "-c"]
    packed = subprocess.run(archive, cwd=REPOSITORY, input=names, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x"], cwd=directory, input=packed, check=True)
    (directory / ".git").mkdir()
    (directory / ".git" / "config").write_text("[core]\n")
    return directory


@pytest.fixture(scope="session")
def broker_image(checkout: Path) -> Iterator[str]:
    require_engine()
    provide_base_image()
    _build(BROKER, checkout)
    yield BROKER
    docker("image", "rm", "--force", BROKER)


@pytest.fixture(scope="session")
def testcontainers_image(broker_image: str, checkout: Path) -> Iterator[str]:
    """Made after the other one, whose layers it shares."""
    _build(TESTCONTAINERS, checkout, "--target", "testcontainers")
    yield TESTCONTAINERS
    docker("image", "rm", "--force", TESTCONTAINERS)


def _build(name: str, checkout: Path, *options: str) -> None:
    docker("build", "--network", "host", "--tag", name, *options, str(checkout), timeout_s=BUILD_TIMEOUT_S)
