"""The consumer group of a job's name, which has the job's position as committed offsets."""

from dataclasses import dataclass

from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.groups import groups
from console.model.jobs.jobs import settings_of
from spark_local.folder import JobFolder
from spark_local.mistakes import JobFileError


@dataclass(slots=True, frozen=True)
class JobGroup:
    """link: to the broker of the job. offsets: committed ones. unknown: why it cannot be looked at,
    or why it is not the job's to delete; "" else."""

    name: str
    link: Link
    offsets: int = 0
    unknown: str = ""


def find_group(link: Link, place: JobFolder) -> JobGroup:
    """The group of a job, asked at the job's own broker; without offsets where it does not exist.
    link: for a job that names no broker."""
    asked = _link_of(link, place)
    try:
        (group,) = groups.described(asked, [place.name])
        groups.refuse_live(group, "it cannot be deleted")
        return JobGroup(place.name, asked, len(groups.committed(asked, [place.name])[place.name]))
    except Failure as failure:
        absent = failure.name in ("GROUP_ID_NOT_FOUND", "COORDINATOR_NOT_AVAILABLE")
        return JobGroup(place.name, asked, unknown="" if absent else failure.message)


def delete_group(group: JobGroup) -> str:
    """Deletes it where it has offsets. "", or why it stays."""
    if group.unknown or not group.offsets:
        return group.unknown
    try:
        failure = groups.delete(group.link, [group.name])[group.name]
    except Failure as away:
        failure = away
    gone = failure is None or failure.name == "GROUP_ID_NOT_FOUND"
    return "" if gone or failure is None else failure.message


def _link_of(link: Link, place: JobFolder) -> Link:
    try:
        settings = settings_of(link, place.job())
    except (Failure, JobFileError):
        return link  # its file says nothing, or what cannot be used
    read_only = link.read_only
    return Link(settings.bootstrap, dict(settings.properties), link.timeout_s, read_only=read_only)
