from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.broker.security.tls.settings import StoreSettings
from odradek.broker.security.tls.stores import load_key_store, load_trust_store
from odradek.storage.config.config_def import ConfigError, Password
from tests.support.certificates import PASSWORD, Authority, one_line

AUTHORITY = Authority()
IDENTITY = AUTHORITY.issue("broker")
SECRET = Password(PASSWORD)


def store(kind: str = "PEM", location: object = None, password: Password | None = None, **more: str) -> StoreSettings:
    path = None if location is None else str(location)
    certificates = Password(more["certificates"]) if "certificates" in more else None
    key = Password(more["key"]) if "key" in more else None
    key_password = Password(more["key_password"]) if "key_password" in more else None
    return StoreSettings(kind, path, password, certificates, key, key_password)


def test_a_pem_file(tmp_path: Path) -> None:
    path = IDENTITY.write_pem(tmp_path / "broker.pem")
    loaded = load_key_store(store(location=path))
    assert loaded is not None
    assert (loaded.chain, loaded.key) == (IDENTITY.chain_pem, IDENTITY.key_pem())
    assert loaded.file is not None
    assert not loaded.file.is_modified()
    os.utime(path, (1, 1))
    assert loaded.file.is_modified()
    path.unlink()
    assert not loaded.file.is_modified()


def test_pem_in_the_configuration() -> None:
    loaded = load_key_store(
        store(certificates=one_line(IDENTITY.chain_pem), key=one_line(IDENTITY.key_pem("k")), key_password="k")
    )
    assert loaded is not None
    assert loaded.chain == IDENTITY.chain_pem
    assert loaded.file is None
    trusted = load_trust_store(store(certificates=one_line(AUTHORITY.pem)))
    assert trusted is not None
    assert trusted.certificates == AUTHORITY.pem


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_pkcs12_files_of_both_types(tmp_path: Path, kind: str) -> None:
    loaded = load_key_store(store(kind, IDENTITY.write_pkcs12(tmp_path / "broker.p12"), SECRET))
    assert loaded is not None
    assert (loaded.chain, loaded.key) == (IDENTITY.chain_pem, IDENTITY.key_pem())
    trusted = load_trust_store(store(kind, AUTHORITY.write_pkcs12(tmp_path / "trust.p12"), SECRET))
    assert trusted is not None
    assert trusted.certificates == AUTHORITY.pem


def test_a_trust_store_that_is_not_in_der_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    path = tmp_path / "trust.p12"
    path.write_bytes(bytes.fromhex("3080020103"))  # a value whose length is not given
    with pytest.raises(ConfigError, match=r"a length is not valid\. Convert it with: keytool -importkeystore"):
        load_trust_store(store("PKCS12", path))


def test_the_key_is_not_shown(tmp_path: Path) -> None:
    loaded = load_key_store(store(location=IDENTITY.write_pem(tmp_path / "broker.pem")))
    assert "BEGIN" not in repr(loaded)
    assert "BEGIN" not in repr(store(certificates=IDENTITY.chain_pem, key=IDENTITY.key_pem()))


def test_the_old_format_of_java_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    path = tmp_path / "broker.jks"
    path.write_bytes(bytes.fromhex("feedfeed00000002"))
    with pytest.raises(ConfigError) as error:
        load_key_store(store("JKS", path, SECRET))
    assert f"keytool -importkeystore -srckeystore {path} -destkeystore {path}.p12 -deststoretype PKCS12" in str(
        error.value
    )


def test_no_store() -> None:
    assert load_key_store(store("JKS")) is None
    assert load_trust_store(store("JKS")) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (store("JKS", key="k", certificates="c"), "can be specified only for PEM, but key store type is JKS"),
        (store(key="k"), "certificate chain is not specified"),
        (store(location="x", key="k", certificates="c"), "Both SSL key store location and separate private key"),
        (store(password=SECRET, key="k", certificates="c"), "only key password may be specified"),
        (store(certificates="c"), "SSL certificate chain is specified, but private key is not"),
        (store(location="x", password=SECRET), "only key password may be specified"),
        (store("JKS", password=SECRET), "SSL key store is not specified, but key store password is"),
        (store("JKS", "x"), "SSL key store is specified, but key store password is not"),
        (store("JKS", "/no/such", SECRET), "Failed to load SSL keystore /no/such of type JKS: No such file"),
        (store("BKS", "/no/such", SECRET), "the types PEM and PKCS12 are read"),
        (store(location="/no/such"), "Failed to load SSL keystore /no/such of type PEM"),
        (store(key="k", certificates="c"), "No matching PRIVATE KEY entries in PEM file"),
        (store(key=IDENTITY.key_pem() * 2, certificates="c"), "Expected one private key, but found 2"),
    ],
)
def test_key_stores_that_are_refused(settings: StoreSettings, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_key_store(settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (store("JKS", certificates="c"), "can be specified only for PEM, but trust store type is JKS"),
        (store(location="x", certificates="c"), "Both SSL trust store location and separate trust certificates"),
        (store(password=SECRET, certificates="c"), "password cannot be specified for PEM"),
        (store(location="x", password=SECRET), "password cannot be specified for PEM"),
        (store("JKS", password=SECRET), "SSL trust store is not specified, but trust store password is"),
        (store("JKS", "/no/such"), "Failed to load SSL keystore /no/such of type JKS: No such file"),
    ],
)
def test_trust_stores_that_are_refused(settings: StoreSettings, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_trust_store(settings)


def test_a_wrong_password_is_not_shown(tmp_path: Path) -> None:
    path = IDENTITY.write_pkcs12(tmp_path / "broker.p12")
    with pytest.raises(ConfigError, match="its password is another one") as error:
        load_key_store(store("PKCS12", path, Password("canary")))
    assert "canary" not in str(error.value)


def test_pem_stores_do_not_need_cryptography() -> None:
    program = (
        "import sys; import odradek.broker.security.tls.ssl_factory, odradek.broker.security.tls.tls_contexts;"
        "sys.exit('cryptography' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("load", [load_key_store, load_trust_store])
def test_a_pkcs12_store_without_cryptography_is_refused_with_the_package_it_needs(
    load: Callable[[StoreSettings], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = IDENTITY.write_pkcs12(tmp_path / "broker.p12")
    for name in [name for name in sys.modules if name.partition(".")[0] == "cryptography"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match="PKCS12 needs the package cryptography"):
        load(store("PKCS12", path, Password(PASSWORD)))
