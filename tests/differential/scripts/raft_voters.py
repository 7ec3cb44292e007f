"""AddRaftVoter and RemoveRaftVoter, as far as one node alone can be asked: all of it is refused."""

from uuid import UUID

from tests.differential.registry import script

STRANGER, NOBODY = UUID(int=7), UUID(int=0)
ENDPOINT = {"name": "CONTROLLER", "host": "localhost", "port": 9}


@script("AddRaftVoter")
def add_raft_voter(s):
    def ask(step, **fields):
        values = {"cluster_id": None, "timeout": 1000, "voter_id": 7, "ack_when_committed": True,
                  "voter_directory_id": STRANGER, "listeners": [ENDPOINT]}  # fmt: skip
        answer = s.call("AddRaftVoter", s.version, **values | fields)
        s.note(step, answer["error_code"])

    ask("another cluster", cluster_id="elsewhere")
    ask("no voter", voter_id=-1)
    ask("no folder", voter_directory_id=NOBODY)
    ask("no controller's listener", listeners=[ENDPOINT | {"name": "OTHER"}])
    ask("a number that votes", voter_id=1)


@script("RemoveRaftVoter")
def remove_raft_voter(s):
    def ask(step, **fields):
        values = {"cluster_id": None, "voter_id": 7, "voter_directory_id": STRANGER}
        answer = s.call("RemoveRaftVoter", s.version, **values | fields)
        s.note(step, answer["error_code"])

    ask("another cluster", cluster_id="elsewhere")
    ask("no voter", voter_id=-1)
    ask("no folder", voter_directory_id=NOBODY)
    ask("a stranger")
    ask("a number with another folder", voter_id=1)
