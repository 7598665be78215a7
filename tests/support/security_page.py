"""A reader of docs/security.md, who runs its commands on a free port."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.ports import free_port

PAGE = (REPOSITORY / "docs" / "security.md").read_text()
SERVE = "odradek serve server.properties\n"
PAGE_PORT = "9093"
CLIENT = -2
"""The block of the client; the one after it copies files for a container."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


class Reader:
    """Somebody with a shell in an empty directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = str(free_port())
        self.environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def shell(self, commands: str) -> str:
        """Run a block of the page; it must succeed. Returns what it printed."""
        done = self.run(["sh", "-ec", commands.replace(PAGE_PORT, self.port)])
        assert done.returncode == 0, done.stderr
        return done.stdout

    def python(self, program: str) -> str:
        done = self.run([sys.executable, "-W", "ignore", "-c", program.replace(PAGE_PORT, self.port)])
        assert done.returncode == 0, done.stderr
        return done.stdout
