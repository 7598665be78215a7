"""Makes a NamedTuple from a tuple of all its values: `new_tuple(TopicPartition, (topic, partition))`.

Its class takes twice as long, because that calls a function of Python. For those that are made with each request.
"""

from __future__ import annotations

from typing import Final

new_tuple: Final = tuple.__new__
