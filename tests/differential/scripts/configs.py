"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

from tests.differential.registry import script

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def resource(kind, name, **values):
    return {"resource_type": kind, "resource_name": name, **values}


def describe(s, step, kind, name, *keys, synonyms=True, **values):
    one = resource(kind, name, configuration_keys=list(keys) or None)
    return s.ask(step, "DescribeConfigs", resources=[one], include_synonyms=synonyms, **values)


def alter(s, step, kind, name, **values):
    """Ask to replace all settings; dots written as underscores."""
    rows = [{"name": key.replace("_", "."), "value": value} for key, value in values.items()]
    return s.ask(step, "AlterConfigs", resources=[resource(kind, name, configs=rows)])


def change(s, step, kind, name, *changes, **values):
    """Ask for changes: (setting, operation, value)."""
    rows = [{"name": key, "config_operation": operation, "value": value}
            for key, operation, value in changes]  # fmt: skip
    return s.ask(step, "IncrementalAlterConfigs",
                 resources=[resource(kind, name, configs=rows)], **values)  # fmt: skip


def settled(s, kind, name, **wanted):
    """Wait until the settings are shown with these values (None: not set for this resource)."""
    own = 1 if kind == TOPIC else 2
    wanted = {key.replace("_", "."): value for key, value in wanted.items()}

    def seen(answer):
        shown = {one["name"]: one for one in answer["results"][0]["configs"]}
        return all(
            (shown[key]["config_source"] != own if value is None
             else shown[key]["value"] == value)
            for key, value in wanted.items() if key in shown or value is not None
        )  # fmt: skip

    one = resource(kind, name, configuration_keys=list(wanted))
    s.until(seen, "DescribeConfigs", resources=[one], include_synonyms=True)


@script("DescribeConfigs")
def describe_topic_configs(s):
    topic = s.topic(retention_ms="5000", cleanup_policy="compact,delete")
    describe(s, "all", TOPIC, topic)
    describe(s, "without synonyms", TOPIC, topic, synonyms=False)
    describe(s, "some", TOPIC, topic, "retention.ms", "no.such.setting")
    describe(s, "unknown topic", TOPIC, s.name("unknown"))
    describe(s, "invalid name", TOPIC, "not valid!")
    describe(s, "empty name", TOPIC, "")
    one = resource(TOPIC, topic, configuration_keys=["retention.ms"])
    s.ask("twice", resources=[one, one])
    s.ask("empty keys", resources=[resource(TOPIC, topic, configuration_keys=[])])
    s.ask("nothing", resources=[])


@script("DescribeConfigs")
def describe_broker_configs(s):
    describe(s, "all", BROKER, "1")
    describe(s, "default", BROKER, "")
    describe(s, "another", BROKER, "7")
    describe(s, "not a number", BROKER, "one")


@script("DescribeConfigs")
def describe_other_configs(s):
    describe(s, "group", GROUP, s.name("group"))
    describe(s, "empty group", GROUP, "")
    describe(s, "metrics", METRICS, s.name("subscription"))
    describe(s, "empty metrics", METRICS, "")
    describe(s, "logger of another", LOGGER, "7")
    describe(s, "logger, not a number", LOGGER, "one")
    describe(s, "unknown type", 99, "x")
    describe(s, "type 0", 0, "x")


@script("AlterConfigs")
def alter_topic_configs(s):
    """A resource that is named twice is left out: Kafka never answers that."""
    topic = s.topic(retention_ms="5000")
    alter(s, "set", TOPIC, topic, segment_bytes="1048576")
    settled(s, TOPIC, topic, segment_bytes="1048576", retention_ms=None)
    describe(s, "after", TOPIC, topic, "segment.bytes", "retention.ms")
    alter(s, "unknown setting", TOPIC, topic, no_such_setting="1")
    alter(s, "not a number", TOPIC, topic, retention_ms="soon")
    alter(s, "below its range", TOPIC, topic, retention_ms="-2")
    alter(s, "null", TOPIC, topic, retention_ms=None)
    alter(s, "unknown topic", TOPIC, s.name("unknown"), retention_ms="1000")
    alter(s, "empty name", TOPIC, "", retention_ms="1000")
    alter(s, "unknown type", 99, "x", retention_ms="1000")
    one = {"name": "retention.ms", "value": "1000"}
    s.ask("setting twice", resources=[resource(TOPIC, topic, configs=[one, one])])
    s.ask("validated only", validate_only=True, resources=[resource(TOPIC, topic, configs=[one])])
    s.ask("nothing", resources=[])
    alter(s, "none", TOPIC, topic)
    settled(s, TOPIC, topic, segment_bytes=None)


@script("AlterConfigs")
def alter_broker_configs(s):
    alter(s, "read-only", BROKER, "1", node_id="2")
    alter(s, "unknown setting", BROKER, "1", no_such_setting="x")
    alter(s, "another broker", BROKER, "7", log_retention_ms="1000")
    alter(s, "not a number", BROKER, "one", log_retention_ms="1000")
    alter(s, "logger", LOGGER, "1", root="INFO")


@script("IncrementalAlterConfigs")
def change_topic_configs(s):
    """An unknown operation is left out: Kafka's controller resigns because of it."""
    topic = s.topic(retention_ms="5000")

    def ask(step, *changes, name=topic, **values):
        change(s, step, TOPIC, name, *changes, **values)

    ask("set", ("segment.ms", SET, "60000"))
    ask("append", ("cleanup.policy", APPEND, "compact"))
    settled(s, TOPIC, topic, cleanup_policy="delete,compact", segment_ms="60000")
    describe(s, "after append", TOPIC, topic, "cleanup.policy", "segment.ms", "retention.ms")
    ask("append again", ("cleanup.policy", APPEND, "compact"))
    ask("subtract", ("cleanup.policy", SUBTRACT, "delete"))
    settled(s, TOPIC, topic, cleanup_policy="compact")
    describe(s, "after subtract", TOPIC, topic, "cleanup.policy")
    ask("subtract what is not there", ("cleanup.policy", SUBTRACT, "delete"))
    ask("delete", ("cleanup.policy", DELETE, None), ("retention.ms", DELETE, None))
    settled(s, TOPIC, topic, retention_ms=None, cleanup_policy=None)
    describe(s, "after delete", TOPIC, topic, "cleanup.policy", "retention.ms")
    ask("delete what is not set", ("retention.bytes", DELETE, None))
    ask("delete with a value", ("segment.ms", DELETE, "9"))
    ask("delete an unknown one", ("no.such.setting", DELETE, None))
    ask("unknown setting", ("no.such.setting", SET, "1"))
    ask("not a number", ("retention.ms", SET, "soon"))
    ask("below its range", ("retention.ms", SET, "-2"))
    ask("null", ("retention.ms", SET, None))
    ask("append to a number", ("retention.ms", APPEND, "1"))
    ask("append null", ("cleanup.policy", APPEND, None))
    ask("append a wrong one", ("cleanup.policy", APPEND, "shred"))
    ask("setting twice", ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    ask("good and bad", ("retention.ms", SET, "9000"), ("segment.bytes", SET, "nine"))
    ask("validated only", ("retention.ms", SET, "7000"), validate_only=True)
    ask("unknown topic", ("retention.ms", SET, "1"), name=s.name("unknown"))
    ask("empty name", ("retention.ms", SET, "1"), name="")
    ask("lags", ("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5"))
    ask("tiered", ("remote.storage.enable", SET, "true"))
    ask("empty list", ("cleanup.policy", SET, ""))
    ask("member twice", ("cleanup.policy", SET, "delete,delete"))
    row = {"name": "retention.ms", "config_operation": SET, "value": "1000"}
    s.ask("resource twice", resources=[resource(TOPIC, topic, configs=[row])] * 2)
    s.ask("nothing", resources=[])
    s.ask("no changes", resources=[resource(TOPIC, topic, configs=[])])


@script("IncrementalAlterConfigs")
def change_configs_of_no_effect(s):
    """What a tool that sets everything would send."""
    topic = s.topic()
    for name, value in (
        ("preallocate", "true"), ("compression.gzip.level", "3"), ("compression.lz4.level", "3"),
        ("compression.zstd.level", "5"), ("local.retention.ms", "1000"),
        ("local.retention.bytes", "1000"), ("leader.replication.throttled.replicas", "*"),
        ("follower.replication.throttled.replicas", "0:1"), ("remote.log.copy.disable", "true"),
        ("remote.log.delete.on.disable", "true"), ("unclean.leader.election.enable", "true"),
    ):  # fmt: skip
        change(s, name, TOPIC, topic, (name, SET, value))
    settled(s, TOPIC, topic, unclean_leader_election_enable="true")
    describe(s, "after", TOPIC, topic)


@script("IncrementalAlterConfigs")
def change_broker_configs(s):
    """Whatever is set for this broker is unset again at the end."""

    def ask(step, *changes, name="1", **values):
        change(s, step, BROKER, name, *changes, **values)

    ask("set", ("log.retention.ms", SET, "99000000"))
    settled(s, BROKER, "1", log_retention_ms="99000000")
    describe(s, "after set", BROKER, "1", "log.retention.ms")
    topic = s.topic()
    describe(s, "a topic's default", TOPIC, topic, "retention.ms")
    ask("default for all", ("log.retention.ms", SET, "98000000"), name="")
    s.until(lambda answer: answer["results"][0]["configs"], "DescribeConfigs",
            resources=[resource(BROKER, "", configuration_keys=["log.retention.ms"])])  # fmt: skip
    describe(s, "all set for all", BROKER, "", "log.retention.ms")
    describe(s, "synonyms of both", BROKER, "1", "log.retention.ms")
    describe(s, "a topic's synonyms", TOPIC, topic, "retention.ms")
    ask("unset", ("log.retention.ms", DELETE, None))
    ask("unset for all", ("log.retention.ms", DELETE, None), name="")
    settled(s, BROKER, "1", log_retention_ms=None)
    s.until(lambda answer: not answer["results"][0]["configs"], "DescribeConfigs",
            resources=[resource(BROKER, "", configuration_keys=["log.retention.ms"])])  # fmt: skip
    ask("read-only", ("node.id", SET, "2"))
    ask("read-only for all", ("node.id", SET, "2"), name="")
    ask("unknown setting", ("no.such.setting", SET, "x"))
    ask("not a number", ("log.retention.ms", SET, "soon"))
    ask("below its range", ("log.retention.ms", SET, "-9"))
    ask("no cleaners", ("log.cleaner.threads", SET, "0"))
    for key in ("log.cleaner.threads", "num.io.threads", "num.network.threads",
                "background.threads", "remote.log.reader.threads"):  # fmt: skip
        ask(f"too many: {key}", (key, SET, "99"))
    ask("too few: num.io.threads", ("num.io.threads", SET, "1"))
    ask("another broker", ("log.retention.ms", SET, "1000"), name="7")
    ask("no broker", ("log.retention.ms", SET, "1000"), name="one")
    ask("per broker for all", ("ssl.keystore.location", SET, "/x"), name="")
    ask("append", ("log.cleanup.policy", APPEND, "compact"), validate_only=True)
    ask("validated only", ("log.retention.ms", SET, "7000"), validate_only=True)
    s.call("AlterConfigs", resources=[resource(BROKER, "1")])
    settled(s, BROKER, "1", log_retention_ms=None)


@script("IncrementalAlterConfigs")
def change_broker_configs_of_no_effect(s):
    """Threads, security, Kerberos: Kafka takes them while it runs, and so does a tool that sets
    everything expect. All are unset again."""
    wanted = (
        ("log.cleaner.threads", "2"), ("num.io.threads", "9"), ("num.network.threads", "4"),
        ("num.replica.fetchers", "2"), ("background.threads", "11"),
        ("num.recovery.threads.per.data.dir", "3"), ("sasl.kerberos.service.name", "kafka"),
        ("sasl.kerberos.min.time.before.relogin", "60001"),
        ("sasl.kerberos.ticket.renew.jitter", "0.06"),
        ("sasl.kerberos.ticket.renew.window.factor", "0.81"),
        ("sasl.kerberos.kinit.cmd", "/usr/bin/kinit2"),
        ("sasl.login.refresh.buffer.seconds", "301"),
        ("sasl.enabled.mechanisms", "PLAIN"), ("sasl.jaas.config", "x.Y required;"),
        ("principal.builder.class", "x.Y"), ("ssl.client.auth", "requested"),
        ("ssl.protocol", "TLSv1.2"), ("ssl.enabled.protocols", "TLSv1.2"),
        ("ssl.cipher.suites", "x"), ("ssl.endpoint.identification.algorithm", ""),
        ("ssl.keystore.password", "secret"), ("ssl.key.password", "secret"),
        ("ssl.truststore.password", "secret"), ("ssl.keystore.type", "PKCS12"),
        ("message.max.bytes", "1048589"), ("compression.type", "zstd"),
        ("log.preallocate", "true"), ("metric.reporters", ""), ("max.connections", "1000"),
        ("transaction.partition.verification.enable", "false"),
        ("producer.id.expiration.ms", "86400001"), ("remote.log.manager.thread.pool.size", "3"),
        ("log.local.retention.ms", "1000"),
        ("unclean.leader.election.enable", "true"), ("min.insync.replicas", "2"),
        ("log.cleaner.backoff.ms", "15001"), ("max.connection.creation.rate", "1000"),
    )  # fmt: skip
    for where, name in (("this broker", "1"), ("all", "")):
        for key, value in wanted:
            if not name and key == "min.insync.replicas":
                continue  # Kafka would not take it back
            answer = change(s, f"{key} for {where}", BROKER, name, (key, SET, value))
            if answer["responses"][0]["error_code"] == "NONE":
                one = {"name": key, "config_operation": DELETE, "value": None}
                s.call("IncrementalAlterConfigs", resources=[resource(BROKER, name, configs=[one])])


@script("IncrementalAlterConfigs")
def change_sensitive_configs(s):
    """A secret is never shown, wherever it was set."""
    key = "listener.name.plaintext.ssl.keystore.password"
    change(s, "set", BROKER, "1", (key, SET, "secret"))
    change(s, "unset", BROKER, "1", (key, DELETE, None))
    describe(s, "never set", BROKER, "1", "ssl.keystore.password", "sasl.jaas.config",
             "ssl.truststore.certificates")  # fmt: skip


@script("IncrementalAlterConfigs")
def change_other_configs(s):
    group, metrics = s.name("group"), s.name("subscription")
    change(s, "group", GROUP, group, ("consumer.session.timeout.ms", SET, "50000"))
    s.until(lambda answer: any(one["value"] == "50000" for one in answer["results"][0]["configs"]),
            "DescribeConfigs", resources=[resource(GROUP, group)])  # fmt: skip
    describe(s, "group's", GROUP, group)
    change(s, "group, unknown", GROUP, group, ("no.such.setting", SET, "1"))
    change(s, "group, too small", GROUP, group, ("consumer.session.timeout.ms", SET, "1"))
    change(s, "group, not a number", GROUP, group, ("consumer.session.timeout.ms", SET, "soon"))
    change(s, "group, heartbeat above", GROUP, group,
           ("consumer.heartbeat.interval.ms", SET, "50000"))  # fmt: skip
    for value in ("x", "Latest", "by_duration:-PT1H", "by_duration:P1Y", "by_duration:PT"):
        change(s, f"group, begins {value}", GROUP, group, ("share.auto.offset.reset", SET, value))
    change(s, "empty group", GROUP, "", ("consumer.session.timeout.ms", SET, "50000"))
    change(s, "group, unset", GROUP, group, ("consumer.session.timeout.ms", DELETE, None))
    change(s, "metrics", METRICS, metrics, ("interval.ms", SET, "60000"),
           ("metrics", SET, "org.apache.kafka.producer."))  # fmt: skip
    s.until(
        lambda answer: any(one["value"] == "60000" for one in answer["results"][0]["configs"]),
        "DescribeConfigs",
        resources=[resource(METRICS, metrics)],
    )
    describe(s, "metrics'", METRICS, metrics)
    change(s, "metrics, unknown", METRICS, metrics, ("no.such.setting", SET, "1"))
    change(s, "metrics, too often", METRICS, metrics, ("interval.ms", SET, "1"))
    change(s, "metrics, bad match", METRICS, metrics, ("match", SET, "planet=mars"))
    change(s, "empty metrics", METRICS, "", ("interval.ms", SET, "60000"))
    change(s, "metrics, unset", METRICS, metrics, ("interval.ms", DELETE, None),
           ("metrics", DELETE, None))  # fmt: skip
    change(s, "logger, unknown level", LOGGER, "1", ("root", SET, "LOUD"))
    change(s, "logger, unknown", LOGGER, "1", ("no.such.logger", SET, "INFO"))
    change(s, "logger, unset root", LOGGER, "1", ("root", DELETE, None))
    change(s, "logger, append", LOGGER, "1", ("root", APPEND, "INFO"))
    change(s, "logger of another", LOGGER, "7", ("root", SET, "INFO"))
    change(s, "unknown type", 99, "x", ("a", SET, "b"))


@script("ListConfigResources")
def list_config_resources(s):
    topic, group, metrics = s.topic(), s.name("group"), s.name("subscription")
    for kind, name, key in ((GROUP, group, "consumer.session.timeout.ms"),
                            (METRICS, metrics, "interval.ms")):  # fmt: skip
        row = {"name": key, "config_operation": SET, "value": "50000"}
        s.call("IncrementalAlterConfigs", resources=[resource(kind, name, configs=[row])])
        s.until(
            lambda answer: any(one["value"] == "50000" for one in answer["results"][0]["configs"]),
            "DescribeConfigs",
            resources=[resource(kind, name)],
        )

    def mine(step, **values):
        """Other scripts leave resources of their own."""
        answer = s.call("ListConfigResources", s.version, **values)
        rows = [one for one in answer["config_resources"]
                if one["resource_name"] in (topic, group, metrics, "1", "")]  # fmt: skip
        s.note(step, {**answer, "config_resources": rows})

    mine("all")
    for kind in (TOPIC, BROKER, LOGGER, METRICS, GROUP):
        if s.version >= 1:
            mine(f"type {kind}", resource_types=[kind])
    if s.version >= 1:
        mine("unknown type", resource_types=[99])
