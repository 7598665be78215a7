"""Consumer groups: membership, rebalancing and committed offsets. From the outside in:

- `coordinator`: the API, one method per request; `offset_service`: those about offsets
- `joining`: JoinGroup, who may come in and what that means; `membership`: SyncGroup, Heartbeat, LeaveGroup
- `rebalance`: from one generation to the next, every transition of a living group; `sessions`: who is alive
- `states`: the state machine, as a table with its theory
- `group_metadata`: a group's members and generation; `member`: one of them
- `group_offsets`: a group's offsets, pending, committed, expiring
- `group_metadata_manager`: all groups, kept in step with the log; `loading`: reading them back; `records`: their format
- `offset_api`, `zookeeper_offsets`, `group_administration`, `responses`, `validation`: between the wire and a group
"""
