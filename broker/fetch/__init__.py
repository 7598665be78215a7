"""Reads for Fetch and ListOffsets: sessions, waiting, replica selection, throttling, down-conversion."""
