"""Parsing and validation of configuration values, with Kafka's error messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.storage.config.config_def import (
    CaseInsensitiveValidString,
    ConfigDef,
    ConfigError,
    ConfigKey,
    ConfigType,
    Importance,
    NoDefault,
    NonEmptyString,
    Password,
    ValidList,
    ValidString,
    at_least,
    between,
    parse_int32,
    parse_int64,
    parse_type,
    shown,
    split_list,
    to_text,
)


def key(type_: ConfigType, default: str | NoDefault | None = "1", validator: object = None) -> ConfigKey:
    return ConfigKey("name", type_, default, Importance.LOW, "doc", validator)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (ConfigType.BOOLEAN, " TRUE ", True),
        (ConfigType.INT, " +5", 5),
        (ConfigType.LONG, "-9223372036854775808", -(2**63)),
        (ConfigType.SHORT, "32767", 32767),
        (ConfigType.DOUBLE, "1e-2", 0.01),
        (ConfigType.LIST, "a , b,c", ["a", "b", "c"]),
        (ConfigType.LIST, " ", []),
        (ConfigType.STRING, " x ", "x"),
        (ConfigType.LONG, "\x01 5\x00", 5),
        (ConfigType.STRING, "\xa0x\u3000 ", "\xa0x\u3000"),
        (ConfigType.LIST, "\x01a\x02\v,\xa0b", ["a\x02", "\xa0b"]),
        (ConfigType.CLASS, "org.example.Thing", "org.example.Thing"),
        (ConfigType.PASSWORD, "secret", Password("secret")),
    ],
)
def test_texts_become_values(type_: ConfigType, text: str, value: object) -> None:
    assert parse_type("name", text, type_) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("-0", 0), ("00", 0), ("+07", 7), ("2147483647", 2**31 - 1), ("-2147483648", -(2**31))]
    + [(text, None) for text in ("", "+", "-", " 1", "1_0", "0x", "2147483648", "-2147483649", "٣")],
)
def test_numbers_of_32_bits(text: str, value: int | None) -> None:
    assert parse_int32(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("9223372036854775807", 2**63 - 1), ("-9223372036854775808", -(2**63)), ("9223372036854775808", None)],
)
def test_numbers_of_64_bits(text: str, value: int | None) -> None:
    assert parse_int64(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5.0),
        ("5.", 5.0),
        (".5", 0.5),
        ("-5.25e+1d", -52.5),
        ("1E2", 100.0),
        ("2f", 2.0),
        ("Infinity", float("inf")),
    ]
    + [(text, None) for text in (".", "", "e5", "5e", "5e+", "1.2.3", "inf", "5ff", "1_0", "0x1")],
)
def test_numbers_with_a_fraction(text: str, value: float | None) -> None:
    if value is not None:
        assert parse_type("name", text, ConfigType.DOUBLE) == value
    else:
        with pytest.raises(ConfigError, match="Not a number of type DOUBLE"):
            parse_type("name", text, ConfigType.DOUBLE)


def test_elements_of_a_list() -> None:
    assert split_list(" a ,\tb b,,c") == ["a", "b b", "", "c"]
    assert split_list("") == [""]


@pytest.mark.parametrize("type_", [ConfigType.INT, ConfigType.SHORT, ConfigType.LONG])
def test_a_number_may_have_thousands_of_digits(type_: ConfigType) -> None:
    """More digits than `int` accepts: leading zeros, or not a number of the type."""
    assert parse_type("name", "-" + 5000 * "0" + "7", type_) == -7
    assert parse_type("name", 5000 * "0", type_) == 0
    with pytest.raises(ConfigError, match="Not a number of type"):
        parse_type("name", 5000 * "1", type_)


@pytest.mark.parametrize(
    ("type_", "text", "message"),
    [
        (ConfigType.INT, "1_000", "Invalid value 1_000 for configuration name: Not a number of type INT"),
        (ConfigType.INT, "2147483648", "Invalid value 2147483648 for configuration name: Not a number of type INT"),
        (ConfigType.LONG, "\xa05", "Invalid value \xa05 for configuration name: Not a number of type LONG"),
        (ConfigType.LONG, "x", "Invalid value x for configuration name: Not a number of type LONG"),
        (ConfigType.SHORT, "", "Invalid value  for configuration name: Not a number of type SHORT"),
        (ConfigType.DOUBLE, "nanx", "Invalid value nanx for configuration name: Not a number of type DOUBLE"),
        (
            ConfigType.BOOLEAN,
            "yes",
            "Invalid value yes for configuration name: Expected value to be either true or false",
        ),
    ],
)
def test_bad_texts_are_refused_in_kafkas_words(type_: ConfigType, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_type("name", text, type_)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("validator", "good", "bad", "reason", "shown"),
    [
        (at_least(1), 1, 0, "Invalid value 0 for configuration n: Value must be at least 1", "[1,...]"),
        (
            between(0, 1),
            0.5,
            1.5,
            "Invalid value 1.5 for configuration n: Value must be no more than 1",
            "[0,...,1]",
        ),
        (at_least(1), 1, None, "Invalid value null for configuration n: Value must be non-null", "[1,...]"),
        (
            ValidString(("a", "b")),
            "a",
            "c",
            "Invalid value c for configuration n: String must be one of: a, b",
            "[a, b]",
        ),
        (
            ValidList(("a", "b")),
            ["a"],
            ["a", "c"],
            "Invalid value c for configuration n: String must be one of: a, b",
            "[a, b]",
        ),
        (
            CaseInsensitiveValidString(("a",)),
            "A",
            "c",
            "Invalid value c for configuration n: String must be one of (case insensitive): a",
            "(case insensitive) [a]",
        ),
        (
            NonEmptyString(),
            "a",
            "",
            "Invalid value  for configuration n: String must be non-empty",
            "non-empty string",
        ),
    ],
)
def test_validators(validator: object, good: object, bad: object, reason: str, shown: str) -> None:
    validator.ensure_valid("n", good)  # type: ignore[attr-defined]
    with pytest.raises(ConfigError) as error:
        validator.ensure_valid("n", bad)  # type: ignore[attr-defined]
    assert str(error.value) == reason
    assert str(validator) == shown


def test_required_key_without_value() -> None:
    with pytest.raises(ConfigError, match='Missing required configuration "name" which has no default value'):
        ConfigDef((key(ConfigType.INT, NoDefault.REQUIRED),)).parse_all({})


def test_parse_all_takes_given_values_and_defaults_and_ignores_strangers() -> None:
    table = ConfigDef((key(ConfigType.INT), ConfigKey("other", ConfigType.STRING, None, Importance.LOW, "doc")))
    assert table.parse_all({"name": "7", "stranger": "x"}) == {"name": 7, "other": None}
    assert table.names == ["name", "other"]
    assert "name" in table
    with pytest.raises(ConfigError):
        table.parse("stranger", "x")


def test_a_key_is_defined_once() -> None:
    with pytest.raises(ConfigError):
        ConfigDef((key(ConfigType.INT), key(ConfigType.INT)))


def test_passwords_do_not_show() -> None:
    assert str(Password("secret")) == repr(Password("secret")) == "[hidden]"
    assert to_text(Password("secret")) == "secret"


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_round_trip(number: int) -> None:
    assert parse_type("n", to_text(number) or "", ConfigType.LONG) == number


@given(st.lists(st.text(st.characters(blacklist_characters=",", blacklist_categories=("Z", "C")), min_size=1)))
def test_lists_round_trip(values: list[str]) -> None:
    assert parse_type("n", to_text(values) or "", ConfigType.LIST) == values


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (-0.0, "-0.0"),
        (1000.0, "1000.0"),
        (2147483647.0, "2.147483647E9"),
        (-1e7, "-1.0E7"),
        (0.0005, "5.0E-4"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_are_shown_as_java_shows_them(value: float, text: str) -> None:
    assert shown(value) == text
    assert parse_type("d", text, ConfigType.DOUBLE) == pytest.approx(value, nan_ok=True)


def test_of_classes_there_is_the_default_alone() -> None:
    row = key(ConfigType.CLASS, "a.B")
    assert row.parse("a.B") == "a.B"
    with pytest.raises(ConfigError, match=r"Class a.C could not be found."):
        row.parse("a.C")


def test_a_default_that_is_a_list_is_the_callers_own() -> None:
    key = ConfigKey("names", ConfigType.LIST, "a,b", Importance.LOW, "")
    first = key.default_value()
    assert isinstance(first, list)
    first.append("c")
    assert key.default_value() == ["a", "b"]
