"""The broker's settings: Kafka's names, types and defaults, and Penstock's own (penstock.*).

A default that differs from Kafka's says so in its text. A setting that is accepted so that a Kafka user's
server.properties loads, and has no effect here, says why (`inert`).
"""

from typing import Final

from appliance.config.accepted_settings import ACCEPTED
from appliance.config.group_settings import GROUPS
from appliance.config.invitations import INVITED, PATTERN
from appliance.config.quota_settings import QUOTAS
from appliance.config.security_settings import SECURITY
from appliance.config.setting import (
    BOOLEAN,
    CLASS,
    CLUSTER_WIDE,
    DOUBLE,
    INT,
    INT_MAX,
    LIST,
    LONG,
    LONG_MAX,
    PASSWORD,
    PER_BROKER,
    SHORT,
    STRING,
    Setting,
)
from appliance.config.topic_settings import BROKER_TOPIC_DEFAULTS

_PROCESSES: Final = "processes are counted by penstock.net.processes and penstock.io.processes"
_NO_GROUPS: Final = "share groups are not served yet"
_CLEANERS: Final = "each I/O process compacts one log at a time"
_NO_JVM: Final = "there is no JVM here"

_IDENTITY = (
    Setting("node.id", INT, 1, "The id of this node in the cluster.", low=0),
    Setting("broker.id", INT, -1, "The old name of node.id.", low=-1, inert="set node.id"),
    Setting("broker.rack", STRING, None, "The rack of this node; replicas are spread over racks, and consumers may prefer a replica of their own."),
    Setting("process.roles", LIST, ("broker", "controller"), "What this node is: broker (partitions, clients), controller (votes for and may lead the metadata log), or both.", choices=("broker", "controller")),
    Setting("controller.listener.names", LIST, ("CONTROLLER",), "Listeners of the controller for other nodes of the cluster; they serve only requests between nodes."),
    Setting("controller.quorum.voters", LIST, (), "The controllers of a static quorum: ID@HOST:PORT of each node's controller listener; none, or this node alone: a cluster of one."),
    Setting("controller.quorum.bootstrap.servers", LIST, (), "Addresses where a new node finds the quorum: HOST:PORT of some controller listeners."),
    Setting("controller.quorum.election.timeout.ms", INT, 1000, "Shortest time before another election, in ms; the longest is twice as long.", low=1),
    Setting("controller.quorum.fetch.timeout.ms", INT, 2000, "A leader of the metadata quorum that answers no fetch for this time is replaced, in ms.", low=1),
    Setting("metadata.log.dir", STRING, None, "Directory of the metadata log.", inert="the metadata log is in the data folder"),
    Setting("metadata.log.segment.bytes", INT, 1 << 30, "Size of a segment of the metadata log, in bytes.", low=12),
    Setting("metadata.log.segment.ms", LONG, 604_800_000, "Age of a segment of the metadata log, in ms.", low=1),
    Setting("metadata.log.max.record.bytes.between.snapshots", LONG, 20_971_520, "Bytes of metadata records after which a snapshot is written.", low=1),
    Setting("metadata.log.max.snapshot.interval.ms", LONG, 3_600_000, "Time after which a snapshot is written, in ms; 0 never.", low=0),
    Setting("metadata.max.retention.bytes", LONG, 104_857_600, "Size of metadata log and snapshots above which old ones are deleted.", low=-1),
    Setting("metadata.max.retention.ms", LONG, 604_800_000, "Age of metadata log and snapshots above which old ones are deleted.", low=-1),
    Setting("metadata.max.idle.interval.ms", INT, 500, "Interval between two no-op records of an idle controller.", low=0, inert="an idle appliance writes nothing"),
)  # fmt: skip

_NETWORK = (
    Setting("listeners", LIST, ("PLAINTEXT://localhost:9092",), "Addresses of the listeners: NAME://HOST:PORT; port 0 takes a free port. Loopback only by default; Kafka listens on every interface.", mode=PER_BROKER),
    Setting("penstock.listeners.without.authentication", STRING, "refuse", "Whether a listener may be open that other hosts reach without authentication (PLAINTEXT, or SSL without ssl.client.auth=required): refuse, the appliance does not start; allow.", choices=("refuse", "allow"), mode=PER_BROKER),
    Setting("advertised.listeners", LIST, (), "Addresses that clients get in metadata instead of the address they connected to; needed behind address translation only."),
    Setting("listener.security.protocol.map", LIST, ("PLAINTEXT:PLAINTEXT", "SSL:SSL", "SASL_PLAINTEXT:SASL_PLAINTEXT", "SASL_SSL:SASL_SSL"), "The security protocol of each listener name. While the appliance runs it changes for names of listeners that are not open.", mode=PER_BROKER),
    Setting("inter.broker.listener.name", STRING, None, "The listener for connections between brokers. Not set: the first one that each broker has registered."),
    Setting("num.network.threads", INT, 3, "Network threads of Apache Kafka.", low=1, mode=CLUSTER_WIDE, inert=_PROCESSES),
    Setting("num.io.threads", INT, 8, "I/O threads of Apache Kafka.", low=1, mode=CLUSTER_WIDE, inert=_PROCESSES),
    Setting("background.threads", INT, 10, "Background threads of Apache Kafka.", low=1, mode=CLUSTER_WIDE, inert=_PROCESSES),
    Setting("queued.max.requests", INT, 500, "Requests that may be queued before reading stops.", low=1, inert="the rings are the queue"),
    Setting("socket.request.max.bytes", INT, 104_857_600, "Largest request, in bytes.", low=1),
    Setting("socket.send.buffer.bytes", INT, -1, "SO_SNDBUF in bytes; -1: 196608 to clients of the same host, else the kernel tunes it (Kafka: 102400).", low=-1),
    Setting("socket.receive.buffer.bytes", INT, -1, "SO_RCVBUF in bytes; -1 lets the kernel tune it (Kafka: 102400).", low=-1),
    Setting("socket.listen.backlog.size", INT, 1024, "Connections that may wait to be accepted (Kafka: 50).", low=1),
    Setting("connections.max.idle.ms", LONG, 600_000, "An idle connection is closed after this time, in ms.", low=1),
    Setting("max.connections", INT, INT_MAX, "Connections in all.", low=0, mode=CLUSTER_WIDE),
    Setting("max.connections.per.ip", INT, INT_MAX, "Connections of one address.", low=0, mode=CLUSTER_WIDE),
    Setting("max.connections.per.ip.overrides", LIST, (), "Other limits for some addresses: ADDRESS:NUMBER.", mode=CLUSTER_WIDE),
    Setting("max.connection.creation.rate", INT, INT_MAX, "New connections per second; faster ones are throttled.", low=0, mode=CLUSTER_WIDE),
    Setting("request.timeout.ms", INT, 30_000, "Time limit of a request, in ms.", low=1),
    Setting("fetch.max.bytes", INT, 57_671_680, "Largest answer to a fetch, in bytes.", low=1024),
    Setting("max.incremental.fetch.session.cache.slots", INT, 1000, "Maximum number of fetch sessions.", low=0),
    Setting("max.request.partition.size.limit", INT, 2000, "Partitions in one page of DescribeTopicPartitions.", low=1),
)  # fmt: skip

_LOG = (
    Setting("log.dir", STRING, None, "The data folder; log.dirs wins."),
    Setting("log.dirs", LIST, (), "The log directories: the first one holds the metadata; a new partition goes to the one with the fewest."),
    Setting("num.partitions", INT, 1, "Default number of partitions of a new topic.", low=1),
    Setting("default.replication.factor", INT, 1, "Default replication factor of a new topic. A dynamic setting of all nodes (Kafka: in the file only).", low=1, mode=CLUSTER_WIDE),
    Setting("auto.create.topics.enable", BOOLEAN, True, "Whether a client's request for an unknown topic creates it."),
    Setting("delete.topic.enable", BOOLEAN, True, "Whether topics may be deleted."),
    Setting("log.retention.check.interval.ms", LONG, 300_000, "Interval between two retention checks, in ms.", low=1),
    Setting("log.flush.scheduler.interval.ms", LONG, LONG_MAX, "Interval between two checks of flush.ms.", inert="each partition has its own deadline"),
    Setting("log.flush.offset.checkpoint.interval.ms", INT, 2000, "Interval between two checkpoints of recovery points, in ms (Kafka: 60000). It bounds the log recovery after an unclean shutdown.", low=0),
    Setting("log.flush.start.offset.checkpoint.interval.ms", INT, 60_000, "Interval between two checkpoints of log start offsets.", low=0, inert="they are written with each change"),
    Setting("replica.high.watermark.checkpoint.interval.ms", LONG, 5000, "Interval between two checkpoints of high watermarks, in ms.", low=1),
    Setting("replica.lag.time.max.ms", LONG, 30_000, "A replica that has not caught up for this time is removed from the ISR, in ms."),
    Setting("num.recovery.threads.per.data.dir", INT, 2, "Threads of recovery.", low=1, mode=CLUSTER_WIDE, inert=_PROCESSES),
    Setting("log.dir.failure.timeout.ms", LONG, 30_000, "Wait before a failed log dir ends the broker.", low=1, inert="a failed file takes its partition offline, not the appliance"),
    Setting("create.topic.policy.class.name", CLASS, None, "Class of the policy for new topics.", inert=_NO_JVM),
    Setting("alter.config.policy.class.name", CLASS, None, "Class of the policy for changed settings.", inert=_NO_JVM),
)  # fmt: skip

_CLEANER = (
    Setting("log.cleaner.enable", BOOLEAN, True, "Whether compacted topics are compacted."),
    Setting("log.cleaner.threads", INT, 1, "Number of logs that are compacted at the same time.", low=0, mode=CLUSTER_WIDE, inert=_CLEANERS),
    Setting("log.cleaner.dedupe.buffer.size", LONG, 134_217_728, "Memory for the keys of logs being compacted, in bytes.", mode=CLUSTER_WIDE),
    Setting("log.cleaner.io.buffer.size", INT, 524_288, "Memory for reading and writing while compacting, in bytes.", low=0, mode=CLUSTER_WIDE),
    Setting("log.cleaner.io.buffer.load.factor", DOUBLE, 0.9, "How full the memory for keys may get, 1 is full.", mode=CLUSTER_WIDE),
    Setting("log.cleaner.io.max.bytes.per.second", DOUBLE, 1.7976931348623157e308, "Limit of reading and writing while compacting, in bytes per second.", mode=CLUSTER_WIDE),
    Setting("log.cleaner.backoff.ms", LONG, 15_000, "Pause when there is nothing to compact, in ms.", low=0, mode=CLUSTER_WIDE),
)  # fmt: skip

_PRODUCERS = (
    Setting("producer.id.expiration.ms", INT, 86_400_000, "Time after which the state of an inactive producer is removed, in ms.", low=1, mode=CLUSTER_WIDE),
    Setting("transaction.max.timeout.ms", INT, 900_000, "Maximum transaction timeout that a producer may ask for, in ms.", low=1),
    Setting("transactional.id.expiration.ms", INT, 604_800_000, "Time after which an inactive transactional id is removed.", low=1),
    Setting("transaction.state.log.num.partitions", INT, 50, "Partitions of __transaction_state.", low=1),
    Setting("transaction.state.log.replication.factor", SHORT, 1, "Replicas of __transaction_state; not set: one for each voter, at most 3 (Kafka: 3).", low=1),
    Setting("transaction.state.log.min.isr", INT, 1, "In-sync replicas of __transaction_state; not set: one for each voter, at most 2 (Kafka: 2).", low=1),
    Setting("transaction.state.log.segment.bytes", INT, 104_857_600, "Segments of __transaction_state.", low=1),
)  # fmt: skip

_GROUPS = (
    Setting("group.initial.rebalance.delay.ms", INT, 0, "Delay of a new group's first rebalance for more members, in ms (Kafka: 3000).", low=0),
    Setting("group.min.session.timeout.ms", INT, 6000, "Shortest session timeout that a group member may ask for, in ms.", low=1),
    Setting("group.max.session.timeout.ms", INT, 1_800_000, "Longest session timeout that a group member may ask for, in ms.", low=1),
    Setting("group.max.size", INT, INT_MAX, "Maximum number of members of a group.", low=1),
    Setting("group.coordinator.rebalance.protocols", LIST, ("classic", "consumer"), "Group protocols.", choices=("classic", "consumer", "streams")),
    Setting("offsets.topic.num.partitions", INT, 50, "Partitions of __consumer_offsets.", low=1),
    Setting("offsets.topic.replication.factor", SHORT, 1, "Replicas of __consumer_offsets; not set: one for each voter, at most 3 (Kafka: 3).", low=1),
    Setting("offsets.topic.segment.bytes", INT, 104_857_600, "Segments of __consumer_offsets.", low=1),
    Setting("offsets.retention.minutes", INT, 10_080, "Time for which the offsets of an empty group are kept.", low=1),
    Setting("offset.metadata.max.bytes", INT, 4096, "Largest metadata of a committed offset.", low=0),
    Setting("share.coordinator.state.topic.replication.factor", SHORT, 1, "Replicas of __share_group_state (Kafka: 3).", low=1, inert=_NO_GROUPS),
    Setting("share.coordinator.state.topic.min.isr", SHORT, 1, "In-sync replicas of __share_group_state (Kafka: 2).", low=1, inert=_NO_GROUPS),
)  # fmt: skip

_OTHER = (
    Setting("metric.reporters", LIST, (), "Metric reporter classes.", mode=CLUSTER_WIDE, inert=_NO_JVM),
    Setting("metrics.num.samples", INT, 2, "Samples of metrics.", low=1, inert=_NO_JVM),
    Setting("metrics.sample.window.ms", LONG, 30_000, "Window of metrics.", low=1, inert=_NO_JVM),
)  # fmt: skip

_OWN = (
    Setting("penstock.net.processes", INT, 0, "Network processes; 0 is one for every two CPUs, at most 4.", low=0, high=64),
    Setting("penstock.io.processes", INT, 0, "I/O processes; 0 is one for every two CPUs, at most 4.", low=0, high=64),
    Setting("penstock.arena.bytes", LONG, 268_435_456, "Shared memory for requests of one network process, in bytes; taken only as it is used.", low=4_194_304),
    Setting("penstock.partitions.max", INT, 16_384, "Maximum number of partitions; in a cluster, of replicas on this node (a multiple of 2).", low=2, high=1_048_576),
    Setting("penstock.request.max.elements", INT, 32_768, "Elements of arrays that one request of a client may have (topics, partitions, groups, …; of other plain numbers four count as one): twice as many as there may be partitions by default. A request with more is refused, and its connection is closed.", low=1024, high=1_048_576),
    Setting("penstock.request.max.bytes", INT, 16_777_216, "Bytes of one request of a client other than Produce. A longer one is refused, and its connection is closed.", low=65_536),
    Setting("penstock.groups.max", INT, 20_000, "Groups that a node keeps, those with committed offsets alone included; a further one is refused with GROUP_MAX_SIZE_REACHED.", low=1),
    Setting("penstock.group.metadata.max.bytes", LONG, 134_217_728, "Memory for the names of all groups of a node and for what their members say: protocols, assignments, subscriptions. What is beyond is refused with GROUP_MAX_SIZE_REACHED.", low=65_536),
    Setting("penstock.group.regex.max.steps", LONG, 134_217_728, "Work of one regular expression of a consumer group: instructions of its program times letters of all topic names. So much takes some 150 ms at most.", low=1024),
    Setting("penstock.group.pending.members.max", INT, 5000, "Members of one classic group that have an id and have not joined yet; a further one is told COORDINATOR_LOAD_IN_PROGRESS, and asks again.", low=1),
    Setting("penstock.producer.ids.max", INT, 200_000, "Producers that all partitions of a node remember, each for producer.id.expiration.ms. Where there are more, those that are silent for 15 minutes are forgotten; a further new one is refused with POLICY_VIOLATION.", low=64),
    Setting("penstock.fetch.watches.max", INT, 256, "Fetches of more than 64 partitions that wait, of one network process at one I/O process; a further one waits at each of its partitions.", low=1, high=4096),
    Setting("penstock.transaction.metadata.max.bytes", LONG, 134_217_728, "Memory for the transactional ids of a node and for the partitions of their transactions. What is beyond is refused with POLICY_VIOLATION (an id) or TRANSACTION_ABORTABLE (partitions).", low=65_536),
    Setting("penstock.transactional.ids.max", INT, 50_000, "Transactional ids that a node keeps until transactional.id.expiration.ms; a further one is refused with POLICY_VIOLATION.", low=1),
    Setting("penstock.spin.us", INT, 50, "Time for which a busy process polls for work before it sleeps, in µs; 0: never.", low=0, high=1000),
    Setting("penstock.control.max.requests", INT, 64, "Administrative requests that one network process may have in flight; further ones wait.", low=1, high=1024),
    Setting("penstock.legacy.protocol", BOOLEAN, False, "Whether clients of Apache Kafka 0.8 to 0.10 are served: the versions of requests that Apache Kafka 4 gave up, with message formats 0 and 1 (docs/old-clients.md)."),
    Setting("penstock.connection.control.max.requests", INT, 8, "Administrative requests of one connection that may be in flight before reading pauses.", low=1, high=1024),
    Setting("penstock.connection.no.progress.ms", LONG, 30_000, "A connection without progress in the middle of a request or response is closed after this time, in ms.", low=100),
    Setting("penstock.connection.receive.min.bytes.per.second", INT, 1024, "Minimum rate at which a request must arrive; a connection below it for longer than penstock.connection.no.progress.ms is closed. While others wait for memory, a whole request must arrive within that time. 0: no minimum.", low=0),
    Setting("penstock.connection.handshakes.max.per.ip", INT, 1024, "TLS handshakes of one address that may be under way in one network process, each in some 45 KB; fewer where the limit of open files is low.", low=16),
    Setting("penstock.logins.max.waiting", INT, 1024, "Passwords that may wait to be hashed in one network process, and as many tokens to be verified; further logins fail.", low=1),
    Setting("penstock.connection.queued.max.bytes", INT, 4_194_304, "Responses that may wait for a slow client before reading its requests pauses, in bytes.", low=65_536),
    Setting("penstock.topic.trash.retention.ms", LONG, 3_600_000, "Time for which a deleted topic can be restored, in ms; less when the disk is nearly full; 0 deletes it at once.", low=0, mode=CLUSTER_WIDE),
    Setting("penstock.topic.auto.create.max.per.minute", INT, 500, "Topics that one client (a principal at an address) may have created in a minute by naming them, with auto.create.topics.enable. It hears UNKNOWN_TOPIC_OR_PARTITION, and asks again; CreateTopics has no such limit.", low=1, mode=CLUSTER_WIDE),
    Setting("penstock.topic.deleted.auto.create.delay.ms", LONG, 600_000, "Time for which consumers that still ask for a deleted topic do not create it again, in ms. Producers, connections made after the deletion and CreateTopics create it at once.", low=0, mode=CLUSTER_WIDE),
    Setting("penstock.log.format", STRING, "text", "Format of the event log: text (for people; logfmt for the journal), or json, one object per line.", choices=("text", "json")),
    Setting("penstock.audit.file.max.bytes", LONG, 16_777_216, "Size from which the audit file is put aside and a new one begun, in bytes.", low=65_536),
    Setting("penstock.audit.entries.max.per.second", INT, 100, "Audit entries of one kind in a second, of one process: so many logins, twice as many changes, a third of denials and of failed logins. The others are counted.", low=3, high=100),
    Setting("penstock.callers.max.bytes", LONG, 1_048_576, "Memory for encodings of callers that an I/O process or control knows, in bytes; the whole takes five times as much.", low=65_536),
    Setting("penstock.quota.clients.max", INT, 1024, "Clients that one network process counts against quotas, each in half a KB of shared memory.", low=16, high=16_384),
    Setting("penstock.metrics.connections.max", INT, 64, "Connections to the server for metrics at a time; the oldest without a whole request makes way for a new one.", low=4, high=1024),
    Setting("penstock.client.metrics.instances.max", INT, 256, "Client instances whose pushed metrics one network process keeps, each in up to 64 KB of shared memory.", low=16, high=4096),
    Setting("penstock.audit.files", INT, 8, "Number of audit files that are kept, the one that is written included.", low=1, high=1000),
    Setting("penstock.metrics.listener", STRING, None, "HOST:PORT of the HTTP server for /metrics, /livez and /readyz; port 0 takes a free port. At an address that other hosts reach it needs a password or certificates. Not set: no server."),
    Setting("penstock.metrics.security.protocol", STRING, "PLAINTEXT", "PLAINTEXT, or SSL: the server for metrics speaks TLS, with the key store, trust store and ssl.client.auth of listener.name.metrics.ssl.*, else ssl.*.", choices=("PLAINTEXT", "SSL")),
    Setting("penstock.metrics.basic.auth.user.info", PASSWORD, None, "NAME:PASSWORD of HTTP's basic authentication, without which the server for metrics answers 401. Not set: no password."),
    Setting("penstock.metrics.partitions.max", INT, 2000, "Number of partitions with metrics of their own; above it, metrics are sums over a topic's partitions.", low=0),
    Setting("penstock.metrics.topics.max", INT, 2000, "Number of topics with metrics; above it, those with the most bytes.", low=0),
    Setting("penstock.otlp.endpoint", STRING, None, "Address to push the same metrics to by OpenTelemetry's protocol: http://HOST:PORT or https://HOST:PORT; the default path is /v1/metrics. Not set: the environment's OTEL_EXPORTER_OTLP_METRICS_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT, else none."),
    Setting("penstock.otlp.interval.ms", INT, 60_000, "Interval between two pushes, in ms.", low=1000),
    Setting("penstock.otlp.headers", PASSWORD, None, "Headers of these requests, a token for example: NAME=VALUE,… Not set: OTEL_EXPORTER_OTLP_HEADERS."),
    Setting("telemetry.max.bytes", INT, 1_048_576, "Largest push of a client's metrics, in bytes; values above 65536 count as 65536, the memory for each client.", low=1),
    Setting("penstock.join", STRING, "open", "Which nodes may join: open, any node that reaches the controllers, as in Apache Kafka; invited, known nodes and those with a token of penstock cluster invite. The first invitation sets it to invited; changed on a node's own host only.", choices=("open", INVITED), mode=CLUSTER_WIDE),
    Setting("penstock.invitations", LIST, (), "Nodes that may join, each once: NODE:SHA256-OF-ITS-TOKEN:MS-SINCE-1970. Written by penstock cluster invite; changed on a node's own host only.", mode=CLUSTER_WIDE, pattern=PATTERN),
    Setting("penstock.join.token", PASSWORD, None, "The token of the invitation by which this node joins; not used afterwards."),
    Setting("penstock.broker.silence.ms", INT, 2500, "A broker that neither sends heartbeats nor answers the controller for this time is fenced before its session times out, in ms; at least broker.heartbeat.interval.ms and half a second. With the value of broker.session.timeout.ms only heartbeats count, as in Apache Kafka.", low=1),
    Setting("penstock.remote.storage.url", STRING, None, "Where tiered segments lie: file:///FOLDER, or s3://BUCKET/PREFIX with the credentials of the environment (AWS_ACCESS_KEY_ID and the others) or of the host's role."),
    Setting("penstock.disk.free.min.bytes", LONG, 67_108_864, "Produce is refused (retriable) while less than this is free on the disk, in bytes.", low=0, mode=CLUSTER_WIDE),
)  # fmt: skip

BROKER: Final[dict[str, Setting]] = {
    setting.name: setting
    for setting in (
        *_IDENTITY, *_NETWORK, *_LOG, *BROKER_TOPIC_DEFAULTS.values(), *_CLEANER, *_PRODUCERS, *_GROUPS,
        *GROUPS, *QUOTAS, *SECURITY, *_OTHER, *ACCEPTED, *_OWN,
    )
}  # fmt: skip
"""By name."""

_UNITS: Final = {
    "log.retention.minutes": Setting("log.retention.minutes", INT, None, "log.retention.ms in minutes."),
    "log.retention.hours": Setting("log.retention.hours", INT, 168, "log.retention.ms in hours."),
    "log.roll.hours": Setting("log.roll.hours", INT, 168, "log.roll.ms in hours.", low=1),
    "log.roll.jitter.hours": Setting("log.roll.jitter.hours", INT, 0, "log.roll.jitter.ms in hours.", low=0),
}  # fmt: skip
BROKER.update(_UNITS)

REMOVED: Final = {
    "inter.broker.protocol.version": "replaced by the feature metadata.version",
    "log.message.format.version": "only record format 2 is written",
    "log.message.downconversion.enable": "there is no down-conversion since Kafka 4.0",
    "log.message.timestamp.difference.max.ms": "use log.message.timestamp.before.max.ms and .after.max.ms",
    "offsets.commit.required.acks": "a commit always waits for all replicas",
    "control.plane.listener.name": "controllers have listeners of their own",
    "broker.id.generation.enable": "set node.id",
    "reserved.broker.max.id": "set node.id",
    "delegation.token.master.key": "use delegation.token.secret.key",
    "controlled.shutdown.max.retries": "a broker asks the controller until it may end",
    "controlled.shutdown.retry.backoff.ms": "a broker asks the controller until it may end",
    "leader.imbalance.per.broker.percentage": "leadership goes back to preferred replicas at any imbalance",
    "auto.include.jmx.reporter": "name reporters in metric.reporters",
    "eligible.leader.replicas.enable": "replaced by the feature eligible.leader.replicas.version",
    "zookeeper.": "there is no ZooKeeper since Kafka 4.0",
    "password.encoder.": "secrets are kept in files since Kafka 4.0",
}
"""Keys that Kafka 4.0 removed, with what came in their place. One that ends in a dot is a prefix."""
