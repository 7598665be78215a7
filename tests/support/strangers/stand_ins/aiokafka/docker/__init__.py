"""Takes the place of Docker's client for aiokafka's tests: its one container is the broker under test.

The tests choose the ports. The settings are those which the image of aiokafka's own tests gives to Kafka
(`docker/scripts/start-kafka.sh` of its sources).
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from types import SimpleNamespace
from typing import Any

from . import models

__all__ = ["from_env", "models"]

STORE_PASSWORD = "abcdefgh"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="test" password="test";'
JAAS = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="admin" password="admin" user_admin="admin" user_test="test" user_test2="test2";',
    "SCRAM-SHA-256": SCRAM,
    "SCRAM-SHA-512": SCRAM,
}
TOOLS = {"kafka-acls.sh": "kafka.admin.AclCommand", "kafka-configs.sh": "kafka.admin.ConfigCommand"}


def from_env() -> SimpleNamespace:
    """A client with what the tests use of it."""
    return SimpleNamespace(containers=SimpleNamespace(run=run), close=lambda: None)


def run(environment: dict[str, Any] | None = None, volumes: Any = None, working_dir: str = "", **_: Any) -> Any:
    """The broker, or a place where a command runs, which makes the certificates."""
    if environment is None:
        (directory,) = (path for path, volume in volumes.items() if volume["bind"] == working_dir)
        return Workplace(str(directory))
    (stores,) = (path for path, volume in volumes.items() if volume["bind"] == "/ssl_cert")
    return Broker(environment, str(stores))


class Workplace:
    def __init__(self, directory: str) -> None:
        self._directory = directory

    def exec_run(self, command: list[str], user: str = "") -> tuple[int, bytes]:
        script = os.path.abspath(command[-1].lstrip("/"))
        return outcome(["bash", script], cwd=self._directory)

    def stop(self) -> None:
        pass


class Broker:
    def __init__(self, environment: dict[str, Any], stores: str) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="strangers-")
        command = [os.environ["STRANGERS_PYTHON"], "-m", "tests.support.strangers.served"]
        command += [os.environ["STRANGERS_TARGET"], self._directory.name, json.dumps(settings(environment, stores))]
        self._process = subprocess.Popen(
            command,
            cwd=os.environ["STRANGERS_REPOSITORY"],
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        said = self._process.stdout.readline().split()
        if said[:1] != ["serving"]:
            raise RuntimeError("the broker has not started: see above")
        self._zookeeper = said[1]

    def exec_run(self, command: list[str] | str) -> tuple[int, bytes]:
        """One of Kafka's tools, with the ZooKeeper of this broker in the place of the container's."""
        if not isinstance(command, str):
            return 1, b"there is no supervisor"
        program, *arguments = shlex.split(command.replace("localhost:2181", self._zookeeper))
        java = [*os.environ["STRANGERS_JAVA"].split("\t"), TOOLS[os.path.basename(program)]]
        return outcome([*java, *arguments])

    def stop(self) -> None:
        self._process.communicate()
        self._directory.cleanup()


def settings(environment: dict[str, Any], stores: str) -> dict[str, str]:
    host = environment["ADVERTISED_HOST"]
    ports = {
        "PLAINTEXT": environment["ADVERTISED_PORT"],
        "SSL": environment["ADVERTISED_SSL_PORT"],
        "SASL_PLAINTEXT": environment["ADVERTISED_SASL_PLAINTEXT_PORT"],
        "SASL_SSL": environment["ADVERTISED_SASL_SSL_PORT"],
    }
    listeners = ",".join(f"{name}://{host}:{port}" for name, port in ports.items())
    jaas = {
        f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config": JAAS[mechanism]
        for listener in ("sasl_plaintext", "sasl_ssl")
        for mechanism in MECHANISMS
    }
    return {
        "num.partitions": str(environment["NUM_PARTITIONS"]),
        "listeners": listeners,
        "advertised.listeners": listeners,
        "auto.create.topics.enable": "true",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:admin",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        **jaas,
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": f"{stores}/br_server.keystore.jks",
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": STORE_PASSWORD,
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": f"{stores}/br_server.truststore.jks",
        "ssl.truststore.password": STORE_PASSWORD,
        "ssl.client.auth": "required",
        "ssl.endpoint.identification.algorithm": "",
    }


def outcome(command: list[str], cwd: str | None = None) -> tuple[int, bytes]:
    ended = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return ended.returncode, ended.stdout
