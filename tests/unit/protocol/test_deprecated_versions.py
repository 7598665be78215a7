from __future__ import annotations

from odradek.protocol.api import API, ApiKey
from odradek.protocol.deprecated_versions import LAST_DEPRECATED_VERSIONS, is_deprecated


def test_deprecated_versions_are_served() -> None:
    for key, version in LAST_DEPRECATED_VERSIONS.items():
        assert API[key].min_version <= version < API[key].max_version


def test_versions_up_to_the_last_one_are_deprecated() -> None:
    assert [is_deprecated(ApiKey.PRODUCE, version) for version in (0, 2, 3)] == [True, True, False]
    assert not is_deprecated(ApiKey.HEARTBEAT, 0)
