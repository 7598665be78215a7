"""Transactions and the producers of partitions, and transactions that hang."""
