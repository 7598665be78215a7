"""`odradek configs --metadata`, on the tree of a node that does not run. ZooKeeper and Apache's tool:
tests/conformance/zookeeper/test_stored_configs.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.broker.config.password_encoder import PasswordEncoder
from odradek.broker.tools.admin.configs.configs import main
from odradek.controller.model.scram_credential import ScramCredential
from odradek.controller.model.scram_mechanism import ScramMechanism
from odradek.controller.tree.embedded_tree import METADATA_FILE, TreeDatabase
from odradek.controller.tree.metadata_tree import Create
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.storage.config.config_def import Password
from odradek.timer.clock import SystemClock

Run = Callable[..., tuple[int, str, str]]
LENGTH = "password.encoder.key.length"
PASSWORD = "listener.name.x.ssl.keystore.password"


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command on the tree in `tmp_path`: status, standard output, errors."""

    def called(*arguments: str) -> tuple[int, str, str]:
        status = main(["--metadata", str(tmp_path), *arguments])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return called


def stored(directory: Path, entity_path: str) -> dict[str, str]:
    async def read() -> dict[str, str]:
        database = await TreeDatabase.open(str(directory / METADATA_FILE), SystemClock())
        try:
            return await MetadataClient(await database.connect()).entity_config(entity_path)
        finally:
            await database.close()

    return asyncio.run(read())


def test_credentials_of_a_user(run: Run, tmp_path: Path) -> None:
    add = "SCRAM-SHA-256=[iterations=8192,password=secret],SCRAM-SHA-512=[password=other]"
    updated = (0, "Completed updating config for entity: user-principal 'al ice'.\n", "")
    assert run("--alter", "--user", "al ice", "--add-config", add) == updated
    found = {name: ScramCredential.of_text(text) for name, text in stored(tmp_path, "users/al%20ice").items()}
    mechanism, credential = ScramMechanism.SCRAM_SHA_256, found["SCRAM-SHA-256"]
    salted = mechanism.salted_password(b"secret", credential.salt, 8192)
    assert credential == mechanism.credential(credential.salt, salted, 8192)
    assert found["SCRAM-SHA-512"].iterations == 4096
    line = "Configs for user-principal 'al ice' are SCRAM-SHA-256=iterations=8192,SCRAM-SHA-512=iterations=4096\n"
    assert run("--describe", "--user", "al ice") == run("--describe", "--entity-type", "users") == (0, line, "")
    assert run("--alter", "--user", "al ice", "--delete-config", "SCRAM-SHA-256") == updated
    assert [*stored(tmp_path, "users/al%20ice")] == ["SCRAM-SHA-512"]
    refused = run("--alter", "--user", "al ice", "--delete-config", "SCRAM-SHA-256")
    assert refused == (1, "", "odradek: Invalid config(s): SCRAM-SHA-256\n")


def test_passwords_of_a_broker_are_encrypted_and_their_secret_is_not_stored(run: Run, tmp_path: Path) -> None:
    add = f"{PASSWORD}=open,password.encoder.secret=s,password.encoder.iterations=2048,log.cleaner.threads=2"
    assert run("--alter", "--broker", "3", "--add-config", add)[0] == 0
    found = stored(tmp_path, "brokers/3")
    assert found.keys() == {PASSWORD, "log.cleaner.threads"}
    assert ":2048," in found[PASSWORD]
    assert PasswordEncoder(secret=Password("s")).decode(found[PASSWORD]) == "open"
    line = f"Configs for brokers '3' are {PASSWORD}=[hidden],log.cleaner.threads=2\n"
    assert run("--describe", "--broker", "3") == (0, line, "")
    [row] = json.loads(run("--describe", "--broker", "3", "--json")[1])
    assert row == {
        "entity_type": "brokers",
        "entity_name": "3",
        "configs": {PASSWORD: "[hidden]", "log.cleaner.threads": "2"},
    }
    assert run("--alter", "--broker-defaults", "--add-config", "log.cleaner.threads=3")[1] == (
        "Completed updating config for entity: default brokers.\n"
    )
    assert stored(tmp_path, "brokers/<default>") == {"log.cleaner.threads": "3"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--broker", "0", "--add-config", f"{PASSWORD}=open"), "password.encoder.secret must be specified to update"),
        (("--broker-defaults", "--add-config", f"{PASSWORD}=x,password.encoder.secret=s"), "broker id must"),
        (("--broker", "0", "--add-config", "process.roles=x"), "Cannot update these configs dynamically"),
        (("--broker", "0", "--add-config", "log.cleaner.threads=many"), "Invalid value many for configuration"),
        (("--broker", "0", "--add-config", f"{PASSWORD}=open,password.encoder.secret=s,{LENGTH}=x"), LENGTH),
        (("--user", "a", "--add-config", "producer_byte_rate=1"), "only supported for SCRAM credential updates."),
        (("--user", "a", "--add-config", "SCRAM-SHA-256=open"), "Invalid credential property SCRAM-SHA-256"),
        (("--user", "a", "--add-config", "SCRAM-SHA-256=[iterations=1,password=open]"), "less than the minimum 4096"),
        (("--user-defaults", "--add-config", "SCRAM-SHA-256=[password=open]"), "not allowed with User SCRAM"),
        (("--topic", "t", "--add-config", "retention.ms=1"), "Invalid entity type topics"),
        (("--all", "--user", "a", "--add-config", "x=y"), "--bootstrap-server must be specified for --all"),
    ],
)  # fmt: skip
def test_refusals_name_no_secret(run: Run, arguments: tuple[str, ...], message: str) -> None:
    status, out, error = run("--alter", *arguments)
    assert (status, out) == (1, "")
    assert message in error
    assert "open" not in error


@pytest.mark.parametrize(("which", "count"), [("--broker=0", "broker 0 is"), ("--broker-defaults", "1 brokers are")])
def test_a_registered_broker_is_asked_itself(run: Run, tmp_path: Path, which: str, count: str) -> None:
    async def register() -> None:
        database = await TreeDatabase.open(str(tmp_path / METADATA_FILE), SystemClock())
        client = MetadataClient(await database.connect())
        await client.create_recursive("/brokers/ids")
        await client.tree.run(Create("/brokers/ids/0", b'{"version":1,"host":"h","port":9092}'))
        await database.close()

    asyncio.run(register())
    for action in (("--alter", "--add-config", "log.cleaner.threads=2"), ("--describe",)):
        status, _, error = run(*action, which)
        assert status == 1
        assert f" - {count} running. Broker configuration operations using ZooKeeper are only supported" in error


def test_there_has_to_be_metadata(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--describe", "--user", "a")[2] == f"odradek: {tmp_path / METADATA_FILE}: there is no metadata\n"
    with pytest.raises(SystemExit, match="2"):
        run("--describe", "--user", "a", "--bootstrap-server", "h:1")
    with pytest.raises(SystemExit, match="2"):
        run("--describe", "--user", "a", "--zk-tls-config-file", "x")
