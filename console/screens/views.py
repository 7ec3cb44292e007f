"""Which view shows which kind of place."""

from collections.abc import Callable
from typing import Final

from console.screens import places
from console.screens.access.acls import AclsView
from console.screens.access.audit import AuditView
from console.screens.access.can import CanView
from console.screens.access.certificates import CertificatesView
from console.screens.access.users import UsersView
from console.screens.clients import ClientsView
from console.screens.group import GroupView
from console.screens.groups import GroupsView
from console.screens.heat import HeatView
from console.screens.job import JobView
from console.screens.jobs import JobsView
from console.screens.nodes import NodesView
from console.screens.overview import OverviewView
from console.screens.places import Place
from console.screens.preview import PreviewView
from console.screens.quota import QuotaView
from console.screens.quotas import QuotasView
from console.screens.records.browse import RecordsView
from console.screens.records.record import RecordView
from console.screens.topic import TopicView
from console.screens.topics import TopicsView
from console.screens.topology import TopologyView
from console.screens.trash import TrashView
from console.screens.txns import TxnsView
from console.screens.view import View
from console.screens.world import World

VIEWS: Final[dict[str, Callable[[Place, World], View]]] = {
    places.OVERVIEW: OverviewView,
    places.TOPICS: TopicsView,
    places.TOPIC: TopicView,
    places.TOPOLOGY: TopologyView,
    places.HEAT: HeatView,
    places.TRASH: TrashView,
    places.GROUPS: GroupsView,
    places.GROUP: GroupView,
    places.QUOTAS: QuotasView,
    places.QUOTA: QuotaView,
    places.JOBS: JobsView,
    places.JOB: JobView,
    places.PREVIEW: PreviewView,
    places.CLIENTS: ClientsView,
    places.NODES: NodesView,
    places.TXNS: TxnsView,
    places.RECORDS: RecordsView,
    places.TAIL: RecordsView,
    places.RECORD: RecordView,
    places.USERS: UsersView,
    places.ACLS: AclsView,
    places.CAN: CanView,
    places.AUDIT: AuditView,
    places.CERTIFICATES: CertificatesView,
}
"""Those that need more than a place and the world (the log) are made by the App."""
