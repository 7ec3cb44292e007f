"""Which tests are long proofs, and in which order files are given to workers.

README's command leaves out what is marked `proof`; `.ci/run` runs these, too, except those that are
also marked `nightly`. It collects only where they are: `python -m tests.tiers` prints that. Whole
files are listed here and single tests carry the mark themselves. What each proves, with its
command, stands in tests/README.md.
"""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SHORT = (0.5, 0.5)
"""Seconds, and seconds of processor time, of a file that durations.txt does not name."""

PROOFS = (
    "cluster/test_backup_of_a_node.py",
    "cluster/test_flipped_bit.py",
    "cluster/test_invited_by_certificate.py",
    "cluster/test_processes_die.py::test_what_one_that_stays_away_led_is_led_elsewhere",
    "cluster/test_rolling_restart.py",
    "cluster/test_topics_come_back.py",
    "cluster/test_torture.py",
    "cluster/test_with_apache_kafka.py",
    "compat/test_compaction_change_over.py",
    "compat/test_compiled.py",
    "compat/test_kafka_folders.py",
    "compat/test_remote_reads_by_clients.py",
    "compat/test_same_as_kafka_39.py",
    "compat/test_suite_kafka_python.py",
    "compat/test_transactions_change_over.py",
    "console/test_console_in_browser.py",
    "console/test_screens_hostile.py::test_whatever_a_broker_says_is_shown_as_text[size1]",
    "differential/rights/test_same_rights.py::test_the_answers_are_the_same",
    "differential/test_dual_stack_answers.py",
    "differential/test_fresh_brokers.py",
    "differential/test_same_answers.py",
    "differential/tools/test_tools.py",
    "faults/test_failing_disk.py",
    "faults/test_moves_killed.py",
    "faults/test_system_calls.py",
    "groups/test_groups_storm.py",
    "netproc/test_large_transactions.py::test_an_end_in_many_partitions_takes_no_turn_alone[3600]",
    "netproc/test_largest_turns.py::test_many_times_the_rows_take_more_turns_and_no_longer_ones",
    "quotas/test_quota_clients.py::test_a_kafka_python_producer_says_that_it_waits",
    "sasl/test_nodes_logged_in.py",
    "sim/ seeds after the first ten",
    "software/test_flink.py",
    "software/test_franz_go.py",
    "software/test_identity_provider.py",
    "software/test_kafkajs.py",
    "software/test_python_frameworks.py",
    "software/test_schema_registry.py",
    "spark/test_first_job.py",
    "spark/test_job_bench.py::test_a_job_is_measured_and_leaves_nothing",
    "spark/test_job_by_tokens.py",
    "spark/test_secured_job.py::test_a_job_logs_in_and_nothing_tells_its_password",
    "spark/test_schemas_registry.py",
    "spark/test_spark_delta.py",
    "spark/test_spark_demo_jobs.py",
    "spark/test_spark_exactly_once.py",
    "spark/test_spark_tables.py",
    "spark/test_table_inputs.py",
    "spark/test_tables_in_buckets.py",
    "systemd/test_booted_units.py",
    "systemd/test_container_ends.py",
    "systemd/test_debian_package.py::test_it_comes_serves_is_upgraded_and_goes",
    "tls/test_nodes_secured.py::test_a_cluster_changes_over_node_by_node",
    "tls/test_same_answers_secured.py::test_the_answers_over_tls_are_the_same",
    "transactions/",
)
NIGHTLY = (
    "authorization/test_a_million_questions.py",
    "cluster/test_exactly_once_while_nodes_die.py",
    "control/ seeds after the first ten",
    "controller/ seeds after the first ten",
    "coordinators/groups/ seeds after the first ten",
    "differential/rights/test_same_as_whoever.py",
    "exporter/ seeds after the first ten",
    "faults/test_a_thousand_faults.py",
    "handlers/ seeds after the first ten",
    "hostile/ seeds after the first ten",
    "ioproc/ seeds after the first ten",
    "logstore/ seeds after the first ten",
    "netproc/ seeds after the first ten",
    "sasl/test_renewed_logins.py::test_ten_minutes_of_logins_that_hold_for_two_seconds",
    "sim/ seeds after the first forty",
    "software/test_burrow.py",
    "software/test_rskafka.py",
    "software/test_suites_of_rights.py",
    "spark/test_demo_run.py",
    "spark/test_job_processes.py",
    "spark/test_spark_killed.py",
    "spark/test_tables_killed.py",
    "tls/test_twenty_thousand.py",
    "upgrade/test_installed_wheels.py",
    "upgrade/test_made_wheels.py",
)
"""Proofs that take minutes and that few changes can break."""


def add_marks(config):
    config.addinivalue_line(
        "markers", "proof: long; README's command leaves it out, .ci/run runs it"
    )
    config.addinivalue_line("markers", "nightly: a proof that .ci/run leaves out, too")


def mark_and_order(items, worker):
    """Marks the proofs, and orders the files for several workers. worker: whether this process is
    one of them."""
    for item in items:
        name = item.nodeid.removeprefix("tests/")
        if name.startswith(PROOFS) or name.startswith(NIGHTLY):
            item.add_marker(pytest.mark.proof)
        if name.startswith(NIGHTLY):
            item.add_marker(pytest.mark.nightly)
    if worker:
        files = [item.nodeid.partition("::")[0] for item in items]
        place = {name: at for at, name in enumerate(order_files(dict.fromkeys(files), durations()))}
        items.sort(key=lambda item: place[item.nodeid.partition("::")[0]])


def order_files(names, took):
    """The names in the order in which workers take them. took: file → (seconds, of them seconds of
    processor time); others are SHORT.

    The longest come first, so that all workers end at about the same time. Files that mostly wait
    and files that mostly compute alternate by their share of the whole: among waiting ones alone
    the processors would idle, and among computing ones alone each would take longer.
    """
    kinds = [[], []]
    for name in sorted(names, key=lambda name: -took.get(name, SHORT)[0]):
        seconds, processor = took.get(name, SHORT)
        kinds[processor >= seconds / 2].append((name, seconds))
    placed = []
    for kind in kinds:
        total, passed = sum(seconds for _, seconds in kind), 0.0
        for name, seconds in kind:
            placed.append((passed / total, name))
            passed += seconds
    return [name for _, name in sorted(placed)]


def durations():
    """File → (seconds, of them seconds of processor time), of those that take long."""
    lines = (HERE / "durations.txt").read_text().splitlines()
    rows = (line.split() for line in lines if line and not line.startswith("#"))
    return {name: (float(seconds), float(processor)) for seconds, processor, name in rows}


def proof_paths():
    """Files and folders that have all proofs of `.ci/run`, without duplicates."""
    return sorted({f"tests/{re.split('::| ', name)[0]}" for name in PROOFS})


if __name__ == "__main__":
    print(*proof_paths())
