from __future__ import annotations

import base64

import pytest

from odradek.controller.model.scram_mechanism import SALT_BITS, SCRAM_MECHANISMS, ScramMechanism, random_salt, salt_of

NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
AUTH_MESSAGE = (f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={NONCE}").encode()


def test_the_example_of_rfc_7677() -> None:
    sha_256 = ScramMechanism.SCRAM_SHA_256
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = sha_256.salted_password(b"pencil", salt, 4096)
    proof = sha_256.client_proof(salted, AUTH_MESSAGE)
    assert base64.b64encode(proof) == b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    credential = sha_256.credential(salt, salted, 4096)
    assert sha_256.is_proof(proof, credential.stored_key, AUTH_MESSAGE)
    signature = sha_256.hmac(credential.server_key, AUTH_MESSAGE)
    assert base64.b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_any_other_proof_is_none() -> None:
    for mechanism in ScramMechanism:
        salted = mechanism.salted_password(b"pencil", b"salt", 4096)
        proof = mechanism.client_proof(salted, AUTH_MESSAGE)
        stored_key = mechanism.credential(b"salt", salted, 4096).stored_key
        assert mechanism.is_proof(proof, stored_key, AUTH_MESSAGE)
        assert not mechanism.is_proof(proof[:-1] + bytes([proof[-1] ^ 1]), stored_key, AUTH_MESSAGE)
        assert not mechanism.is_proof(proof[:-1], stored_key, AUTH_MESSAGE)
        assert not mechanism.is_proof(b"", stored_key, AUTH_MESSAGE)
        assert not mechanism.is_proof(proof, stored_key, AUTH_MESSAGE + b".")


def test_kafkas_names_codes_and_limits() -> None:
    assert {name: (one.code, one.hash_bytes, one.min_iterations) for name, one in SCRAM_MECHANISMS.items()} == {
        "SCRAM-SHA-256": (1, 32, 4096),
        "SCRAM-SHA-512": (2, 64, 4096),
    }


@pytest.mark.parametrize(("number", "salt"), [(0, b"0"), (35, b"z"), (36, b"10"), ((1 << SALT_BITS) - 1, None)])
def test_salts_are_numbers_in_base_36(number: int, salt: bytes | None) -> None:
    made = salt_of(number)
    assert salt is None or made == salt
    assert int(made, 36) == number
    assert len(made) <= 26


def test_a_random_salt_takes_its_bits_from_random_bytes() -> None:
    assert random_salt(lambda count: b"\xff" * count) == salt_of((1 << SALT_BITS) - 1)
    assert random_salt(bytes) == b"0"
