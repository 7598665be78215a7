"""Received bytes to frames, and the memory of frames."""
