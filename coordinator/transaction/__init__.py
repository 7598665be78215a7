"""Transactions: `records`, the format in which their state is kept in `__transaction_state`."""
