from __future__ import annotations

import pytest

from odradek.broker.security.sasl.login_options import login_name_and_password
from odradek.broker.security.sasl.ports import JaasEntry
from odradek.storage.config.config_def import ConfigError


def test_name_and_password_come_from_the_options() -> None:
    assert login_name_and_password(JaasEntry("m", {"username": "a", "password": "b"})) == ("a", "b")


@pytest.mark.parametrize("options", [{}, {"username": "a"}, {"password": "very secret"}])
def test_one_without_the_other_is_refused_and_not_repeated(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as error:
        login_name_and_password(JaasEntry("m", options))
    assert "very secret" not in str(error.value)
