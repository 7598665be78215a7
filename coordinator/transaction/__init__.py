"""Transactions. From the outside in:

- `coordinator`: the API, one method for each thing asked; time-outs; `listing`: what administrators are shown
- `states`: the state machine, as a table with its theory
- `transaction_metadata`: one transactional id, and the changes it may go through
- `transaction_state_manager`: all of them, kept in step with the log; `records`: their format
- `markers`: how the partitions of a decided transaction hear of it
"""
