from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.controller.model.scram_credential import ScramCredential

TEXT = "salt=YWJj,stored_key=ZGVm,server_key=Z2hpag==,iterations=4096"


def test_the_text_is_that_of_apache_kafka() -> None:
    credential = ScramCredential.of_text(TEXT)
    assert credential == (b"abc", b"def", b"ghij", 4096)
    assert credential.to_text() == TEXT


@pytest.mark.parametrize("text", [TEXT + ",,", TEXT.replace("YWJj", "eHg=") + ",salt=YWJj"])
def test_empty_parts_at_the_end_are_dropped_and_the_last_of_a_name_counts(text: str) -> None:
    assert ScramCredential.of_text(text) == ScramCredential.of_text(TEXT)


@given(st.binary(), st.binary(), st.binary(), st.integers(0, 2**31 - 1))
def test_what_is_written_is_read(salt: bytes, stored_key: bytes, server_key: bytes, iterations: int) -> None:
    credential = ScramCredential(salt, stored_key, server_key, iterations)
    assert ScramCredential.of_text(credential.to_text()) == credential


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "=",
        TEXT + ",more=1",
        TEXT + ",=1",
        "salt," + TEXT,
        TEXT.replace(",iterations=4096", ""),
        *(TEXT.replace("4096", number) for number in ("x", "4_096", " 4096", "2147483648")),
        TEXT.replace("YWJj", "Y"),
    ],
)
def test_an_invalid_text_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ValueError, match=r"^Credentials not valid$"):
        ScramCredential.of_text(text)


def test_the_repr_has_no_secret() -> None:
    assert repr(ScramCredential.of_text(TEXT)) == "ScramCredential(iterations=4096)"
