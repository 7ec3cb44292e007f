"""Connections that this node opens to other nodes."""
