"""Which test drives each bound of `appliance/config/bounds.py` to its ceiling, and looks at the
error, the event, the count, and at everybody else."""

from typing import Final

from appliance.config import bounds

_NETPROC: Final = "netproc/test_bounds_reached.py"
_BOUNDED: Final = "coordinators/groups/test_groups_bounded.py"
_AUDITING: Final = "control/test_auditing.py"
_ROOM: Final = "ioproc/test_producer_room.py"
DRIVEN: Final = {
    bounds.CONNECTIONS: f"{_NETPROC}::test_connections_beyond_a_bound_are_closed",
    bounds.CONNECTIONS_OF_ADDRESS: f"{_NETPROC}::test_connections_beyond_a_bound_are_closed",
    bounds.OPEN_FILES: f"{_NETPROC}::test_connections_beyond_a_bound_are_closed",
    bounds.CONNECTION_RATE: f"{_NETPROC}::test_connections_that_come_too_fast_wait",
    bounds.HANDSHAKES: f"{_NETPROC}::test_handshakes_beyond_the_bound_of_an_address_are_closed",
    bounds.LOGINS_WAITING: f"{_NETPROC}::test_logins_beyond_those_that_may_wait_fail",
    bounds.STILL: f"{_NETPROC}::test_requests_that_do_not_arrive_are_closed",
    bounds.SLOW: f"{_NETPROC}::test_requests_that_do_not_arrive_are_closed",
    bounds.REQUEST_BYTES: f"{_NETPROC}::test_requests_that_are_too_large_close_their_connection",
    bounds.LOGIN_BYTES: f"{_NETPROC}::test_requests_before_a_login_are_bounded",
    bounds.PLAIN_REQUEST_BYTES: (
        f"{_NETPROC}::test_requests_that_are_too_large_close_their_connection"
    ),
    bounds.ELEMENTS: f"{_NETPROC}::test_requests_that_are_too_large_close_their_connection",
    bounds.RECEIVE_MEMORY: f"{_NETPROC}::test_requests_wait_for_memory",
    bounds.FETCH_SESSIONS: f"{_NETPROC}::test_a_fetch_without_a_session_is_served",
    bounds.PARTITIONS: f"{_NETPROC}::test_topics_beyond_the_partitions_are_refused",
    bounds.AUTO_CREATED: f"{_NETPROC}::test_topics_that_a_client_names_are_bounded",
    bounds.GROUPS: f"{_BOUNDED}::test_groups_beyond_the_bound_are_refused_and_others_served",
    bounds.GROUP_BYTES: (
        f"{_BOUNDED}::test_what_members_say_beyond_the_bound_is_refused_and_others_served"
    ),
    bounds.GROUP_MEMBERS: f"{_BOUNDED}::test_members_beyond_the_size_of_a_group_are_refused",
    bounds.CONSUMER_MEMBERS: f"{_BOUNDED}::test_members_beyond_the_size_of_a_group_are_refused",
    bounds.REGEX: f"{_BOUNDED}::test_an_expression_that_takes_too_much_work_is_refused",
    bounds.OFFSET_METADATA: f"{_BOUNDED}::test_metadata_of_an_offset_beyond_the_bound_is_refused",
    bounds.CONTROL_REQUESTS: f"{_NETPROC}::test_requests_for_control_wait_for_one_another",
    bounds.SEGMENT_FILES: (
        "netproc/test_fetched_files.py"
        "::test_without_descriptors_a_segment_is_a_storage_error_and_others_are_served"
    ),
    bounds.PRODUCER_IDS: f"{_ROOM}::test_producers_beyond_the_bound_are_refused_and_others_served",
    bounds.BATCH_BYTES: f"{_ROOM}::test_a_batch_that_is_too_large_is_told",
    bounds.CALLERS: (
        "authorization/test_known_callers.py"
        "::test_callers_beyond_the_bound_are_forgotten_and_served"
    ),
    bounds.QUOTA_CLIENTS: (
        "quotas/test_quota_meters.py"
        "::test_clients_beyond_the_bound_take_the_place_of_the_most_silent"
    ),
    bounds.METRICS_CONNECTIONS: (
        "exporter/test_serving.py::test_idle_connections_keep_no_probe_waiting"
    ),
    bounds.AUDIT_ENTRIES: f"{_AUDITING}::test_a_flood_of_failures_is_bounded_and_counted",
    bounds.AUDIT_FILES: f"{_AUDITING}::test_files_are_bounded_in_size_and_number_and_followed",
    bounds.CLIENT_METRICS: (
        "handlers/test_client_metrics.py"
        "::test_instances_beyond_the_bound_take_the_place_of_the_most_silent"
    ),
    bounds.WATCHES: "ioproc/test_watches.py::test_a_watch_too_many_is_told_and_waits_otherwise",
    bounds.PENDING_MEMBERS: (
        f"{_BOUNDED}::test_members_that_ask_for_ids_and_do_not_join_are_bounded"
    ),
    bounds.TRANSACTION_BYTES: (
        f"{_BOUNDED}::test_partitions_of_transactions_beyond_the_bound_are_refused_and_others_served"
    ),
    bounds.TRANSACTIONAL_IDS: (
        f"{_BOUNDED}::test_transactional_ids_beyond_the_bound_are_refused_and_others_served"
    ),
}
