"""DescribeCluster."""

from tests.differential.registry import script


@script("DescribeCluster")
def describe_cluster(s):
    s.ask("brokers", endpoint_type=1)
    s.ask("operations", endpoint_type=1, include_cluster_authorized_operations=True)
    if s.version >= 1:
        s.ask("controllers", endpoint_type=2)
        s.ask("unknown type", endpoint_type=3)
    if s.version >= 2:
        s.ask("fenced", endpoint_type=1, include_fenced_brokers=True)
