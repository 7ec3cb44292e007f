"""DescribeQuorum."""

from tests.differential.registry import script


@script("DescribeQuorum")
def describe_quorum(s):
    def ask(step, name, index=0):
        s.ask(step, topics=[{"topic_name": name, "partitions": [{"partition_index": index}]}])

    good = s.call("DescribeQuorum", s.version, topics=[
        {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}])  # fmt: skip
    partition = good["topics"][0]["partitions"][0]
    assert partition["high_watermark"] > 0
    partition["high_watermark"] = "<offset>"  # each has its own records of metadata
    for voter in partition["current_voters"]:
        assert voter["log_end_offset"] > 0
        voter["log_end_offset"] = "<offset>"
    s.note("good", good)
    ask("other topic", "elsewhere")
    ask("other partition", "__cluster_metadata", 1)
    s.ask("nothing")
