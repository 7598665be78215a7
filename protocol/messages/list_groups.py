"""ListGroups (API key 16), versions 0-5, flexible from 3.

Lists the groups a broker coordinates.

v1   throttle_time_ms in the response
v2   the response goes out before the client is throttled (KIP-219)
v3   flexible
v4   filter by state, and the state of each group (KIP-518)
v5   filter by type, and the type of each group (KIP-848)
"""

from __future__ import annotations

from odradek.protocol.codec.schema import STRING, Request, Response, Struct, array, int16, int32, string


class ListGroupsRequest(Request, key=16, versions="0-5", flexible="3+"):
    states_filter: list[str] = array(STRING, "4+")
    types_filter: list[str] = array(STRING, "5+")


class ListedGroup(Struct):
    group_id: str = string("0+")
    protocol_type: str = string("0+")
    group_state: str = string("4+", ignorable=True)
    group_type: str = string("5+", ignorable=True)


class ListGroupsResponse(Response, key=16, versions="0-5", flexible="3+"):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    groups: list[ListedGroup] = array(ListedGroup, "0+")
