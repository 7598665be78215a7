"""The error of a write that was fenced by a newer controller.

Kafka: ControllerMovedException.
"""

from __future__ import annotations


class ControllerMoved(Exception):
    """Another broker is the controller now. The current event ends and this controller resigns."""
