"""`penstock doctor`."""

import os

import click

from console.flags.confirm import asked, at_terminal, yes_option
from console.flags.folder import data_option, folder, profile_named
from console.flags.output import formatted
from console.model.asking.failure import usage
from console.model.asking.link import asking
from console.model.asking.profiles import looking, where
from console.model.doctor import gather, judge
from console.model.doctor.facts import Facts
from console.model.doctor.finding import Finding
from console.model.doctor.host import Host
from console.model.doctor.remedies import apply
from console.show.findings import lines, rows, summary
from console.show.output import emit, print_note

_LIMIT_S = 10.0


@click.command("doctor")
@data_option
@click.option(
    "-b", "--bootstrap-server", "bootstrap", metavar="HOST:PORT",
    help="The appliance at this address, instead of a folder.",
)  # fmt: skip
@click.option("--fix", is_flag=True, help="Apply the safe remedies; asks before each.")
@yes_option
@formatted
def command(data: str | None, bootstrap: str | None, fix: bool, yes: bool, output: str) -> int:
    """Check this host and the appliance on it: problems, worst first, each with a remedy.

    The appliance need not run, and gets no request when --data names its folder. For an appliance
    on another host only disks and addresses are checked. Remedies that need root are printed; as
    root, --fix applies them.

    Exit code 0: no problem, or notes only; 1: warnings; 2: a danger to service or data, or a usage
    error; 3: no answer at -b.

    \b
    penstock doctor
    penstock doctor --data /var/lib/penstock -o json
    penstock doctor -b localhost:9092 --fix
    """
    if data is not None and bootstrap is not None:
        raise usage("say --data or -b, not both")
    if fix and not yes and not at_terminal():
        raise usage("--fix asks before each remedy: this needs --yes")
    host = Host()
    facts = _look(host, data, bootstrap)
    found = judge.findings(facts)
    if fix and _fixed(host, found, yes=yes):
        facts = _look(host, data, bootstrap)
        found = judge.findings(facts)
    for remark in facts.remarks:
        print_note(remark)
    if output == "table":
        for line in lines(found, facts.uid):
            print(line)
        print_note(summary(found))
    else:
        emit(rows(found), output, name="check")
    return judge.code(found)


def _look(host: Host, data: str | None, bootstrap: str | None) -> Facts:
    said = where(bootstrap, profile_named())
    if bootstrap is None and not data and said.name and not said.data:
        bootstrap = said.bootstrap
    if bootstrap is None:
        return gather.of_folder(host, os.path.join(os.curdir, folder(data, None)))
    link = looking(said, _LIMIT_S)
    with asking(link):
        return gather.of_link(host, link)


def _fixed(host: Host, found: list[Finding], *, yes: bool) -> bool:
    """Applies the allowed remedies; True if any was applied."""

    def allowed(one: Finding) -> bool:
        return yes or asked(
            f"{one.subject}: {one.found}, should be {one.wanted}: {one.why}.\n{one.typed}\nDo it?"
        )

    done = apply(host, found, allowed)
    for one in done:
        print_note(f"{one.finding.typed}: {one.problem or 'done'}")
    return bool(done)
