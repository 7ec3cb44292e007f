"""The table of bounds of what clients may use: the setting and the event of each.

An event of the log with the field `bound` counts (`shell/log.py`), whether or not its line is
written: so the metric penstock_bound_reached_total, `penstock doctor` and docs/reference/bounds.md
speak of the same rows. A bound without a setting is one of the host.
"""

from typing import Final, NamedTuple

CONNECTIONS: Final = "connections"
CONNECTIONS_OF_ADDRESS: Final = "connections-of-address"
OPEN_FILES: Final = "open-files"
CONNECTION_RATE: Final = "connection-rate"
HANDSHAKES: Final = "handshakes-of-address"
LOGINS_WAITING: Final = "logins-waiting"
STILL: Final = "request-without-progress"
SLOW: Final = "request-rate"
REQUEST_BYTES: Final = "request-bytes"
LOGIN_BYTES: Final = "login-request-bytes"
PLAIN_REQUEST_BYTES: Final = "plain-request-bytes"
ELEMENTS: Final = "request-elements"
RECEIVE_MEMORY: Final = "receive-memory"
FETCH_SESSIONS: Final = "fetch-sessions"
PARTITIONS: Final = "partitions"
AUTO_CREATED: Final = "auto-created-topics"
GROUPS: Final = "groups"
GROUP_BYTES: Final = "group-bytes"
TRANSACTIONAL_IDS: Final = "transactional-ids"
GROUP_MEMBERS: Final = "group-members"
CONSUMER_MEMBERS: Final = "consumer-group-members"
REGEX: Final = "group-regex-steps"
OFFSET_METADATA: Final = "offset-metadata"
CONTROL_REQUESTS: Final = "control-requests"
SEGMENT_FILES: Final = "segment-files"
PRODUCER_IDS: Final = "producer-ids"
PENDING_MEMBERS: Final = "group-pending-members"
TRANSACTION_BYTES: Final = "transaction-bytes"
WATCHES: Final = "fetch-watches"
BATCH_BYTES: Final = "batch-bytes"
CALLERS: Final = "callers"
QUOTA_CLIENTS: Final = "quota-clients"
METRICS_CONNECTIONS: Final = "metrics-connections"
AUDIT_ENTRIES: Final = "audit-entries"
AUDIT_FILES: Final = "audit-files"
CLIENT_METRICS: Final = "client-metrics-instances"


class Bound(NamedTuple):
    """name: in the metric and the event. what: is bounded, of which place. setting: that moves it;
    of_host: the host's limit, where no setting does. event: of the log. effect: what its client
    meets. remedy: for an operator who wants more."""

    name: str
    what: str
    setting: str
    event: str
    effect: str
    remedy: str
    of_host: str = ""


BOUNDS: Final = (
    Bound(CONNECTIONS, "Connections of all network processes.", "max.connections", "connection-refused", "The new connection is closed.", "See who holds them (penstock client list), then raise it."),
    Bound(CONNECTIONS_OF_ADDRESS, "Connections of one address, in all network processes.", "max.connections.per.ip", "connection-refused", "The new connection is closed.", "See whether that client leaks connections; raise it for all, or for the address in max.connections.per.ip.overrides."),
    Bound(OPEN_FILES, "Connections for which one network process has descriptors; of one address three quarters of them.", "", "connection-refused", "The new connection is closed.", "Raise the limit of open files, LimitNOFILE= of the unit; an address may have more by max.connections.per.ip.overrides.", of_host="RLIMIT_NOFILE"),
    Bound(CONNECTION_RATE, "New connections in a second, in one network process; of one address by its quota connection_creation_rate.", "max.connection.creation.rate", "connection-throttled", "It waits to be accepted; one beyond the quota of its address is closed after a pause.", "Let the client keep its connections, or raise the quota (penstock quota set --ip)."),
    Bound(HANDSHAKES, "TLS handshakes of one address that are under way, in one network process; at most an eighth of the connections that it may have.", "penstock.connection.handshakes.max.per.ip", "connection-refused", "The new connection is closed.", "Raise it if many clients share that address, behind a proxy or a NAT."),
    Bound(LOGINS_WAITING, "Passwords that wait to be hashed, and tokens to be verified, in one network process.", "penstock.logins.max.waiting", "logins-refused", "The login fails; clients try again.", "Let clients use SCRAM, which costs the broker less, or raise penstock.net.processes."),
    Bound(STILL, "Time without progress in the middle of a request, a response or a login.", "penstock.connection.no.progress.ms", "no-progress", "The connection is closed.", "Look at the network between; raise it for links that stall for longer."),
    Bound(SLOW, "Rate at which a request must arrive.", "penstock.connection.receive.min.bytes.per.second", "no-progress", "The connection is closed.", "Look at the network between; lower it for links that are slower."),
    Bound(REQUEST_BYTES, "Bytes of one request, and half of penstock.arena.bytes.", "socket.request.max.bytes", "refused-bytes", "The connection is closed.", "Lower max.request.size of the producer, or raise it."),
    Bound(LOGIN_BYTES, "Bytes of one request before the login.", "sasl.server.max.receive.size", "refused-bytes", "The connection is closed.", "A stranger, or a very long token: raise it for that."),
    Bound(PLAIN_REQUEST_BYTES, "Bytes of one request other than Produce.", "penstock.request.max.bytes", "refused-request", "The connection is closed.", "Ask in several requests, or raise it."),
    Bound(ELEMENTS, "Elements of arrays in one request.", "penstock.request.max.elements", "refused-request", "The connection is closed.", "Ask in several requests, or raise it."),
    Bound(RECEIVE_MEMORY, "Memory for requests that arrive, of one network process.", "penstock.arena.bytes", "receive-memory-short", "Requests wait unread, in order; nothing is refused.", "Raise it (and /dev/shm), or penstock.net.processes."),
    Bound(FETCH_SESSIONS, "Incremental fetch sessions, shared by the network processes.", "max.incremental.fetch.session.cache.slots", "bound-reached", "The consumer is served without a session: it names all its partitions in each Fetch.", "Raise it where more consumers and followers than that read."),
    Bound(PARTITIONS, "Partitions; in a cluster, replicas on this node.", "penstock.partitions.max", "partition-table-full", "A topic is not created, or a replica is not served.", "Raise it and restart, or delete topics."),
    Bound(AUTO_CREATED, "Topics that one client has created in a minute by naming them.", "penstock.topic.auto.create.max.per.minute", "topic-not-created", "UNKNOWN_TOPIC_OR_PARTITION, on which clients ask again.", "Create the topics beforehand, or raise it."),
    Bound(GROUPS, "Groups that this node coordinates, shared by its I/O processes.", "penstock.groups.max", "bound-reached", "GROUP_MAX_SIZE_REACHED for a new group; TRANSACTION_ABORTABLE where a transaction would make one.", "See who makes them (penstock group list), delete them or shorten offsets.retention.minutes; else raise it."),
    Bound(GROUP_BYTES, "Memory for names of groups and for what their members say (protocols, assignments, subscriptions), shared by the I/O processes.", "penstock.group.metadata.max.bytes", "bound-reached", "GROUP_MAX_SIZE_REACHED for a member that joins or assigns, and for a new group.", "See whose members subscribe to so much (penstock group list), or raise it."),
    Bound(TRANSACTIONAL_IDS, "Transactional ids that this node coordinates, shared by its I/O processes.", "penstock.transactional.ids.max", "bound-reached", "POLICY_VIOLATION for a new one: the producer does not start.", "Let producers keep their ids over restarts, or shorten transactional.id.expiration.ms; else raise it."),
    Bound(GROUP_MEMBERS, "Members of one classic group.", "group.max.size", "bound-reached", "GROUP_MAX_SIZE_REACHED.", "See whether the group needs more members than its topics have partitions, or raise it."),
    Bound(CONSUMER_MEMBERS, "Members of one group of the consumer protocol (KIP-848).", "group.consumer.max.size", "bound-reached", "GROUP_MAX_SIZE_REACHED.", "See whether the group needs more members than its topics have partitions, or raise it."),
    Bound(REGEX, "Work of one regular expression of a group (KIP-848): its program times the letters of all topic names.", "penstock.group.regex.max.steps", "bound-reached", "INVALID_REGULAR_EXPRESSION.", "Let the consumer use a simpler expression or name its topics, or raise it."),
    Bound(OFFSET_METADATA, "Metadata of one committed offset, in characters.", "offset.metadata.max.bytes", "bound-reached", "OFFSET_METADATA_TOO_LARGE for that partition; the others are committed.", "Let the consumer keep its state elsewhere, or raise it."),
    Bound(CONTROL_REQUESTS, "Administrative requests of one network process that are not answered yet.", "penstock.control.max.requests", "bound-reached", "It waits for one of those to be answered; nothing is refused.", "See who asks so much (penstock client list); raise it where clients ask at once and seldom."),
    Bound(SEGMENT_FILES, "Segment files for which one network process has descriptors: a quarter of those that it may open.", "", "segment-unreadable", "KAFKA_STORAGE_ERROR for the partition, upon which consumers ask again.", "Raise the limit of open files, LimitNOFILE= of the unit.", of_host="RLIMIT_NOFILE"),
    Bound(PRODUCER_IDS, "Producers (idempotent ones, which most are) that all partitions of this node remember, so that a batch sent twice is stored once; shared by the I/O processes.", "penstock.producer.ids.max", "bound-reached", "Producers that are silent for a quarter of an hour are forgotten; without any, POLICY_VIOLATION for the batch of one that is not known.", "See who makes them (penstock client list); let producers live longer, or shorten producer.id.expiration.ms; else raise it: each takes some 0.4 to 1 KB."),
    Bound(PENDING_MEMBERS, "Members of one classic group that have been given an id (KIP-394) and have not joined with it yet.", "penstock.group.pending.members.max", "bound-reached", "COORDINATOR_LOAD_IN_PROGRESS, on which consumers ask again.", "See which client asks for ids and does not join (penstock client list), or raise it."),
    Bound(TRANSACTION_BYTES, "Memory for transactional ids and the partitions of their transactions, shared by the I/O processes.", "penstock.transaction.metadata.max.bytes", "bound-reached", "POLICY_VIOLATION for a new id, TRANSACTION_ABORTABLE where partitions are added.", "See whose transactions have so many partitions (penstock txn list), or raise it."),
    Bound(WATCHES, "Fetches of more than 64 partitions that wait, of one network process at one I/O process; each is looked at whenever something grows.", "penstock.fetch.watches.max", "bound-reached", "None: such a fetch waits at each of its partitions instead, which takes more processor time.", "See who reads so many partitions (penstock client list), or raise it."),
    Bound(BATCH_BYTES, "Bytes of one produced batch, as it comes; of one topic by its max.message.bytes.", "message.max.bytes", "bound-reached", "MESSAGE_TOO_LARGE for that batch; producers cut it and send the parts.", "Lower batch.size and max.request.size of the producer, or raise it (penstock topic config set)."),
    Bound(CALLERS, "Memory for callers (principal, client id, address, listener) that one I/O process, or control, knows: their encodings, a fifth of what they take.", "penstock.callers.max.bytes", "bound-reached", "None: what is known is forgotten and decoded anew, which takes processor time.", "See whether a client makes a new client id for each connection (penstock client list), or raise it."),
    Bound(QUOTA_CLIENTS, "Clients that are counted against quotas, in one network process.", "penstock.quota.clients.max", "bound-reached", "The client that was silent longest is counted anew: it may use its quota once more.", "See whether a client makes a new client id for each connection (penstock client list), or raise it."),
    Bound(METRICS_CONNECTIONS, "Connections to the server for metrics.", "penstock.metrics.connections.max", "bound-reached", "The oldest without a whole request is closed; where there is none, the new one waits.", "See who connects to it and asks nothing, or raise it."),
    Bound(AUDIT_ENTRIES, "Audit entries of one kind in a second, of one process: so many logins, twice as many changes, a third of denials and of failed logins.", "penstock.audit.entries.max.per.second", "bound-reached", "None: the audit file says how many entries were left out.", "See who fails to log in or is denied so often (penstock audit); where it was lowered, raise it (100 at most)."),
    Bound(AUDIT_FILES, "Audit files that are kept, each of penstock.audit.file.max.bytes.", "penstock.audit.files", "bound-reached", "None: the oldest entries are deleted.", "Copy audit files to another host in time, see who causes so many entries (penstock audit), or raise it."),
    Bound(CLIENT_METRICS, "Client instances whose pushed metrics (KIP-714) are kept, in one network process.", "penstock.client.metrics.instances.max", "bound-reached", "None: the metrics of the instance that was silent longest are not shown.", "Let subscriptions match fewer clients (penstock client metrics), or raise it: each takes up to 64 KB."),
)  # fmt: skip
"""Append only: a process counts by the place in this table (`ring/bound_table.py`)."""

PLACES: Final = {one.name: number for number, one in enumerate(BOUNDS)}


def setting_of(bound: str) -> str:
    """The name of the setting that moves a bound."""
    return BOUNDS[PLACES[bound]].setting
