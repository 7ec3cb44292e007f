"""Changes of jobs as proposals: start, stop, restart, reset and remove, as the commands do them.

A plan looks into a folder that only reads; what is applied writes there as far as its Link may.
"""

from collections.abc import Callable
from typing import Final

from console.model.asking.change import BYTES, Change, Fact, Proposal, Tier
from console.model.asking.link import Link
from console.model.jobs import jobs
from console.model.jobs.job_groups import delete_group, find_group
from console.model.jobs.jobs import failing
from spark_local.folder import Folder, JobFolder, Wish

_LIMIT_S: Final = 120.0
_NO_RUNNER: Final = "No runner is running: penstock job serve starts one, and with it the jobs."
_AGAIN: Final = "It starts again where its file says, and derives everything from there once more."
_STAYS: Final = "Topics do not change: they keep what it has written, and get what it writes again."


def propose_start(path: str, name: str) -> Proposal:
    """path: the jobs folder."""
    return _wished(path, name, "Start", jobs.start_job)


def stop(path: str, name: str) -> Proposal:
    """After the batch that is being written."""
    return _wished(path, name, "Stop", jobs.stop)


def restart(path: str, name: str) -> Proposal:
    """Stop and start."""
    return _wished(path, name, "Restart", jobs.restart)


def _wished(path: str, name: str, verb: str, wish: Callable[[JobFolder], Wish]) -> Proposal:
    ends = wish is jobs.stop

    def plan(link: Link) -> Change:
        folder = Folder(path, read_only=True)
        with failing(folder):
            place = folder.find_job(name)
            before = jobs.state_of(folder, place)
        return Change(
            verb, ("job", verb.lower(), name, "--jobs", path), apply,
            says=_says(verb, folder, place), columns=("", "before", "after"),
            rows=(("state", before or "never ran", "stopped" if ends else "running"),),
        )  # fmt: skip

    def apply(link: Link) -> str:
        folder = Folder(path, read_only=link.read_only)
        with failing(folder):
            place = folder.find_job(name)
            until = jobs.ENDED if ends else jobs.SETTLED
            (told,) = jobs.await_states(folder, [(place, wish(place))], _LIMIT_S, until=until)
        return told.state or f"{told.wanted} requested; no runner is running"

    return Proposal(f"{verb} job {name}", Tier.PLAN, plan)


def _says(verb: str, folder: Folder, place: JobFolder) -> tuple[str, ...]:
    says = [] if jobs.has_runner(folder) else [_NO_RUNNER]
    if verb != "Start":
        says.append("The current batch is finished first.")
    if verb == "Stop":
        says.append("New records wait in its sources, within their retention.")
    elif place.checkpoint.exists():
        says.append("It continues where it stopped.")
    else:
        says.append("It starts where its file says.")
    return tuple(says)


def reset(path: str, name: str) -> Proposal:
    """Irrecoverable: what it remembers is lost."""

    def plan(link: Link) -> Change:
        folder = Folder(path, read_only=True)
        with failing(folder):
            lost = folder.find_job(name).remembers()
        return Change(
            "Reset", ("job", "reset", name, "--yes", "--jobs", path), apply,
            says=(_AGAIN, _STAYS), facts=_facts(lost),
        )  # fmt: skip

    def apply(link: Link) -> str:
        folder = Folder(path, read_only=link.read_only)
        with failing(folder):
            jobs.reset(folder, folder.find_job(name), _LIMIT_S)
        return "its progress is reset"

    return Proposal(f"Reset job {name}", Tier.NAME, plan, names=(name,))


def remove(path: str, name: str) -> Proposal:
    """Irrecoverable: the copy of its file and all that it remembers are deleted."""

    def plan(link: Link) -> Change:
        folder = Folder(path, read_only=True)
        with failing(folder):
            lost = folder.find_job(name).remembers()
            group = find_group(link, folder.find_job(name))
        return Change(
            "Remove", ("job", "remove", name, "--yes", "--jobs", path), apply,
            says=("Its file, progress and logs are deleted.", "The records it wrote stay."),
            facts=(*_facts(lost), Fact("committed offsets", group.offsets)),
        )  # fmt: skip

    def apply(link: Link) -> str:
        folder = Folder(path, read_only=link.read_only)
        with failing(folder):
            place = folder.find_job(name)
            group = find_group(link, place)
            jobs.remove(folder, [place], _LIMIT_S)
        stays = delete_group(group)
        return f"removed; group {name} stays: {stays}" if stays else "removed"

    return Proposal(f"Remove job {name}", Tier.NAME, plan, names=(name,), leaves=True)


def _facts(lost: dict[str, int]) -> tuple[Fact, ...]:
    return tuple(Fact(jobs.REMEMBERED[kind], size, BYTES) for kind, size in lost.items())
