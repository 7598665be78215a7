"""Schemas that are taken and refused, and the verdicts on records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_jobs.common.job import JobError
from spark_jobs.validation.json_schema import MAX_TEXT_CHARS, Rules, Verdict, read_schema

CLICK = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer"},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
        "at": {"format": "date"},
    },
    "$defs": {"tag": {"enum": ["a", "b"]}},
}
TREE = {"$dynamicAnchor": "node", "properties": {"child": {"$dynamicRef": "#node"}}}


def rules(schema: object = CLICK, **more: object) -> Rules:
    return Rules(value_schema=json.dumps(schema), **more)  # type: ignore[arg-type]


def kind(found: Verdict | None) -> str | None:
    return None if found is None else found.kind


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'{"id": 1, "tags": ["a"]}', None),
        (b'{"id": 1.0}', None),
        (None, "value is null"),
        (b"", "value is not JSON"),
        (b"\xff", "value is not UTF-8"),
        (b'{"id": NaN}', "value is not JSON"),
        (b'{"id": -Infinity}', "value is not JSON"),
        (b'{"id": 1} x', "value is not JSON"),
        (b"[" * 100_000, "value is not JSON"),
        (b'{"id": ' + b"9" * 5_000 + b"}", "value is not JSON"),
        (b"[]", "value breaks /type"),
        (b"{}", "value breaks /required: 'id' is a required property"),
        (b'{"id": "1"}', "value breaks /properties/id/type"),
        (b'{"id": 1, "tags": ["a", "c"]}', "value breaks /properties/tags/items/enum"),
        (b'{"id": 1, "at": "never"}', None),
    ],
)
def test_a_value_is_judged(value: bytes | None, expected: str | None) -> None:
    assert kind(rules().verdict(b"any key \xff", value)) == expected


def test_a_reason_names_the_place_and_is_short() -> None:
    found = rules().verdict(None, b'{"id": 1, "tags": ["a", "c"]}')
    assert found is not None
    assert found.text == "value breaks /properties/tags/items/enum at $.tags[1]: 'c' is not one of ['a', 'b']"
    long = rules().verdict(None, b'{"id": "%s"}' % (b"x" * 10_000))
    assert long is not None
    assert len(long.text) == MAX_TEXT_CHARS


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"multipleOf": 0.01}, b"1e999", "value cannot be validated"),
        ({"multipleOf": 0.01}, b"-1e999", "value cannot be validated"),
        ({"multipleOf": 0.01}, b"1" * 310, "value cannot be validated"),
        ({"multipleOf": 0.01}, b"1" * 4_300, "value cannot be validated"),
        ({"multipleOf": 10**400}, b"0.5", "value cannot be validated"),
        ({"type": "number", "minimum": 0}, b"1e999", None),
        ({"maximum": 1e308}, b"1e999", "value breaks /maximum"),
        ({"format": "regex"}, b'"a{99999999999999999999}"', "value cannot be validated"),
        ({"format": "regex"}, b'"a{%s}"' % (b"9" * 5_000), "value cannot be validated"),
        ({"format": "regex"}, b'"%s"' % (b"(" * 50_000), "value is nested too deeply"),
    ],
)
def test_a_value_with_which_a_keyword_cannot_compute_is_bad(schema: object, value: bytes, expected: str | None) -> None:
    assert kind(rules(schema, assert_formats=True).verdict(None, value)) == expected


def test_a_reason_is_text_that_utf_8_has() -> None:
    found = rules({"additionalProperties": {"type": "null"}}).verdict(None, b'{"\\ud800": 1}')
    assert found is not None
    assert found.text == "value breaks /additionalProperties/type at $['\\ud800']: 1 is not of type 'null'"
    found.text.encode()


def test_null_values_and_formats_are_as_the_rules_say() -> None:
    assert rules(allow_null_values=True).verdict(None, None) is None
    assert kind(rules(assert_formats=True).verdict(None, b'{"id": 1, "at": "never"}')) == (
        "value breaks /properties/at/format"
    )


def test_keys_are_judged_when_they_have_a_schema() -> None:
    with_keys = rules(key_schema='{"type": "string"}', allow_null_values=True)
    assert with_keys.verdict(b'"k"', b'{"id": 1}') is None
    assert kind(with_keys.verdict(b"1", b'{"id": 1}')) == "key breaks /type"
    assert kind(with_keys.verdict(None, None)) == "key is null"


def test_a_schema_that_refers_to_itself_is_followed() -> None:
    tree = rules({"properties": {"child": {"$ref": "#"}}, "type": "object"})
    assert tree.verdict(None, b'{"child": {"child": {}}}') is None
    assert kind(tree.verdict(None, b'{"child": {"child": 1}}')) == (
        "value breaks /properties/child/properties/child/type"
    )


@pytest.mark.parametrize(
    ("draft", "value", "is_good"),
    [
        ("http://json-schema.org/draft-03/schema#", b'{"a": 1}', False),  # divisibleBy is of draft 3 alone
        ("http://json-schema.org/draft-04/schema#", b'{"a": 1}', True),
        ("http://json-schema.org/draft-07/schema#", b'{"a": 1}', True),
        ("https://json-schema.org/draft/2019-09/schema", b'{"a": 1}', True),
    ],
)
def test_the_draft_is_that_of_the_schema(draft: str, value: bytes, is_good: bool) -> None:
    found = rules({"$schema": draft, "properties": {"a": {"divisibleBy": 2}}}).verdict(None, value)
    assert (found is None) == is_good


@pytest.mark.parametrize("schema", [CLICK, True, {"$ref": "https://json-schema.org/draft/2020-12/schema"}, TREE])
def test_a_schema_is_read(schema: object, tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(schema))
    assert read_schema(str(file), "--schema") == file.read_text()


def test_a_reference_into_a_part_with_a_name_of_its_own_is_found(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    parts = {"$defs": {"b": {"$id": "b.json", "$defs": {"c": True}, "$ref": "#/$defs/c"}}, "$ref": "b.json"}
    file.write_text(json.dumps({"$id": "http://example.test/a.json", **parts}))
    read_schema(str(file), "--schema")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "schema.json cannot be read: No such file"),
        (b"\xff", "schema.json is not UTF-8"),
        (b"{", "schema.json is not JSON: Expecting property name"),
        (b"3", "schema.json is no JSON Schema: it is neither an object nor true or false"),
        (b'{"type": "strin"}', "schema.json is no JSON Schema: 'strin' is not valid under any of the given schemas"),
        (b'{"$schema": "http://example.test/s"}', r"\$schema is http://example.test/s, which is none of the drafts 3"),
        (b'{"items": {"$ref": "#/$defs/a"}}', r"the \$ref #/\$defs/a is not in the schema, and nothing is fetched"),
        (b'{"items": {"$dynamicRef": "#a"}}', r"the \$dynamicRef #a is not in the schema, and nothing is fetched"),
        (b'{"$ref": "http://127.0.0.1:1/x"}', r"the \$ref http://127.0.0.1:1/x is not in the schema"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_one_line(
    content: bytes | None, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "schema.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(JobError, match=message) as refused:
        read_schema(str(file), "--schema")
    assert str(refused.value).startswith("--schema: ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("items", "is_unique"),
    [
        ("[]", True),
        ('[1, true, 0, false, null, "1", "true", [], {}, [1], {"1": 1}, 1.5]', True),
        ("[1, 2, 1.0]", False),
        ("[0, -0.0]", False),
        ("[1e300, 1e300]", False),
        ("[1e999, -1e999]", True),
        ("[[1, true], [1, 1]]", True),
        ('[[1, {"a": 1, "b": [2]}], [1, {"b": [2.0], "a": 1}]]', False),
        ('[{"a": "b"}, {"a,b": ""}, {"a": "c"}]', True),
        ('["\\u00e9", "\u00e9"]', False),
    ],
)
@pytest.mark.parametrize("draft", ["http://json-schema.org/draft-04/schema#", None])
def test_items_are_unique_as_json_schema_has_it(items: str, is_unique: bool, draft: str | None) -> None:
    schema = {"uniqueItems": True} | ({} if draft is None else {"$schema": draft})
    assert kind(rules(schema).verdict(None, items.encode())) == (None if is_unique else "value breaks /uniqueItems")
    assert rules(schema | {"uniqueItems": False}).verdict(None, items.encode()) is None
    assert rules(schema).verdict(None, b"3") is None


@pytest.mark.parametrize("item", ['{{"a": {}}}', "{}"])
def test_many_items_are_not_compared_each_with_all_others(item: str) -> None:
    """Objects cannot be sorted; the numbers all have the same hash. Each with all: minutes, or hours."""
    numbers = (number * (2**61 - 1) for number in range(30_000))
    record = f"[null,{','.join(item.format(number) for number in numbers)}]"
    draft = "https://json-schema.org/draft/2020-12/schema"
    schema = {
        "$schema": draft,
        "properties": {"deep": {"$ref": "#/$defs/set"}},
        "$defs": {"set": {"uniqueItems": True}},
    }
    assert rules(schema).verdict(None, f'{{"deep": {record}}}'.encode()) is None
    tree = {"$schema": draft, "properties": {"set": {"uniqueItems": True}, "child": {"$ref": "#"}}}
    assert rules(tree).verdict(None, f'{{"child": {{"set": {record}}}}}'.encode()) is None
