"""What a script sees: one broker, one version of one API, and a notebook of answers.

Whatever is asked with `ask` is noted under the name of its step and compared with what the other
broker answered at the same step. What `call` asks is not noted: it prepares, and it looks.
"""

import base64
import time
from uuid import UUID, uuid5

from tests.differential.link import CLOSED, Link
from tests.differential.registry import APIS

SPACE = UUID("5f1d7a52-7d0c-4b8e-9a63-1f6d2c8e4b70")
LIMIT_S = 30


class Target:
    """A broker. folder: where its data lies, to be recognised in answers. context: it is asked
    over TLS. user: (name, password) of who prepares and asks, if somebody has to log in. scene: the
    class of scripts' scenes there."""

    def __init__(self, name, address, folder=None, context=None, user=None):
        self.name = name
        self.address = address
        self.folder = folder
        self.context = context
        self.user = user
        self.scene = Scene
        link = Link(address, context=context)
        answer = link.ask(18, 3, {"client_software_name": "differential",
                                  "client_software_version": "1"})  # fmt: skip
        link.close()
        self.ranges = {one["api_key"]: (one["min_version"], one["max_version"])
                       for one in answer["api_keys"]}  # fmt: skip


class Scene:
    """One run of one script. `version` is the version of the script's API; `notes` is the result:
    (step, API, version, answer)."""

    limit_s = LIMIT_S

    def __init__(self, target, script, version, run):
        self.target = target
        self.script = script
        self.version = version
        self.notes = []
        self.known = {}  # text that stands in answers → what is compared instead
        self.numbers = {}  # the same for large numbers that each broker chose by chance
        self._tag = f"{script.name}-v{version}-{run}"
        self._links = []
        self._main = None
        self._of_users = {}

    # asking ---------------------------------------------------------------------------------------

    def ask(self, step, api=None, link=None, version=None, **values):
        """Ask, note the answer under `step`, return it. Without `api` it is the script's own, in
        the version that is played; another API is asked in its highest version, or in `version`."""
        api, version = self._which(api, version)
        answer = (link or self.main).ask(APIS[api], version, values)
        self.note(step, answer, api, version)
        if answer is CLOSED and link is None:
            self._main = None
        return answer

    def note(self, step, answer, api=None, version=None):
        """Note what came in another way."""
        assert all(step != other for other, *_ in self.notes), f"two steps {step}"
        self.notes.append((step, *self._which(api, version), answer))

    def call(self, api, version=None, link=None, **values):
        """Ask without a note; in the highest version that both brokers serve unless told."""
        api, version = self._which(api, version)
        return (link or self.main).ask(APIS[api], version, values)

    def until(self, wanted, api, version=None, **values):
        """`call` again and again until `wanted(answer)`; the answer. Fails after `limit_s`."""
        end = time.monotonic() + self.limit_s
        while not wanted(answer := self.call(api, version, **values)):
            assert time.monotonic() < end, f"{self.target.name}: {api} stays {answer}"
            time.sleep(0.005)
        return answer

    def ask_until(self, step, wanted, api=None, version=None, **values):
        """As `until`, and the last answer is noted."""
        api, version = self._which(api, version)
        answer = self.until(wanted, api, version, **values)
        self.note(step, answer, api, version)
        return answer

    def _which(self, api, version):
        if api in (None, self.script.api):
            return self.script.api, self.version if version is None else version
        return api, self.highest(api) if version is None else version

    def highest(self, api):
        """The highest version of an API on this broker that we have a schema for."""
        return min(self.target.ranges[APIS[api]][1], _HIGHEST.get(api, 1 << 15))

    # connections ----------------------------------------------------------------------------------

    @property
    def main(self):
        """The connection that is used when none is named."""
        if self._main is None:
            self._main = self.connect()
        return self._main

    def connect(self, client_id="differential", user=None):
        """One more connection, of that (name, password) or the target's; closed at the end of the
        script."""
        self._links.append(Link(self.target.address, client_id, self.target.context))
        if user := user or self.target.user:
            self._links[-1].login(*user)
        return self._links[-1]

    def link_of(self, name, password):
        """The connection of a user; it is made when there is none."""
        if name not in self._of_users or self._of_users[name].closed:
            self._of_users[name] = self.connect(user=(name, password))
        return self._of_users[name]

    def close(self):
        for link in self._links:
            link.close()

    # names ----------------------------------------------------------------------------------------

    def name(self, word):
        """A name for a topic, a group, …: unique on the broker, `word` in what is compared."""
        name = f"{word}-{self._tag}"
        self.known[name] = word
        return name

    def id(self, word):
        """An id that nothing has."""
        value = uuid5(SPACE, self.name(word))
        self.recognise(value, f"id of {word}")
        return value

    def recognise(self, value, word):
        """Compare `word` wherever this id, number or text stands in an answer. An empty text, as
        who is refused gets it, is none."""
        if value == "":
            return
        if isinstance(value, int):
            self.numbers[value] = f"<{word}>"
            return
        self.known[str(value)] = f"<{word}>"
        if isinstance(value, UUID):
            short = base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()
            self.known[short] = f"<{word}>"

    # topics ---------------------------------------------------------------------------------------

    def topic(self, word="topic", partitions=1, **configs):
        """Create a topic, wait until it is served; its name. configs: dots as underscores."""
        name = self.name(word)
        self.create(name, partitions, {k.replace("_", "."): v for k, v in configs.items()})
        return name

    def create(self, name, partitions=1, configs=()):
        """Create a topic of this very name and wait until it is served."""
        configs = dict(configs)
        answer = self.call("CreateTopics", timeout=10_000, topics=[{
            "name": name, "num_partitions": partitions, "replication_factor": 1,
            "configs": [{"name": key, "value": value} for key, value in configs.items()],
        }])  # fmt: skip
        code = answer["topics"][0]["error_code"]
        assert code == "NONE", f"{self.target.name}: {name} was not created: {answer}"
        self.served(name, partitions)

    def served(self, name, partitions=1):
        """Wait until every partition has a leader that answers; learn the topic's id."""

        def led(answer):
            (topic,) = answer["topics"]
            return len(topic["partitions"]) == partitions and all(
                one["leader_id"] >= 0 and one["error_code"] == "NONE"
                for one in topic["partitions"]
            )  # fmt: skip

        answer = self.until(
            led, "Metadata", 12, topics=[{"name": name}], allow_auto_topic_creation=False
        )
        self.recognise(UUID(answer["topics"][0]["topic_id"]), f"id of {self.known.get(name, name)}")
        self.until(
            lambda answer: all(one["error_code"] == "NONE" for topic in answer["topics"]
                               for one in topic["partitions"]),
            "ListOffsets", 7, replica_id=-1, topics=[{"name": name, "partitions": [
                {"partition_index": index, "current_leader_epoch": -1, "timestamp": -1}
                for index in range(partitions)]}],
        )  # fmt: skip

    def topic_id(self, name):
        """The id of a topic that exists."""
        answer = self.call("Metadata", 12, topics=[{"name": name}], allow_auto_topic_creation=False)
        return UUID(answer["topics"][0]["topic_id"])

    def delete(self, name):
        """Delete a topic and wait until nobody knows it."""
        answer = self.call("DeleteTopics", topics=[{"name": name}], timeout=10_000)
        assert answer["responses"][0]["error_code"] == "NONE", answer
        wanted = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
        self.until(lambda answer: not answer["topics"][0]["partitions"], "Metadata", 12, **wanted)

    def produce(self, name, records, partition=0, acks=-1):
        """Append batches that were made by hand; all must be taken."""
        answer = self.call("Produce", 9, acks=acks, timeout=10_000, topic_data=[
            {"name": name, "partition_data": [{"index": partition, "records": records}]}
        ])  # fmt: skip
        code = answer["responses"][0]["partition_responses"][0]["error_code"]
        assert code == "NONE", answer


_HIGHEST = {"InitProducerId": 5}
"""kio knows a version that neither broker advertises."""
