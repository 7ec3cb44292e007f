"""Settings of parts that are not served here, or not all: tiered storage, other nodes, Kafka's
inside. They are declared so that a Kafka user's server.properties loads and is checked.
"""

from typing import Final

from appliance.config.setting import (
    BOOLEAN,
    CLASS,
    CLUSTER_WIDE,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    PER_BROKER,
    STRING,
    Setting,
)

_NO_PLUGINS: Final = "tiered segments go to the store of penstock.remote.storage.url, and their records lie beside each log"
_NO_FOLLOWERS: Final = "tiered storage is for one node alone, which has no followers"
_NO_CALLBACK: Final = "quotas are decided by the appliance itself"
_BUCKET: Final = "limits of copying and replication hold from one fifth of a second to the next"
_EXACT: Final = "due work is done at once"
_NO_TWO_PHASES: Final = "two-phase commit (KIP-939) is not served"
SELECTORS: Final = (
    "org.apache.kafka.common.replica.LeaderSelector",
    "org.apache.kafka.common.replica.RackAwareReplicaSelector",
)
_KAFKAS: Final = "it concerns the inside of Apache Kafka"

_TIERED = (
    Setting("remote.log.storage.system.enable", BOOLEAN, False, "Whether segments may be tiered to remote storage."),
    Setting("remote.log.storage.manager.class.name", STRING, None, "Class of the remote storage manager.", inert=_NO_PLUGINS),
    Setting("remote.log.storage.manager.class.path", STRING, None, "Class path of the remote storage manager.", inert=_NO_PLUGINS),
    Setting("remote.log.storage.manager.impl.prefix", STRING, "rsm.config.", "Prefix of the remote storage manager's settings.", inert=_NO_PLUGINS),
    Setting("remote.log.metadata.manager.class.name", STRING, "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager", "Class of the remote log metadata manager.", inert=_NO_PLUGINS),
    Setting("remote.log.metadata.manager.class.path", STRING, None, "Class path of the remote log metadata manager.", inert=_NO_PLUGINS),
    Setting("remote.log.metadata.manager.impl.prefix", STRING, "rlmm.config.", "Prefix of the remote log metadata manager's settings.", inert=_NO_PLUGINS),
    Setting("remote.log.metadata.manager.listener.name", STRING, None, "Listener that the remote log metadata manager uses.", inert=_NO_PLUGINS),
    Setting("remote.log.metadata.custom.metadata.max.bytes", INT, 128, "Largest metadata of a tiered segment, in bytes.", low=0, inert=_NO_PLUGINS),
    Setting("remote.log.index.file.cache.total.size.bytes", LONG, 1 << 30, "Size of the cache on the disk of what was fetched from the remote store, indexes and pieces of segments, in bytes; the I/O processes share it.", low=1, mode=CLUSTER_WIDE),
    Setting("remote.log.manager.task.interval.ms", LONG, 30000, "Interval between two runs of tiering, in ms.", low=1),
    Setting("remote.log.manager.thread.pool.size", INT, 2, "Threads of tiering.", low=1, inert=_NO_FOLLOWERS),
    Setting("remote.log.manager.copier.thread.pool.size", INT, 10, "Threads that copy segments.", low=1, mode=CLUSTER_WIDE),
    Setting("remote.log.manager.expiration.thread.pool.size", INT, 10, "Threads that expire tiered segments.", low=1, mode=CLUSTER_WIDE, inert="the threads that copy segments delete them, too"),
    Setting("remote.log.manager.follower.thread.pool.size", INT, 2, "Threads that follow tiered segments.", low=1, mode=CLUSTER_WIDE, inert=_NO_FOLLOWERS),
    Setting("remote.log.manager.copy.max.bytes.per.second", LONG, LONG_MAX, "Limit of copying, in bytes per second.", low=1, mode=CLUSTER_WIDE),
    Setting("remote.log.manager.copy.quota.window.num", INT, 11, "Windows in which copying is measured.", low=1, inert=_BUCKET),
    Setting("remote.log.manager.copy.quota.window.size.seconds", INT, 1, "Length of a window in which copying is measured, in s.", low=1, inert=_BUCKET),
    Setting("remote.log.manager.fetch.max.bytes.per.second", LONG, LONG_MAX, "Limit of remote reads, in bytes per second.", low=1, mode=CLUSTER_WIDE),
    Setting("remote.log.manager.fetch.quota.window.num", INT, 11, "Windows in which remote reads are measured.", low=1, inert=_BUCKET),
    Setting("remote.log.manager.fetch.quota.window.size.seconds", INT, 1, "Length of a window in which remote reads are measured, in s.", low=1, inert=_BUCKET),
    Setting("remote.log.reader.threads", INT, 10, "Threads of remote reads.", low=1, mode=CLUSTER_WIDE),
    Setting("remote.log.reader.max.pending.tasks", INT, 100, "Remote reads that may wait.", low=1, inert="a read that waits for the store is parked, and takes no thread"),
    Setting("remote.fetch.max.wait.ms", INT, 500, "Longest wait for a remote read, in ms.", low=1, mode=CLUSTER_WIDE),
    Setting("remote.list.offsets.request.timeout.ms", LONG, 30000, "Longest wait for a remote offset, in ms.", low=1, mode=CLUSTER_WIDE),
    Setting("follower.fetch.last.tiered.offset.enable", BOOLEAN, False, "Whether a new follower begins after what is tiered.", mode=CLUSTER_WIDE, inert=_NO_FOLLOWERS),
)  # fmt: skip

_QUOTAS = (
    Setting("client.quota.callback.class", CLASS, None, "Class of the quota callback.", inert=_NO_CALLBACK),
    Setting("replication.quota.window.num", INT, 11, "Windows in which replication is measured.", low=1, inert=_BUCKET),
    Setting("replication.quota.window.size.seconds", INT, 1, "Length of a window in which replication is measured, in s.", low=1, inert=_BUCKET),
    Setting("alter.log.dirs.replication.quota.window.num", INT, 11, "Windows over which moves between log directories are measured.", low=1, inert=_BUCKET),
    Setting("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, "Length of a window over which moves between log directories are measured, in s.", low=1, inert=_BUCKET),
    Setting("leader.replication.throttled.rate", LONG, LONG_MAX, "Limit of the bytes per second that a node sends to out-of-sync replicas listed in leader.replication.throttled.replicas.", low=0, mode=CLUSTER_WIDE),
    Setting("follower.replication.throttled.rate", LONG, LONG_MAX, "Limit of the bytes per second that a node fetches for out-of-sync replicas listed in follower.replication.throttled.replicas.", low=0, mode=CLUSTER_WIDE),
    Setting("replica.alter.log.dirs.io.max.bytes.per.second", LONG, LONG_MAX, "Limit of moves between log directories of a node, in bytes per second, shared by its I/O processes.", low=0, mode=CLUSTER_WIDE),
)  # fmt: skip

_QUORUM = (
    Setting("controller.quorum.append.linger.ms", INT, 25, "Time for which the leader collects records into one append, in ms.", low=0, inert="records are synced as soon as the disk is free"),
    Setting("controller.quorum.auto.join.enable", BOOLEAN, False, "Whether a new controller joins the voters once it has caught up."),
    Setting("controller.quorum.election.backoff.max.ms", INT, 1000, "Longest wait before another election, in ms.", low=1),
    Setting("controller.quorum.fetch.max.bytes", INT, 1_048_576, "Largest read of the metadata log between controllers, in bytes; a larger batch is sent whole.", low=1),
    Setting("controller.quorum.fetch.snapshot.max.bytes", INT, 1_048_576, "Largest part of a snapshot between controllers, in bytes.", low=1, inert="parts are of a size of our own"),
    Setting("controller.quorum.request.timeout.ms", INT, 2000, "Time limit of a request to a controller, in ms.", low=1),
    Setting("controller.quorum.retry.backoff.ms", INT, 20, "Wait before a request to a controller is retried, in ms.", low=0),
    Setting("controller.socket.timeout.ms", INT, 30000, "Time limit of the connection to the controller, in ms.", inert="each request to the controller has its own time limit"),
    Setting("replica.fetch.min.bytes", INT, 1, "Least bytes in an answer to a follower."),
    Setting("replica.fetch.wait.max.ms", INT, 500, "Longest wait of a follower's fetch, in ms."),
    Setting("replica.fetch.max.bytes", INT, 1_048_576, "Bytes of one partition in an answer to a follower.", low=0),
    Setting("replica.fetch.response.max.bytes", INT, 10485760, "Largest answer to a follower, in bytes.", low=0),
    Setting("replica.fetch.backoff.ms", INT, 1000, "Wait of a follower after a failed fetch, in ms.", low=0),
    Setting("replica.socket.timeout.ms", INT, 30000, "Time limit of a follower's request to its leader, in ms."),
    Setting("replica.socket.receive.buffer.bytes", INT, 65536, "SO_RCVBUF of a follower, in bytes.", inert="the kernel tunes it"),
    Setting("num.replica.fetchers", INT, 1, "Fetchers for each leader.", low=1, mode=CLUSTER_WIDE, inert="each I/O process has one connection to each leader"),
    Setting("auto.leader.rebalance.enable", BOOLEAN, True, "Whether preferred leaders are elected automatically."),
    Setting("leader.imbalance.check.interval.seconds", LONG, 300, "Interval between two checks of the balance of leaders, in s.", low=1),
    Setting("controlled.shutdown.enable", BOOLEAN, True, "Whether a broker hands over its leaderships before it shuts down.", inert="a clean shutdown always hands over"),
    Setting("broker.heartbeat.interval.ms", INT, 2000, "Interval between two heartbeats of a broker to the controller, in ms.", low=1),
    Setting("broker.session.timeout.ms", INT, 9000, "A broker without a heartbeat for this time is fenced, in ms.", low=1),
    Setting("initial.broker.registration.timeout.ms", INT, 60000, "Time after which a broker ends that is refused because another living one has its node.id, in ms. For a controller it waits without a limit, and so it does when refused for another reason (Kafka: it ends).", low=1),
    Setting("replica.selector.class", STRING, None, "Class that selects the replica a consumer reads from: the leader (default), or a replica in the consumer's rack (client.rack).", choices=SELECTORS),
    Setting("socket.connection.setup.timeout.ms", LONG, 10000, "Wait for a connection to another node, in ms.", inert="other nodes are given 3 s"),
    Setting("socket.connection.setup.timeout.max.ms", LONG, 30000, "Longest wait for a connection to another node, in ms.", inert="other nodes are given 3 s"),
)  # fmt: skip

_TRANSACTIONS = (
    Setting("transaction.state.log.load.buffer.size", INT, 5_242_880, "Bytes read at once when transactions are loaded.", low=1, inert="transactions are loaded in slices of our own size"),
    Setting("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10000, "Interval between two checks for timed-out transactions, in ms.", low=1, inert=_EXACT),
    Setting("transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3_600_000, "Interval between two checks for expired transactional ids, in ms.", low=1, inert=_EXACT),
    Setting("transaction.partition.verification.enable", BOOLEAN, True, "Whether the broker verifies that a transactional batch belongs to an open transaction.", mode=CLUSTER_WIDE),
    Setting("transaction.two.phase.commit.enable", BOOLEAN, False, "Whether two-phase commit with an external coordinator is allowed.", inert=_NO_TWO_PHASES),
    Setting("add.partitions.to.txn.retry.backoff.ms", INT, 20, "Longest wait before a partition is added to a transaction again, in ms.", low=1),
    Setting("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, "Time for which a batch waits for the completion of its producer's previous transaction, in ms.", low=0),
)  # fmt: skip

_INNER = (
    Setting("queued.max.request.bytes", LONG, -1, "Bytes of requests queued before reading stops; -1 is no limit.", inert=_KAFKAS),
    Setting("fetch.purgatory.purge.interval.requests", INT, 1000, "Completed fetches after which the fetch purgatory is purged.", inert=_KAFKAS),
    Setting("producer.purgatory.purge.interval.requests", INT, 1000, "Completed produce requests after which the produce purgatory is purged.", inert=_KAFKAS),
    Setting("delete.records.purgatory.purge.interval.requests", INT, 1, "Completed DeleteRecords requests after which their purgatory is purged.", inert=_KAFKAS),
    Setting("share.fetch.purgatory.purge.interval.requests", INT, 1000, "Completed share fetches after which their purgatory is purged.", inert=_KAFKAS),
    Setting("early.start.listeners", LIST, None, "Listeners opened before the authorizer is ready.", inert=_KAFKAS),
    Setting("cordoned.log.dirs", LIST, (), "Log directories that get no new partitions; * names all. New partitions go to other nodes; a single node refuses them when all directories are named.", mode=PER_BROKER),
    Setting("num.replica.alter.log.dirs.threads", INT, None, "Threads that move replicas between folders.", inert=_KAFKAS),
    Setting("config.providers", LIST, (), "Providers of settings from other sources.", mode=CLUSTER_WIDE, inert=_KAFKAS),
    Setting("kafka.metrics.reporters", LIST, (), "Reporter classes of the old metrics.", inert=_KAFKAS),
    Setting("kafka.metrics.polling.interval.secs", INT, 10, "How often the old metrics are read, in s.", low=1, inert=_KAFKAS),
    Setting("metrics.recording.level", STRING, "INFO", "Which metrics are recorded.", inert=_KAFKAS),
)  # fmt: skip

ACCEPTED: Final = (*_TIERED, *_QUOTAS, *_QUORUM, *_TRANSACTIONS, *_INNER)
