"""Decides what an authenticated principal may do."""
