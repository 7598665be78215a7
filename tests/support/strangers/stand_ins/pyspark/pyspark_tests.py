"""A pytest plugin: PySpark's tests are modules of PySpark, and its package does not contain them."""

from __future__ import annotations

from pathlib import Path

import pyspark.sql

pyspark.sql.__path__.append(str(Path.cwd() / "python" / "pyspark" / "sql"))
