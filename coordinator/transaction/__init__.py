"""Transactions. From the API inwards:

- `coordinator`: one method per request, and transaction timeouts; `listing`: DescribeTransactions, ListTransactions
- `states`: the state machine as tables
- `transaction_metadata`: one transactional id and its state changes
- `transaction_state_manager`: all transactional ids and their log; `records`: the record format
- `markers`: sends the markers of committed and aborted transactions to the partition leaders
"""
