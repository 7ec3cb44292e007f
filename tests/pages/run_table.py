"""How each block of commands in the documentation is run: here, by another test, or not at all.

A block is named by its page and the beginning of its first line; the lines in it, too, by how they
begin. What stands on a page for a name that is the reader's own is `given` another one here.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Typed:
    """where: the world's folder in which the lines are typed, one after the other."""

    where: str = "running"
    given: dict[str, str] = field(default_factory=dict)
    """What stands on the page → what is typed, where {a name} is one of the world's."""
    codes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Exit codes, where others than 0 are meant."""
    goes_on: dict[str, str] = field(default_factory=dict)
    """Ended by Ctrl-C when it has said this."""
    answers: dict[str, str] = field(default_factory=dict)
    """It asks, and this is typed."""
    screens: dict[str, str] = field(default_factory=dict)
    """It takes the whole terminal: `q` when this is seen."""
    left: dict[str, str] = field(default_factory=dict)
    """Lines that are not typed here, and why."""
    needs: str = ""
    """A program of others."""

    def named(self) -> set[str]:
        """Beginnings of lines that are told of."""
        return {*self.codes, *self.goes_on, *self.answers, *self.screens, *self.left}


UP = "listens on"
OF_THIS_HOST = (0, 1, 2)
HERE = {
    ("docs/backup.md", "penstock backup create"): Typed(
        given={
            "/mnt/backups": "{home}/backups",
            "s3://bucket/events /srv/events": "{home}/bucket penstock-data",
            "/srv/restored --to 2026-11-23T12:00": "{home}/restored-to --to {minute}",
            "/srv/earlier --to 2026-11-23T12:00": "{home}/restored-earlier --to {minute}",
            "/srv/restored": "{home}/restored",
        },
    ),
    ("docs/audit.md", "penstock audit"): Typed(),
    ("docs/console.md", "penstock console "): Typed(
        given={"kafka.example.org:9092": "{address}"},
        screens={
            "penstock console  ": "Written",
            "penstock console topic orders": "orders",
            "penstock console --read-only": "READ-ONLY",
            "penstock console -b": "Written",
        },
        left={"penstock console --demo": "tests/console/test_screens_command.py"},
    ),
    ("docs/doctor.md", "penstock doctor "): Typed(
        given={"/var/lib/penstock": "{home}/killed/penstock-data"},
        codes={"penstock doctor": OF_THIS_HOST},
        left={"penstock doctor --fix": "changes the host; tests/console/test_doctor.py"},
    ),
    ("docs/import.md", "penstock import "): Typed(
        where="empty",
        given={
            "/var/lib/kafka/data": "{kafka}",
            "/srv/events": "{home}/events",
            "/srv/kafka": "{home}/kafka-again",
            "penstock up": "penstock up --listen {free}",
        },
        goes_on={"penstock up": UP},
        answers={
            "penstock import /var/lib/kafka/data --data /srv/events\n": "y",
            "penstock export": "y",
        },
    ),
    ("docs/jobs.md", "pip install "): Typed(
        left={
            "pip install": "fetches packages",
            "penstock job setup": "fetches jars; tests/spark",
            "penstock job preview": "needs Spark; tests/spark",
            "penstock job serve": "needs Spark; tests/spark",
        },
    ),
    ("docs/metrics.md", "penstock up "): Typed(
        where="empty",
        given={"localhost:9404\n": "{free} --listen 127.0.0.1:0\n", "localhost:9404": "{metrics}"},
        goes_on={"penstock up": UP},
        needs="curl",
    ),
    ("docs/metrics.md", "penstock config set "): Typed(),
    ("docs/quickstart.md", "penstock config lint "): Typed(
        given={"penstock up": "penstock up --data {home}/again --listen {free}"},
        goes_on={"penstock up": UP},
    ),
    ("docs/storage.md", "penstock storage verify "): Typed(
        where="killed",
        given={"/srv/a": "{home}/two/a", "/srv/b": "{home}/two/b"},
    ),
    ("docs/transactions.md", "penstock txn list "): Typed(
        goes_on={"penstock txn list --open": "copier"},
        codes={"penstock txn list --open": (130,), "penstock txn hanging": (4,)},
    ),
    ("docs/transactions.md", "penstock txn abort "): Typed(
        given={"4711": "{hanging}"},
        answers={"penstock txn abort copier  ": "copier", "penstock txn abort -t": "orders:0"},
    ),
}

README = "tests/console/test_readme.py"
SECURE = "tests/console/test_secure.py"
LOGINS = "tests/console/test_secure_logins.py"
ACLS = "tests/console/test_acl_commands.py"
TLS = "tests/tls/test_tls_page.py"
ELSEWHERE = {
    ("README.md", ". .venv/bin/activate   "): README,
    ("README.md", ". .venv/bin/activate\n"): README,
    ("docs/cluster.md", "for n in 1 2 3"): README,
    ("docs/cluster.md", "penstock topic create shared"): README,
    ("docs/cluster.md", "penstock up --data node2"): README,
    ("docs/quickstart.md", ". .venv/bin/activate\npenstock up"): README,
    ("docs/quickstart.md", ". .venv/bin/activate\npenstock wait"): README,
    ("docs/quickstart.md", "penstock consume orders"): README,
    ("docs/quickstart.md", ". .venv/bin/activate\npenstock topic create hello"): README,
    ("docs/quickstart.md", "seq 5 | kcat"): README,
    ("docs/quickstart.md", "cat > shout.toml"): README,
    ("docs/quickstart.md", "for n in 1 2 3"): README,
    ("docs/quickstart.md", "penstock topic create shared"): README,
    ("docs/testing.md", "penstock run"): "tests/console/test_testing_page.py",
    ("docs/acls.md", "penstock acl add"): ACLS,
    ("docs/acls.md", "kafka-acls.sh --bootstrap-server old"): "tests/console/test_acl_import.py",
    ("docs/backup.md", "penstock topic archive"): "tests/console/test_topic_archive.py",
    ("docs/jobs.md", "penstock user add etl"): "tests/spark/test_secured_job.py",
    (
        "docs/secure.md",
        "penstock secure init --host edge.example.org\npenstock up",
    ): LOGINS,
    ("docs/secure.md", "kcat -F loader"): LOGINS,
    ("docs/secure.md", "penstock secure init --host edge.example.org --certificates"): SECURE,
    ("docs/secure.md", "kcat -F penstock-secure"): SECURE,
    ("docs/secure.md", "penstock secure server"): SECURE,
    **{
        ("docs/secure.md", one): "tests/console/test_migration.py"
        for one in (
            "penstock secure init --host edge.example.org\npenstock config",
            "penstock connections",
            "penstock config set --broker 1 listeners=SASL",
        )
    },
    ("docs/secure.md", "penstock topic create orders"): "tests/console/test_owner.py",
    ("docs/tls.md", "openssl req -x509"): TLS,
    ("docs/tls.md", "openssl req -newkey"): TLS,
    ("docs/tls.md", "penstock up"): TLS,
    ("docs/tls.md", "penstock topic create"): TLS,
    ("docs/tls.md", "kcat"): TLS,
    ("docs/tls.md", "echo secret"): TLS,
}
"""Block → the test that runs its lines."""

SPARK = "Spark's jars are fetched, and it runs on: tests/spark add, preview and serve jobs"
ROOT_AND_SYSTEMD = "root and systemd: tests/systemd boots the units of `penstock service`"
NOT_RUN = {
    ("README.md", "python3 -m venv .venv && PIP_NO_COMPILE=1 .venv/bin/pip install -q '.[demo]'"): (
        "fetches packages; tests/console/test_demo.py runs the demo"
    ),
    ("README.md", "Minutes late at departure"): "a picture",
    (
        "README.md",
        "python3 -m venv .venv && PIP_NO_COMPILE=1 .venv/bin/pip install -q -e",
    ): "runs all tests",
    ("docs/quickstart.md", "penstock job setup"): SPARK,
    ("docs/job-tables.md", "penstock job setup --tables"): "tests/spark/test_spark_tables.py",
    ("docs/job-schemas.md", "penstock job setup --schemas"): "tests/spark/test_schemas_registry.py",
    ("docs/job-schemas.md", "export PENSTOCK_REGISTRY"): "tests/software/test_schema_registry.py",
    ("benchmarks/README.md", "python -m benchmarks.compare.rdkafka build"): "hours of measuring",
    ("docs/concepts.md", "        clients"): "a picture",
    ("docs/contributing.md", "python3 -m venv .venv"): "fetches packages, and runs tests",
    ("docs/contributing.md", "SIM_SEED=222"): "runs a test",
    ("docs/doctor.md", "warning: clock"): "what a command says",
    ("docs/install.md", "python3 -m venv penstock-env"): (
        "fetches packages; tests/upgrade installs wheels, tests/installed.sh runs what is installed"
    ),
    ("docs/install.md", "pipx install"): "pipx and uv are not there, and fetch packages",
    ("docs/install.md", "pip install '.[release]'"): (
        "fetches packages; tests/systemd/test_debian_package.py makes the package"
    ),
    ("docs/install.md", "python3 -m venv /opt/penstock"): ROOT_AND_SYSTEMD,
    ("docs/install.md", "apt install"): (
        "root; tests/systemd/test_debian_package.py installs the package"
    ),
    ("docs/install.md", "docker build"): (
        "Docker; tests/pages/test_image_recipe.py reads the recipe"
    ),
    ("docs/quickstart.md", "python3 -m venv .venv"): (
        "fetches packages; tests/console/test_demo.py runs the demo"
    ),
    ("docs/reference/events.md", "kafka-configs.sh"): (
        "Kafka's own tool; tests/compat runs those that are here"
    ),
    ("docs/systemd.md", "/opt/penstock/bin/penstock service install\n"): ROOT_AND_SYSTEMD,
    ("docs/systemd.md", "penstock service install --user"): (
        "a user's systemd; tests/console/test_service.py asks a manager of its own"
    ),
    ("docs/systemd.md", "/opt/penstock/bin/penstock service install --socket"): ROOT_AND_SYSTEMD,
    ("docs/systemd.md", "/opt/penstock/bin/penstock service install --backup"): ROOT_AND_SYSTEMD,
    ("docs/systemd.md", "install -d -o penstock"): ROOT_AND_SYSTEMD,
    ("docs/systemd.md", "/opt/penstock/bin/pip install"): f"{ROOT_AND_SYSTEMD}; {SPARK}",
    ("docs/acls.md", "kafka-acls.sh --bootstrap-server localhost"): (
        "Kafka's own tool; tests/differential compares what it asks"
    ),
    ("docs/tls.md", "kafka-configs.sh"): (
        "Kafka's own tool; tests/tls/test_renewals.py does it with its jars"
    ),
    ("docs/tls.md", "install -m 640"): "root, and files of certbot",
    ("docs/upgrade.md", "pip:      pip install"): (
        "fetches packages of a version to come; tests/upgrade does it with wheels"
    ),
}
"""Block → why nobody types it in a test. That its commands exist is checked nevertheless."""

MADE = {"docs/reference/commands.md": "examples of --help, with names of the reader's own"}
"""Pages with blocks that are made of code, all of them not run, and why."""
