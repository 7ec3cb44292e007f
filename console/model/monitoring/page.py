"""The page about metrics, `docs/metrics.md`, made of what the appliance declares."""

from typing import Final

from appliance.exporter.families import OWN, Family
from appliance.exporter.kafka_names import KAFKAS, MISSING
from console.model.monitoring.rules import ALERTS

_INTRO: Final = """\
# Metrics

Made by `penstock metrics page > docs/metrics.md`; a test holds it to the code.

```sh
penstock up -o penstock.metrics.listener=localhost:9404
curl -s localhost:9404/metrics
```

Off by default: with `penstock.metrics.listener` a process of its own, the exporter, serves HTTP there. It reads the
memory that the appliance counts in and asks no process of it, so a scrape is answered while the appliance is in
trouble, and disturbs nobody ([decision 50](decisions/0050-metrics-from-a-process-beside.md)): a page of 1,000
partitions takes the exporter 3 to 5 ms of CPU, and nobody else any. It says names of topics, groups and clients, so an
address that other hosts reach is refused unless it asks for credentials ([below](#credentials)).

| path | answer |
|---|---|
| `/metrics` | everything below, in Prometheus' text format |
| `/livez` | 200 while the appliance runs or mends itself; 503 when its supervisor is stopped, or a process has stood still for 30 s and nobody has replaced it |
| `/readyz` | 200 when clients are served: every I/O process has its partitions open, a network process listens, all loops have turned within two seconds, everybody follows the metadata, all coordinators of groups and transactions are loaded, the controller knows the node and has not fenced it, and a connection made now to a listener was answered. Else 503. Both say as JSON what is `missing`, and under `warnings` what is wrong although it serves: partitions offline, a full disk, records that do not become visible, no control. No record is written for it: that the disk takes a write is seen when somebody writes |
| `/readyz?probe=1` | that, and a record was taken, was read again, and a group was joined: `probed` is true then |

## Credentials
At `localhost` whoever can connect may read. At any other address a start, a reload and `penstock config lint` refuse
the listener unless it asks for a password (HTTP's basic authentication), for a certificate, or both:

```properties
penstock.metrics.listener=0.0.0.0:9404
penstock.metrics.security.protocol=SSL
penstock.metrics.basic.auth.user.info=prometheus:PASSWORD
listener.name.metrics.ssl.keystore.location=/etc/penstock/server.pem
```

With `listener.name.metrics.ssl.client.auth=required` and
`listener.name.metrics.ssl.truststore.location=/etc/penstock/ca.pem` only clients with a certificate of that authority
are served. `listener.name.metrics.ssl.*` are [TLS's settings](tls.md) for a listener that is called METRICS; what is
not set there is taken from `ssl.*`. A renewed certificate is read within ten seconds. The password holds for every
path, `/livez` and `/readyz` too; it is answered with 401 where it is missing. In Prometheus:

```yaml
scrape_configs:
  - job_name: penstock
    scheme: https
    static_configs: [{targets: ["edge.example.org:9404"]}]
    basic_auth: {username: prometheus, password_file: /etc/prometheus/penstock.password}
    tls_config: {ca_file: /etc/prometheus/ca.pem}
```

`penstock.listeners.without.authentication=allow` opens it nevertheless, as it does [listeners of
clients](secure.md#refused).

## Health
A listener without TLS is asked, where there is one. Of one with TLS the certificate is not verified: a node looks at
its own host. Where only clients with a certificate are served, that a handshake came as far as being asked for one is
answer enough for `/readyz`; a probe is not made then, and a warning says
`not probed: every listener asks for a certificate`.

`penstock wait --timeout 30` waits for the same on the host itself, without that listener; `-b HOST:PORT` adds the
connection, `--probe` the record and the group. Exit code 0, or 4 (3 when nobody is there) with what is missing.

**Levels of ready** ([decision 88](decisions/0088-four-levels-of-ready.md)). Each means what the one before means, and
more:

| asked by | means | costs |
|---|---|---|
| READY=1 to systemd, `penstock up` says "ready" | every process has started, every partition is open, listeners answer | nothing |
| `penstock wait`, `penstock status`, `penstock_ready` | nobody stands still, everybody follows the metadata, coordinators are loaded | nothing; the first look takes up to 2 s |
| `/readyz`, `wait -b` | a connection was taken and answered | one connection |
| `/readyz?probe=1`, `wait --probe` | a record went through each I/O process of this node, and a group was joined | a topic, a record for each I/O process and a few of the group, up to 10 s where it fails |

A probe makes topic `__penstock_probe_NODE` when it is first asked for, a partition for each I/O process, all on this
node, ten minutes of retention; delete it when no more probes are made. Its group has a new name each time and is
deleted. Nobody probes who is not asked to, and there is one probe a second however many ask; each hears of one that
began after the question. Where that topic is not there and cannot be made, because no controller is to be reached,
nothing is tried: `probed` is false, and a warning says so. For a probe every few seconds of Kubernetes `/readyz` is
meant; this one for a start, an upgrade, a doubt.

In a scrape configuration:

```yaml
scrape_configs:
  - job_name: penstock
    static_configs: [{targets: ["localhost:9404"]}]
```

[alerts.yml](metrics/alerts.yml) has alert rules (`penstock metrics rules`), [board.json](metrics/board.json) a board
for Grafana (`penstock metrics board`). Where Prometheus is installed, a test starts one beside an appliance with
clients (`tests/exporter/test_prometheus.py`): the board's variables and each of its queries have data, but for the one
panel that shows topics only while a transaction holds records back, and every alert rule is evaluated over metrics that
are there; another test lets each rule fire. The board's JSON was checked with Grafana's own types (`@grafana/schema`
13.2.3) and units (`@grafana/data`), not with Grafana itself.

**Many partitions.** Up to `penstock.metrics.partitions.max` (2,000) partitions there are series for each. Of more,
metrics with the label `partition` are sums over a topic's partitions and come without it, which is what boards sum up
anyway; `penstock_partition_series` is 0 then. Of more topics than `penstock.metrics.topics.max` (2,000) those with most
bytes have series; `penstock_topics_left_out` says how many have none, and the totals without a topic are about all.

**Certificates.** `penstock_certificate_expiry_timestamp_seconds` is what clients are really shown, whatever the files
say: once a minute a thread of the exporter makes a handshake with each listener that has TLS. An alert warns two weeks
before the end and is critical two days before.

**OpenTelemetry.** The same metrics are pushed to a collector, as OTLP over HTTP, with
`penstock.otlp.endpoint=http://HOST:4318` or where the environment has `OTEL_EXPORTER_OTLP_ENDPOINT`; the listener above
is not needed for that. `penstock.otlp.interval.ms` is how often, `penstock.otlp.headers` what the receiver wants to see
(`Authorization=Bearer …`). A receiver that is away costs a line in the log and a gap in its charts ([decision
67](decisions/0067-metrics-are-pushed-by-an-encoder-of-ours.md)).

**What clients say of themselves.** Clients push metrics of their own where a subscription asks for them (KIP-714); the
Java client and librdkafka do so without being told. The last values are told here as `penstock_client_metric`, and by
`penstock client metrics` ([decision 66](decisions/0066-clients-metrics-are-kept-as-they-come.md)):

```sh
penstock config set metrics='*' interval.ms=30s --client-metrics everybody
penstock client metrics
```

`match` chooses clients (`match=client_id=loader-.*`), `metrics` are prefixes of names. Apache Kafka's
`kafka-client-metrics.sh` does the same.

**A cluster.** Every node tells what it has: partitions with a replica there, clients connected to it, groups that it
coordinates, records that it took in as a leader. So sums over instances count a replicated partition's size once for
each replica, and records once.
"""


_BOARDS: Final = """\
## Kafka's names

For boards that were made for Apache Kafka: by kafka_exporter's names and by those that the JMX exporter gives with
Strimzi's rules. kafka_exporter's overview (Grafana 7589), `strimzi-kafka-exporter` and `strimzi-kafka` were asked of
Prometheus 2.42 with an appliance behind it: each of their queries had data but those for what is listed at the end, and
for Kubernetes' own. A test asks Prometheus for every name that Grafana 7589 and `strimzi-kafka` use, chosen and summed
up by the labels that they use. Strimzi's filter by labels that Kubernetes adds; elsewhere the scrape configuration adds
them:

```yaml
    static_configs:
      - targets: ["localhost:9404"]
        labels: {namespace: penstock, strimzi_io_cluster: it, kubernetes_pod_name: it-1, container: kafka}
```
"""


def text() -> str:
    """All of it, as Markdown."""
    parts = [_INTRO, "## Ours\n", _table(OWN)]
    parts += [
        _BOARDS,
        _table(KAFKAS),
        "Not there, because it would have to be made up:\n",
        "| asked for | why not |\n|---|---|",
        "\n".join(f"| `{name}` | {why} |" for name, why in MISSING.items()),
        "\n## Alerts\n\n| alert | after | severity | when |\n|---|---|---|---|",
        "\n".join(
            f"| {one.name} | {one.minutes} min | {one.severity} | `{one.expr}` |" for one in ALERTS
        ),
    ]
    return "\n".join(parts) + "\n"


def _table(families: tuple[Family, ...]) -> str:
    rows = ["| name | type | labels | meaning |", "|---|---|---|---|"]
    for one in families:
        labels = ", ".join(f"`{label}`" for label in one.labels)
        rows.append(f"| `{one.name}` | {one.kind} | {labels} | {one.meaning} |")
    return "\n".join(rows) + "\n"
