"""A server that answers as S3 does, on loopback, for tests of what lies in buckets."""

import contextlib
import urllib.request

import pytest


@contextlib.contextmanager
def serving(monkeypatch):
    """The URL of a prefix in an empty bucket; the usual variables say where it is."""
    pytest.importorskip("obstore")
    servers = pytest.importorskip("moto.server")
    server = servers.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        # Buckets belong to the process, not to the server: those of a test before this one go.
        for path, method in (("moto-api/reset", "POST"), ("penstock", "PUT")):
            request = urllib.request.Request(f"http://{host}:{port}/{path}", method=method)
            urllib.request.urlopen(request).close()
        yield "s3://penstock/events"
    finally:
        server.stop()
