"""Voters as records of the metadata log (KIP-853): KRaftVersionRecord and VotersRecord."""

from collections.abc import Iterable

from appliance.metadata.checkpoint import VoterSet
from appliance.quorum.voters import STATIC, ControllerEndpoint, Electorate, Voter
from appliance.wire import control_records as control


def electorate_after(before: Electorate, messages: Iterable[control.ControlRecord]) -> Electorate:
    """The electorate after these control records behind `before`."""
    version, voters = before
    for one in messages:
        if isinstance(one, control.KRaftVersionRecord):
            version = one.k_raft_version
        elif isinstance(one, control.VotersRecord):
            voters = tuple(sorted(_voter(row) for row in one.voters))
    return Electorate(version, voters)


def of_snapshot(said: VoterSet, static: Electorate) -> Electorate:
    """The electorate of a snapshot and the log behind it; without any record of voters it is
    `static`.
    """
    if said.kraft_version == STATIC:
        return static
    before = Electorate(said.kraft_version, ())
    return before if said.record is None else electorate_after(before, (said.record,))


def for_snapshot(electorate: Electorate) -> VoterSet:
    """As a snapshot names them; static voters it does not."""
    version = electorate.kraft_version
    return VoterSet(version, record(electorate.voters) if version > STATIC else None)


def record(voters: Iterable[Voter]) -> control.VotersRecord:
    """The voters from where it stands."""
    return control.VotersRecord(
        voters=tuple(
            control.VotersRecordVoter(
                voter_id=one.node_id,
                voter_directory_id=one.directory,
                endpoints=tuple(
                    control.VoterEndpoint(name=end.name, host=end.host, port=end.port)
                    for end in one.endpoints
                ),
                k_raft_version_feature=control.KRaftVersionFeature(
                    min_supported_version=one.lowest, max_supported_version=one.highest
                ),
            )
            for one in voters
        )
    )


def records(electorate: Electorate) -> list[control.ControlRecord]:
    """Both, for who begins with dynamic voters."""
    version = control.KRaftVersionRecord(k_raft_version=electorate.kraft_version)
    return [version, record(electorate.voters)]


def _voter(row: control.VotersRecordVoter) -> Voter:
    feature = row.k_raft_version_feature
    return Voter(
        row.voter_id,
        row.voter_directory_id,
        tuple(ControllerEndpoint(one.name, one.host, one.port) for one in row.endpoints),
        feature.min_supported_version,
        feature.max_supported_version,
    )
