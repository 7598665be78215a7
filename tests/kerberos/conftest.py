"""A KDC, and a broker whose listener AUTH has GSSAPI only. `make test-kerberos` runs these tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.support.kerberos.kdc import Kdc
from tests.support.kerberos.settings import BROKER, HOST, client_properties, keytab_jaas, listener_settings
from tests.support.processes.apache.tools import Tools
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port

USERS: Final = ("alice", "bob", "Carol/admin")
FOREIGN: Final = "other/localhost"
RULES: Final = "RULE:[2:$1;$2](.*;admin)s/;.*//L,DEFAULT"


class KerberosBroker(NamedTuple):
    process: OdradekBroker
    sasl_port: int

    @property
    def address(self) -> str:
        return f"{HOST}:{self.sasl_port}"


@pytest.fixture(scope="session")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """With the principals of brokers and clients; processes that are started later know it."""
    one = Kdc(tmp_path_factory.mktemp("kerberos") / "kdc")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in one.environment.items():
            patch.setenv(name, value)
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={one.krb5_conf}")
        try:
            one.start()
            one.add(BROKER, FOREIGN, *USERS)
            yield one
        finally:
            one.stop()


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return Tools(tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="session")
def broker(kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KerberosBroker]:
    """Alice and `carol` have all rights, others none."""
    port, sasl_port = free_port(), free_port()
    jaas = keytab_jaas(kdc.keytab("broker", BROKER), BROKER)
    settings = listener_settings(port, sasl_port, jaas) | {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:alice;User:carol;User:ANONYMOUS",
        "listener.name.auth.sasl.kerberos.principal.to.local.rules": RULES,
        "listener.name.auth.gssapi.connections.max.reauth.ms": "3600000",
    }
    process = OdradekBroker(tmp_path_factory.mktemp("broker"), settings, port)
    process.start()
    try:
        yield KerberosBroker(process, sasl_port)
        process.stop_cleanly()
    finally:
        process.close()


@pytest.fixture
def properties_of(kdc: Kdc, tmp_path: Path) -> Callable[[str], str]:
    """Makes a file for `--command-config` of a user."""

    def make(principal: str) -> str:
        name = principal.replace("/", "-")
        jaas = keytab_jaas(kdc.keytab(f"{name}-{tmp_path.name}", principal), principal)
        return client_properties(tmp_path / f"{name}.properties", jaas)

    return make
