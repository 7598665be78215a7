"""Consumer groups: membership, rebalancing and committed offsets.

coordinator      the API: one method per request
states           the state machine, as a table with its theory
joining          JoinGroup: who may come in, and what that means
membership       SyncGroup, Heartbeat, LeaveGroup
rebalance        from one generation to the next: every transition of a living group
sessions         who is alive
group_metadata   a group's members and generation; member: one of them
group_offsets    a group's offsets: pending, committed, expiring
group_manager    all groups, kept in step with the log; loading: reading them back; records: their format
offset_api, zookeeper_offsets, group_administration, responses, validation    between wire and group
"""
