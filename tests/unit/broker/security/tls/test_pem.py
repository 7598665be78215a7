from __future__ import annotations

import ssl

import pytest

from odradek.broker.security.tls.pem import CERTIFICATE, PRIVATE_KEY, pem_entries, revocation_lists
from odradek.storage.config.config_def import ConfigError
from tests.support.certificates import Authority, one_line

AUTHORITY = Authority()
IDENTITY = AUTHORITY.issue("broker")
LIST = AUTHORITY.revoke(IDENTITY)


def test_entries_are_found_with_other_text_around_them() -> None:
    text = f"Bag Attributes\n  friendlyName: x\n{IDENTITY.key_pem()}subject=CN = x\n{IDENTITY.chain_pem}"
    certificates = pem_entries(text, CERTIFICATE)
    assert [ssl.DER_cert_to_PEM_cert(entry.content) for entry in certificates] == [
        entry.text() for entry in certificates
    ]
    assert "".join(entry.text() for entry in certificates) == IDENTITY.chain_pem
    assert [entry.text() for entry in pem_entries(text, PRIVATE_KEY)] == [IDENTITY.key_pem()]


def test_spaces_instead_of_ends_of_lines() -> None:
    assert [entry.text() for entry in pem_entries(one_line(IDENTITY.certificate_pem), CERTIFICATE)] == [
        IDENTITY.certificate_pem
    ]


@pytest.mark.parametrize(
    "begin", ["-----BEGIN CERTIFICATE-----\n", "-BEGIN\tCERTIFICATE \t-\n\n", "text-----BEGIN CERTIFICATE-- "]
)
@pytest.mark.parametrize("headers", ["", "DEK-Info: AES-256-CBC,0A-0B\n\n", "Proc-Type: 4,ENCRYPTED\r\nX:\r\n"])
def test_headers_and_blanks(begin: str, headers: str) -> None:
    (entry,) = pem_entries(f"{begin}{headers}AAEC\nAwQF\n-----END CERTIFICATE-----", CERTIFICATE)
    assert (entry.label, entry.content) == ("CERTIFICATE", bytes(range(6)))


def test_an_encrypted_key_keeps_its_label() -> None:
    (entry,) = pem_entries(IDENTITY.key_pem("secret"), PRIVATE_KEY)
    assert entry.label == "ENCRYPTED PRIVATE KEY"


@pytest.mark.parametrize("text", ["", "x" * 1000, "-----BEGIN " * 2000, IDENTITY.key_pem()])
def test_a_text_without_certificates_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="No matching CERTIFICATE entries in PEM file"):
        pem_entries(text, CERTIFICATE)


def test_broken_base64_is_refused() -> None:
    with pytest.raises(ConfigError, match="Invalid CERTIFICATE entry in PEM"):
        pem_entries("-----BEGIN CERTIFICATE-----\nabc=d\n-----END CERTIFICATE-----\n", CERTIFICATE)


def test_any_number_of_revocation_lists() -> None:
    assert revocation_lists(AUTHORITY.pem) == []
    assert [found.text() for found in revocation_lists(AUTHORITY.pem + LIST + one_line(LIST))] == [LIST, LIST]


@pytest.mark.parametrize(
    "damaged",
    [
        LIST[:-30],
        LIST[: len(LIST) // 2],
        LIST[: len(LIST) // 2] + "*" + LIST[len(LIST) // 2 :],
        LIST.replace("-----BEGIN X509 CRL-----\n", ""),
        LIST.replace("BEGIN X509 CRL", "BEGIN X509 CRT"),
        one_line(LIST)[:-30],
    ],
    ids=["without its last line", "cut in two", "no Base64", "without its first line", "another label", "in one line"],
)
def test_a_damaged_revocation_list_is_refused(damaged: str) -> None:
    """Else the store would count as one without a list, which lets in all that it revokes."""
    for text in (damaged, LIST + damaged, damaged + "\n" + AUTHORITY.pem + LIST):
        with pytest.raises(ConfigError, match="Damaged X509 CRL entry in PEM"):
            revocation_lists(text)


def test_a_damaged_certificate_beside_others_is_no_entry() -> None:
    """As in Apache Kafka: whoever has it is not trusted."""
    assert len(pem_entries(AUTHORITY.pem + AUTHORITY.pem.replace("MII", "*II", 1), CERTIFICATE)) == 1
