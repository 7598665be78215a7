"""Delegation tokens (KIP-48): their cache, their changes in the metadata tree, and their expiry."""
