"""Consumer groups: membership, rebalancing and committed offsets. From the API inwards:

- `coordinator`: one method per request; `offset_service`: the requests about offsets
- `joining`: JoinGroup; `membership`: SyncGroup, Heartbeat, LeaveGroup
- `rebalance`: all transitions between generations; `sessions`: session timeouts of members
- `state/group_states`: the state machine as tables
- `state/group_metadata`: members and generation of a group; `state/member`: one member
- `state/group_offsets`: a group's offsets, pending, committed, expiring
- `group_metadata_manager`: all groups and their log; `loading`: reads the log; `state/records`: record formats
- `offset_api`, `zookeeper_offsets`, `group_administration`, `state/responses`, `validation`: requests and responses
"""
