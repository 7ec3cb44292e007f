"""kafka-acls: rules are made, shown and removed; those of its clients, of prefixes, of hosts."""

from tests.differential.tools.session import Session

_ANNA = "--allow-principal User:anna"
_OURS = "--allow-principal User:ANONYMOUS --operation All --cluster"
"""Without this whoever runs these tools is locked out by the first rule about the cluster."""


def _around(on: Session, words: str, *views: str) -> None:
    """Add, show, add again, remove, show. words: whose and what. views: more ways to show it."""
    on.run(f"kafka-acls --add {words}")
    for view in ("", *views):
        on.run(f"kafka-acls --list {view}".rstrip())
    on.run(f"kafka-acls --add {words}")
    on.run(f"kafka-acls --remove --force {words}")
    on.run("kafka-acls --list")


def of_resources(on: Session) -> None:
    for resource in ("--topic one", "--topic *", "--group g", "--transactional-id t",
                     "--delegation-token d", "--user-principal User:bert"):  # fmt: skip
        _around(on, f"{_ANNA} --operation Describe {resource}", resource)
    on.run(f"kafka-acls --add {_ANNA} --operation CreateTokens --user-principal User:bert")
    on.run(f"kafka-acls --remove --force {_ANNA} --operation CreateTokens"
           " --user-principal User:bert")  # fmt: skip
    on.run("kafka-acls --list")


def of_the_cluster(on: Session) -> None:
    on.run(f"kafka-acls --add {_OURS}")
    _around(on, f"{_ANNA} --operation Describe --cluster", "--cluster")
    _around(on, f"{_ANNA} --producer --idempotent --transactional-id t --topic one")
    on.run(f"kafka-acls --remove --force {_OURS}")


def of_clients(on: Session) -> None:
    _around(on, f"{_ANNA} --producer --topic one")
    _around(on, f"{_ANNA} --producer --transactional-id t --topic one")
    _around(on, f"{_ANNA} --consumer --topic one --group g", "--topic one", "--group g")
    _around(on, f"{_ANNA} --consumer --producer --topic one --group g")
    on.run(f"kafka-acls --add {_ANNA} --producer --group g")
    on.run(f"kafka-acls --add {_ANNA} --consumer --topic one")


def of_patterns(on: Session) -> None:
    prefixed = "--resource-pattern-type prefixed"
    _around(on, f"{_ANNA} --operation Read --topic on {prefixed}",
            "--topic one", "--topic one --resource-pattern-type match",
            "--topic on --resource-pattern-type prefixed", "--topic on --resource-pattern-type any",
            "--principal User:anna", "--principal User:nobody")  # fmt: skip
    on.run(f"kafka-acls --add {_ANNA} --operation Read --topic one")
    on.run(f"kafka-acls --add {_ANNA} --operation Write --topic on {prefixed}")
    on.run("kafka-acls --add --allow-principal User:* --operation All --topic *")
    on.run("kafka-acls --list --topic one --resource-pattern-type match")
    on.run("kafka-acls --remove --force --topic one --resource-pattern-type match")
    on.run("kafka-acls --list")


def of_hosts(on: Session) -> None:
    _around(on, f"{_ANNA} --allow-host 10.0.0.1 --operation Read --topic one")
    _around(on, "--deny-principal User:anna --deny-host 10.0.0.1 --operation All --topic one")
    _around(on, f"{_ANNA} --deny-principal User:bert --operation Write --topic one")
    _around(on, f"{_ANNA} --allow-principal User:CN=bert,O=x --allow-host 10.0.0.1"
            " --allow-host ::1 --operation Read --operation Describe"
            " --topic one --topic two")  # fmt: skip


def of_mistakes(on: Session) -> None:
    for words in (
        f"--add {_ANNA} --operation Read", "--add --operation Read --topic one",
        f"--add {_ANNA} --operation Fly --topic one", f"--add {_ANNA} --operation Write --group g",
        "--add --allow-principal anna --operation Read --topic one",
        f"--add {_ANNA} --operation Read --topic one --resource-pattern-type any",
        f"--add {_ANNA} --allow-host 10.0.0.1 --operation IdempotentWrite --topic one",
        f"--add --list {_ANNA} --topic one", "--list --topic nothing", "--list --topic",
        "--remove --force --topic nothing", f"--remove --force {_ANNA} --operation Read --topic no",
    ):  # fmt: skip
        on.run(f"kafka-acls {words}")


SCRIPTS = (of_resources, of_the_cluster, of_clients, of_patterns, of_hosts, of_mistakes)
