from __future__ import annotations

import pytest

from odradek.protocol.api import API, ApiKey
from odradek.protocol.older_releases import NEWEST_RELEASE, RELEASES, apis_of, release_of


def test_the_newest_release_is_what_is_served_without_a_limit() -> None:
    assert apis_of(NEWEST_RELEASE) == API


def test_each_release_serves_a_part_of_what_the_next_one_serves() -> None:
    newer = apis_of(NEWEST_RELEASE)
    assert RELEASES[0] == NEWEST_RELEASE
    for release in RELEASES[1:]:
        apis = apis_of(release)
        assert set(apis) <= set(newer)
        assert [repr(spec) for spec in apis.values()] != [repr(spec) for spec in newer.values()], release
        for key, spec in apis.items():
            assert newer[key].min_version <= spec.min_version <= spec.max_version <= newer[key].max_version
            assert spec.flexible_version == API[key].flexible_version
            assert (spec.key, spec.name) == (key, API[key].name)
        newer = apis


@pytest.mark.parametrize(
    ("release", "key", "lowest", "highest"),
    [
        ("3.8", ApiKey.FETCH, 0, 16),
        ("2.8", ApiKey.METADATA, 0, 11),
        ("2.7", ApiKey.METADATA, 0, 9),
        ("2.3", ApiKey.API_VERSIONS, 0, 2),
        ("1.0", ApiKey.CONTROLLED_SHUTDOWN, 0, 1),
        ("0.11.0", ApiKey.CONTROLLED_SHUTDOWN, 1, 1),
        ("0.10.2", ApiKey.CONTROLLED_SHUTDOWN, 1, 1),
        ("0.10.2", ApiKey.PRODUCE, 0, 2),
    ],
)
def test_ranges(release: str, key: ApiKey, lowest: int, highest: int) -> None:
    spec = apis_of(release)[key]
    assert (spec.min_version, spec.max_version) == (lowest, highest)


def test_an_api_is_absent_before_the_release_that_brought_it() -> None:
    assert ApiKey.INIT_PRODUCER_ID in apis_of("0.11.0")
    assert ApiKey.INIT_PRODUCER_ID not in apis_of("0.10.2")


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("2.8", "2.8"),
        ("2.8.1", "2.8"),
        ("0.11", "0.11.0"),
        ("0.11.0.3", "0.11.0"),
        ("0.10.2.2", "0.10.2"),
        ("3.9", "3.9"),
    ],
)
def test_a_version_names_a_release(text: str, release: str) -> None:
    assert release_of(text) == release


@pytest.mark.parametrize("text", ["", "4.0", "2.9", "2", "0.10", "0.10.1", "2.8-IV1", "2.8.x", "latest"])
def test_other_texts_name_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a release of Apache Kafka from 0\.10\.2 to 3\.9"):
        release_of(text)


def test_an_unknown_release_has_no_apis() -> None:
    with pytest.raises(ValueError, match="unknown release"):
        apis_of("2.9")
