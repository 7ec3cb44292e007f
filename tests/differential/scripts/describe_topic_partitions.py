"""DescribeTopicPartitions."""

from tests.differential.registry import script


@script("DescribeTopicPartitions")
def describe_topic_partitions(s):
    one, two = s.topic("one", partitions=3), s.topic("two", partitions=2)

    def ask(step, *names, limit=2000, cursor=None):
        place = cursor and {"topic_name": cursor[0], "partition_index": cursor[1]}
        topics = [{"name": name} for name in names]
        s.ask(step, topics=topics, response_partition_limit=limit, cursor=place)

    ask("one", one)
    ask("both", one, two)
    ask("unknown", s.name("unknown"))
    ask("invalid", "not valid!")
    ask("twice", one, one)
    ask("limited", one, two, limit=2)
    ask("limited to the topic", one, two, limit=3)
    ask("from a cursor", one, two, limit=2, cursor=(one, 2))
    ask("from the second", one, two, cursor=(two, 0))
    ask("cursor behind", one, two, cursor=(two, 7))
    ask("cursor on a topic that is not asked for", one, cursor=(two, 0))
    ask("negative cursor", one, cursor=(one, -1))
    ask("no limit", one, limit=0)
    ask("negative limit", one, limit=-1)
