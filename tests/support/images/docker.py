"""A Docker engine, asked by the command `docker`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

COMMAND_TIMEOUT_S: Final = 120


class DockerMissingError(AssertionError):
    """There is no engine, or no docker compose; says what to do about it."""


def docker(*arguments: str, timeout_s: float = COMMAND_TIMEOUT_S) -> str:
    """What the command printed on both of its outputs. It must succeed."""
    return run(["docker", *arguments], timeout_s=timeout_s)


def run(
    command: Sequence[str],
    *,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = COMMAND_TIMEOUT_S,
) -> str:
    """What the command printed on both of its outputs. It must succeed."""
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout[-8000:]}"
    return done.stdout


def succeeds(*command: str) -> bool:
    """Whether the command is there and has exit status 0."""
    try:
        return subprocess.run(command, capture_output=True, timeout=COMMAND_TIMEOUT_S, check=False).returncode == 0
    except FileNotFoundError:
        return False


def require_engine() -> None:
    """Raises: DockerMissingError."""
    if not succeeds("docker", "version"):
        raise DockerMissingError(
            "no Docker engine answers `docker version`: start one, or name it with DOCKER_HOST "
            "(on Debian, apt-get install docker.io)"
        )


@cache
def compose_command() -> tuple[str, ...]:
    """Docker compose as a plugin, or the older command. Raises: DockerMissingError."""
    for command in (("docker", "compose"), ("docker-compose",)):
        if succeeds(*command, "version"):
            return command
    raise DockerMissingError(
        "there is neither `docker compose` nor `docker-compose` (on Debian, apt-get install docker-compose)"
    )
