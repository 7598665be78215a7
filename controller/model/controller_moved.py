"""The error of a write that another controller has fenced.

Kafka: ControllerMovedException.
"""

from __future__ import annotations


class ControllerMoved(Exception):
    """Another broker is the controller now: a write was fenced. It ends the event at hand; this controller resigns."""
