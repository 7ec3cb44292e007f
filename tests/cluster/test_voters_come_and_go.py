"""One appliance becomes three while it serves, and two of them go on voting: dynamic voters
(KIP-853). With PENSTOCK_TEST_BROKER=kafka the same is asked of Apache Kafka's nodes."""

from tests.cluster.nodes import Nodes

ADD, REMOVE, DESCRIBE_QUORUM, UPDATE_FEATURES = 80, 81, 55, 57
METADATA = {
    "topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
}


class Growing(Nodes):
    """The first node begins alone, the others look for it. static: it has itself in its
    settings."""

    def __init__(self, folder, count=3, *, static=False):
        super().__init__(folder, count)
        first = self.places[0]
        for node in self.all.values():
            del node.properties["controller.quorum.voters"]
            seed = f"{first.host}:{first.controller_port}"
            node.properties["controller.quorum.bootstrap.servers"] = seed
            alone = node.number == first.number
            node.format = ("--standalone",) if alone else ("--no-initial-controllers",)
            if alone and static:
                node.properties["controller.quorum.voters"] = f"1@{seed}"
                node.format = ()

    def __enter__(self):
        try:
            return self.start(1)
        except BaseException:
            self.__exit__()
            raise

    def quorum(self, number=1):
        (told,) = self.ask(DESCRIBE_QUORUM, 2, METADATA, number)["topics"]
        (found,) = told["partitions"]
        return found

    def voters(self, number=1):
        """Number → directory id of each."""
        return {one["replica_id"]: one["replica_directory_id"]
                for one in self.quorum(number)["current_voters"]}  # fmt: skip

    def directory(self, number):
        """Of an observer that the leader knows."""
        for one in self.quorum()["observers"]:
            if one["replica_id"] == number:
                return one["replica_directory_id"]
        return None

    def add(self, number):
        """Until it votes: it has to catch up first."""
        place = self.places[number - 1]
        directory = self.wait(lambda: self.directory(number), f"{number} observes")
        values = {
            "cluster_id": None, "timeout": 10_000, "voter_id": number,
            "voter_directory_id": directory, "ack_when_committed": True,
            "listeners": [
                {"name": "CONTROLLER", "host": place.host, "port": place.controller_port}
            ],
        }  # fmt: skip

        def added():
            told = self.ask(ADD, 1, values, 1)
            assert told["error_code"].upper() in ("NONE", "REQUEST_TIMED_OUT"), told
            return told["error_code"].upper() == "NONE"

        self.wait(added, f"{number} votes")

    def remove(self, number, through=1):
        values = {"cluster_id": None, "voter_id": number,
                  "voter_directory_id": self.voters(through)[number]}  # fmt: skip

        def removed():
            told = self.ask(REMOVE, 0, values, through)
            code = told["error_code"].upper()
            assert code in ("NONE", "REQUEST_TIMED_OUT", "VOTER_NOT_FOUND"), told
            return code != "REQUEST_TIMED_OUT"

        self.wait(removed, f"{number} votes no more")


def test_one_becomes_three_while_it_serves_and_goes_on_without_the_first(tmp_path):
    with Growing(tmp_path) as nodes:
        nodes.create("before", factor=1)
        assert set(nodes.voters()) == {1}
        first = nodes[1].process.pid
        nodes.start(2, 3)
        nodes.add(2)
        nodes.add(3)
        assert set(nodes.voters()) == {1, 2, 3}
        assert nodes[1].process.pid == first
        nodes.create("after", factor=3)
        nodes.kill(1)
        nodes.wait(lambda: nodes.quorum_leader(2) in (2, 3), "another one leads")
        nodes.start(1)
        leader = nodes.wait(lambda: nodes.quorum_leader(2), "somebody leads")
        nodes.remove(leader, through=leader)
        others = {1, 2, 3} - {leader}
        other = min(others)
        nodes.wait(lambda: nodes.quorum_leader(other) in others, "who removed itself leads no more")
        nodes.wait(lambda: set(nodes.voters(other)) == others, "two vote")
        nodes.create("at the end".replace(" ", "-"), factor=3)


def test_a_static_voter_becomes_a_dynamic_one_while_it_serves(tmp_path):
    """As the folder of an older appliance: its voters are those of the settings."""
    with Growing(tmp_path, static=True) as nodes:
        answer = nodes.ask(UPDATE_FEATURES, 1, {"timeout": 10_000, "validate_only": False,
            "feature_updates": [
                {"feature": "kraft.version", "max_version_level": 1, "upgrade_type": 1}
            ]})  # fmt: skip
        assert answer["error_code"].upper() == "NONE", answer
        assert set(nodes.voters()) == {1} and nodes.voters()[1] is not None
        nodes.start(2)
        nodes.add(2)
        nodes.kill(1)
        nodes.start(1)
        nodes.wait(lambda: set(nodes.voters(nodes.quorum_leader(2))) == {1, 2}, "both vote")


def test_who_is_to_join_by_itself_does(tmp_path):
    """KIP-1186."""
    with Growing(tmp_path, 2) as nodes:
        nodes[2].properties["controller.quorum.auto.join.enable"] = "true"
        nodes.start(2)
        nodes.wait(lambda: set(nodes.voters()) == {1, 2}, "both vote")
