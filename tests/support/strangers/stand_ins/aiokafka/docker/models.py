"""Names that aiokafka's tests read in annotations."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

containers = SimpleNamespace(Container=Any)
