"""A real ZooKeeper that authenticates clients: TLS with certificates on both sides, SASL, and nodes with ACLs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl

from odradek.broker.security.sasl.zookeeper_login import DIGEST_MODULE
from odradek.controller.tree.metadata_tree import ConnectionLoss, Create, Exists, GetData, NoNode, SetData, TreeError
from odradek.controller.tree.zookeeper_settings import ZooKeeperSettings, ZooKeeperTls
from odradek.controller.tree.zookeeper_tls import BadTls
from odradek.controller.tree.zookeeper_tree import ZooKeeperTree
from odradek.controller.znodes import znodes
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.controller.znodes.registration import create_base_nodes
from tests.support.async_test import async_test
from tests.support.broker import FAST_SETTINGS
from tests.support.processes.apache.apache import ZooKeeper
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port

PASSWORD = "open-sesame"
JAAS = f"""\
Server {{ org.apache.zookeeper.server.auth.DigestLoginModule required user_kafka="{PASSWORD}"; }};
"""
SASL = {"mechanism": "DIGEST-MD5", "username": "kafka", "password": PASSWORD}


class Certificates:
    """An authority, and PEM stores with a key and a certificate of it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.authority = self._issue("authority", "-addext", "basicConstraints=critical,CA:TRUE")
        self.server = self._issue("server", "-addext", "subjectAltName=IP:127.0.0.1", *self._signed())
        self.client = self._issue("client", *self._signed())
        self.stranger = self._issue("stranger")
        self.locked = self._locked("locked")

    def _signed(self) -> tuple[str, ...]:
        return "-CA", str(self.authority), "-CAkey", str(self.authority)

    def _issue(self, name: str, *options: str) -> Path:
        key, certificate, store = (self._directory / f"{name}.{ending}" for ending in ("key", "crt", "pem"))
        identity = ("-subj", f"/CN={name}", "-days", "2")
        make_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-keyout", str(key))
        self._openssl("req", "-x509", *make_key, *identity, "-out", str(certificate), *options)
        store.write_text(key.read_text() + certificate.read_text())
        return store

    def _locked(self, name: str) -> Path:
        store = self._directory / f"{name}.pem"
        key = self._openssl("pkcs8", "-topk8", "-in", str(self.client), "-passout", f"pass:{PASSWORD}")
        store.write_text(key + (self._directory / "client.crt").read_text())
        return store

    def _openssl(self, *arguments: str) -> str:
        return subprocess.run(("openssl", *arguments), check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


class Guarded(ZooKeeper):
    """Open on one port, and with TLS on another."""

    def __init__(self, directory: Path, certificates: Certificates) -> None:
        self.secure_port = free_port()
        directory.mkdir(exist_ok=True)
        jaas = directory / "jaas.conf"
        jaas.write_text(JAAS)
        settings = {
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "secureClientPort": str(self.secure_port),
            "secureClientPortAddress": "127.0.0.1",
            "ssl.keyStore.location": str(certificates.server),
            "ssl.trustStore.location": str(certificates.authority),
            "ssl.clientAuth": "need",
            "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        }
        super().__init__(directory, settings, (f"-Djava.security.auth.login.config={jaas}",))


@pytest.fixture(scope="module")
def guarded(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    server = Guarded(tmp_path_factory.mktemp("guarded"), certificates)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def tls(certificates: Certificates) -> ZooKeeperTls:
    return ZooKeeperTls(key_and_certificates=str(certificates.client), trusted_certificates=str(certificates.authority))


def over_tls(server: Guarded, tls: ZooKeeperTls, chroot: str, *, sets_acl: bool = False) -> ZooKeeperSettings:
    hosts = f"127.0.0.1:{server.secure_port}"
    return ZooKeeperSettings(hosts=hosts, chroot=chroot, tls=tls, sets_acl=sets_acl)


async def check_owned(tree: ZooKeeperTree, address: str, chroot: str) -> None:
    """What the tree makes is its own: others read it, unless it holds secrets, and change nothing."""
    await create_base_nodes(MetadataClient(tree))
    await tree.run(Create(znodes.CONTROLLER_EPOCH, b"1"))
    stranger = await ZooKeeperTree.open(ZooKeeperSettings(hosts=address, chroot=chroot))
    try:
        assert (await stranger.run(GetData(znodes.CONTROLLER_EPOCH))).data == b"1"
        for refused in (
            SetData(znodes.CONTROLLER_EPOCH, b"2"),
            Create(f"{znodes.TOPICS}/t"),
            GetData("/config/users"),
            GetData("/config/brokers"),
        ):
            with pytest.raises(TreeError, match="NoAuth"):
                await stranger.run(refused)
        await stranger.run(Create("/consumers/group"))
    finally:
        await stranger.close()
    assert (await tree.run(SetData(znodes.CONTROLLER_EPOCH, b"2"))).version == 1


@async_test
async def test_a_certificate_is_an_owner(guarded: Guarded, tls: ZooKeeperTls) -> None:
    tree = await ZooKeeperTree.open(over_tls(guarded, tls, "/by-certificate", sets_acl=True))
    try:
        await check_owned(tree, guarded.address, "/by-certificate")
    finally:
        await tree.close()


@async_test
async def test_a_sasl_user_is_an_owner(guarded: Guarded) -> None:
    settings = ZooKeeperSettings(hosts=guarded.address, chroot="/by-sasl", sets_acl=True, sasl=SASL)
    tree = await ZooKeeperTree.open(settings)
    try:
        await check_owned(tree, guarded.address, "/by-sasl")
    finally:
        await tree.close()


@async_test
async def test_a_wrong_password_is_told(guarded: Guarded) -> None:
    settings = ZooKeeperSettings(hosts=guarded.address, sasl={**SASL, "password": "wrong"})
    with pytest.raises(ConnectionLoss, match="authentication failed"):
        await ZooKeeperTree.open(settings)


@async_test
async def test_a_chroot_below_a_node_that_others_own_is_used(guarded: Guarded) -> None:
    with closing(KazooClient(guarded.address)) as owner:
        owner.start()
        owner.create("/owned", acl=[make_acl("world", "anyone", read=True)])
        owner.create("/shared/kafka", makepath=True)
        owner.set_acls("/shared", [make_acl("world", "anyone", read=True)])
        owner.stop()
    tree = await ZooKeeperTree.open(ZooKeeperSettings(hosts=guarded.address, chroot="/shared/kafka"))
    await tree.run(Create("/brokers"))
    await tree.close()
    with pytest.raises(TreeError, match="NoAuth"):
        await ZooKeeperTree.open(ZooKeeperSettings(hosts=guarded.address, chroot="/owned/kafka"))


@async_test
async def test_versions_and_ciphers_are_those_of_java(guarded: Guarded, tls: ZooKeeperTls) -> None:
    for protocols, suites in (
        (("TLSv1.2",), ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",)),
        (("TLSv1.2", "TLSv1.3"), ()),
    ):
        chosen = replace(tls, protocols=protocols, cipher_suites=suites)
        tree = await ZooKeeperTree.open(over_tls(guarded, chosen, ""))
        assert await tree.run(Exists("/")) is not None
        await tree.close()


@async_test
async def test_a_locked_key_is_opened_by_its_password(
    guarded: Guarded, tls: ZooKeeperTls, certificates: Certificates
) -> None:
    locked = replace(tls, key_and_certificates=str(certificates.locked), key_password=PASSWORD)
    tree = await ZooKeeperTree.open(over_tls(guarded, locked, ""))
    await tree.close()
    with pytest.raises(BadTls, match=r"cannot use .*locked\.pem"):
        await ZooKeeperTree.open(over_tls(guarded, replace(locked, key_password=None), ""))


@pytest.mark.parametrize(
    "fault", ["untrusted server", "other name", "no certificate", "plaintext", "no revocation list"]
)
@async_test
async def test_who_cannot_be_trusted_is_not_spoken_to(
    guarded: Guarded, tls: ZooKeeperTls, certificates: Certificates, fault: str
) -> None:
    settings = replace(over_tls(guarded, tls, ""), connection_timeout_ms=500)
    match fault:
        case "untrusted server":
            settings = replace(settings, tls=replace(tls, trusted_certificates=str(certificates.stranger)))
        case "other name":
            settings = replace(settings, hosts=f"localhost:{guarded.secure_port}")
        case "no certificate":
            settings = replace(settings, tls=replace(tls, key_and_certificates=None))
        case "plaintext":
            settings = replace(settings, tls=None)
        case "no revocation list":
            settings = replace(settings, tls=replace(tls, checks_revocation=True))
    with pytest.raises(ConnectionLoss, match="no ZooKeeper server at"):
        await ZooKeeperTree.open(settings)


@async_test
async def test_any_name_will_do_without_identification(guarded: Guarded, tls: ZooKeeperTls) -> None:
    settings = over_tls(guarded, replace(tls, verifies_host_name=False), "")
    tree = await ZooKeeperTree.open(replace(settings, hosts=f"localhost:{guarded.secure_port}"))
    with pytest.raises(NoNode):
        await tree.run(GetData("/nothing"))
    await tree.close()


def keys_of(way: str, guarded: Guarded, certificates: Certificates) -> tuple[str, dict[str, str]]:
    """The address, and the keys by which a broker or a command authenticates."""
    if way == "certificate":
        return f"127.0.0.1:{guarded.secure_port}", {
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.keystore.location": str(certificates.locked),
            "zookeeper.ssl.keystore.password": PASSWORD,
            "zookeeper.ssl.truststore.location": str(certificates.authority),
            "zookeeper.ssl.truststore.type": "PEM",
        }
    by_user = {"odradek.zookeeper.sasl.username": "kafka", "odradek.zookeeper.sasl.password": PASSWORD}
    entry = f'{DIGEST_MODULE} required username="kafka" password="{PASSWORD}";'
    return guarded.address, by_user if way == "sasl" else {"odradek.zookeeper.sasl.jaas.config": entry}


WAYS = pytest.mark.parametrize("way", ["certificate", "sasl", "entry"])


@WAYS
def test_a_broker_by_its_keys(guarded: Guarded, certificates: Certificates, tmp_path: Path, way: str) -> None:
    address, keys = keys_of(way, guarded, certificates)
    if way == "certificate":
        keys["zookeeper.clientCnxnSocket"] = "org.apache.zookeeper.ClientCnxnSocketNetty"
    keys = {**FAST_SETTINGS, "zookeeper.connect": f"{address}/broker-by-{way}", "zookeeper.set.acl": "true", **keys}
    broker = OdradekBroker(tmp_path, keys, free_port())
    broker.start()
    try:
        assert PASSWORD not in broker.log_text()
        broker.stop()
    finally:
        broker.close()


def command(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "odradek", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert PASSWORD not in done.stdout + done.stderr
    return done.returncode, done.stdout + done.stderr


@WAYS
def test_commands_by_the_same_keys(guarded: Guarded, certificates: Certificates, tmp_path: Path, way: str) -> None:
    """What one makes before the first broker starts is its own, and another copies it, secrets included."""
    address, keys = keys_of(way, guarded, certificates)
    file = tmp_path / "zookeeper.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    by_keys, user = ("--zk-tls-config-file", str(file)), ("--user", "admin")
    configs = ("configs", "--zookeeper", f"{address}/commands-by-{way}")
    added = ("--add-config", "SCRAM-SHA-512=[iterations=4096,password=of-admin]")
    status, said = command(*configs, *by_keys, "--alter", *user, *added)
    assert status == 0, said
    status, said = command(*configs, *by_keys, "--describe", *user)
    assert (status, "iterations=4096" in said) == (0, True), said
    status, said = command("configs", "--zookeeper", f"{guarded.address}/commands-by-{way}", "--describe", *user)
    assert (status, "NoAuth" in said) == (1, True), said

    broker = OdradekBroker(tmp_path / "broker", FAST_SETTINGS, free_port())  # one node: its metadata is copied
    broker.start()
    broker.stop()
    there, back = f"zookeeper://{address}/copied-by-{way}", tmp_path / "back"
    back.mkdir()
    status, said = command("metadata", "copy", "--from", str(broker.log_dir), "--to", there, *by_keys)
    assert status == 0, said
    status, said = command("metadata", "copy", "--from", there.replace(address, guarded.address), "--to", str(back))
    assert (status, "NoAuth" in said) == (1, True), said
    status, said = command("metadata", "copy", "--from", there, "--to", str(back), *by_keys)
    assert status == 0, said
