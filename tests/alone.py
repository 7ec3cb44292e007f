"""A node that leads everything, for tests without others."""

from appliance.ioproc.coordination.remote_markers import RemoteMarkers


class Nobody:
    """There is no other node."""

    def ask_peer(self, node, *what):
        raise AssertionError(f"node {node} is asked")


def alone(node_id=1):
    """Nothing is led elsewhere."""
    return RemoteMarkers(node_id, Nobody())
