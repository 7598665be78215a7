"""Settings of brokers with a listener AUTH of GSSAPI beside the PLAINTEXT one, and of their clients."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.support.kerberos.kdc import REALM

MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"
SERVICE: Final = "kafka"
HOST: Final = "localhost"
BROKER: Final = f"{SERVICE}/{HOST}"


def keytab_jaas(keytab: Path, principal: str) -> str:
    return (
        f'{MODULE} required useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}@{REALM}" '
        "refreshKrb5Config=true;"
    )


def listener_settings(port: int, sasl_port: int, jaas: str, *, between_brokers: bool = False) -> dict[str, str]:
    """Settings of both listeners; `between_brokers`: brokers use AUTH too. The host of AUTH is that of `BROKER`."""
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},AUTH://127.0.0.1:{sasl_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},AUTH://{HOST}:{sasl_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,AUTH:SASL_PLAINTEXT",
        "inter.broker.listener.name": "AUTH" if between_brokers else "PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        "sasl.kerberos.service.name": SERVICE,
        "listener.name.auth.sasl.enabled.mechanisms": "GSSAPI",
        "listener.name.auth.gssapi.sasl.jaas.config": jaas,
    }


def client_properties(path: Path, jaas: str, service: str = SERVICE) -> str:
    """The path of a file for `--command-config`."""
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\n"
        f"sasl.kerberos.service.name={service}\nsasl.jaas.config={jaas}\n"
    )
    return str(path)
