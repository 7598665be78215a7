"""Hosts on one machine: network namespaces behind a bridge, and packets that get lost between them.

A cut changes the neighbour table of the sender: its packets go to a hardware address that no host has. So a cut has a
direction, no host gets an error, and connections live on until one side's time-out.

Needs `ip` of iproute2 and the right to make namespaces; without them a test fails and is not skipped.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from typing import Self

NOBODY = "02:00:00:00:00:ff"
SUBNET = "10.213"
SUBNETS = 250


class Network:
    """Hosts by name; from outside, where the test and its clients are, all of them are reached."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(names)
        self._tag = ""
        self._subnet = ""

    def __enter__(self) -> Self:
        number = next(filter(self._claim, range(1, SUBNETS + 1)))
        self._subnet = f"{SUBNET}.{number}"
        self._ip(f"addr add {self._subnet}.254/24 dev {self._tag}")
        self._ip(f"link set {self._tag} up")
        for number, name in enumerate(self._names):
            namespace = self._namespace(name)
            self._ip(f"netns add {namespace}")
            self._ip(f"link add {self._tag}v{number} type veth peer name eth0 netns {namespace}")
            self._ip(f"link set {self._tag}v{number} master {self._tag} up")
            self._ip(f"-n {namespace} addr add {self.address(name)}/24 dev eth0")
            self._ip(f"-n {namespace} link set eth0 up")
            self._ip(f"-n {namespace} link set lo up")
        return self

    def __exit__(self, *_: object) -> None:
        for number, name in enumerate(self._names):
            # The kernel takes a namespace's interfaces away later, and their names are used again.
            self._ip(f"link del {self._tag}v{number}", must_succeed=False)
            self._ip(f"netns del {self._namespace(name)}", must_succeed=False)
        self._ip(f"link del {self._tag}", must_succeed=False)

    def address(self, name: str) -> str:
        return f"{self._subnet}.{self._names.index(name) + 1}"

    def prefix(self, name: str) -> list[str]:
        """The command prefix that runs a command on that host."""
        return ["ip", "netns", "exec", self._namespace(name)]

    def cut(self, sender: str, receiver: str) -> None:
        """Packets from `sender` to `receiver` get lost."""
        neighbour = f"{self.address(receiver)} lladdr {NOBODY} dev eth0 nud permanent"
        self._ip(f"-n {self._namespace(sender)} neigh replace {neighbour}")

    def heal(self) -> None:
        for name in self._names:
            self._ip(f"-n {self._namespace(name)} neigh flush dev eth0 nud permanent")

    def _claim(self, number: int) -> bool:
        """Make the bridge of that subnet; False when another process has made it."""
        self._tag = f"odk{number}"
        added = subprocess.run(["ip", "link", "add", self._tag, "type", "bridge"], capture_output=True, text=True)
        assert added.returncode == 0 or "File exists" in added.stderr, f"ip link add {self._tag}: {added.stderr}"
        return added.returncode == 0

    def _namespace(self, name: str) -> str:
        return f"{self._tag}-{name}"

    @staticmethod
    def _ip(arguments: str, *, must_succeed: bool = True) -> None:
        done = subprocess.run(["ip", *arguments.split()], capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 0 or not must_succeed, f"ip {arguments}: {done.stderr}"
