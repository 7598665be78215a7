"""The broker's side of both coordinators: their logs, their set-up, verification of transactions (KIP-890)."""
