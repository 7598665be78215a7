"""The schema of `archive_topic`; its rows are tested with a session, in tests/conformance/spark."""

from __future__ import annotations

import pytest

from spark_jobs.archive.archive_rows import schema_of
from spark_jobs.common.job import JobError


def test_a_schema_in_ddl_is_left_to_spark() -> None:
    assert schema_of(None) is None
    assert schema_of("id BIGINT") == "id BIGINT"


def test_a_schema_in_json_is_read() -> None:
    field = '{"name": "id", "type": "long", "nullable": true, "metadata": {}}'
    schema = schema_of(f'{{"type": "struct", "fields": [{field}]}}')
    assert not isinstance(schema, str | None)
    assert schema.simpleString() == "struct<id:bigint>"


@pytest.mark.parametrize("text", ["{", '{"type": "struct"}', '{"type": "struct", "fields": [3]}'])
def test_json_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(JobError, match=r"--schema is no schema in Spark's JSON form"):
        schema_of(text)
