"""Who takes OTLP over HTTP, in this process: what was pushed, as OpenTelemetry's own messages."""

import http.server
import threading
import zlib


class Receiver:
    """answers: HTTP statuses, of each request in turn; the last one for all that follow."""

    def __init__(self, *answers):
        self.got = []  # (path, headers, body)
        self.answers = list(answers or (200,))
        self.came = threading.Condition()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.headers["Content-Encoding"] == "gzip"
                with receiver.came:
                    receiver.got.append((self.path, dict(self.headers), zlib.decompress(body, 31)))
                    status = receiver.answers[0]
                    if len(receiver.answers) > 1:
                        receiver.answers.pop(0)
                    receiver.came.notify_all()
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def wait(self, count):
        """Until so many requests have come."""
        with self.came:
            assert self.came.wait_for(lambda: len(self.got) >= count, 30), self.got

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def points(body):
    """(name, kind, attributes) → value of every number that was pushed, and the resource."""
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
    )

    found = {}
    (one,) = ExportMetricsServiceRequest.FromString(body).resource_metrics
    (scope,) = one.scope_metrics
    for metric in scope.metrics:
        kind = metric.WhichOneof("data")
        for point in getattr(metric, kind).data_points:
            labels = frozenset((a.key, a.value.string_value) for a in point.attributes)
            key = metric.name, kind, labels
            assert key not in found, key
            assert 0 < point.start_time_unix_nano < point.time_unix_nano
            found[key] = point if kind == "histogram" else getattr(point, point.WhichOneof("value"))
    return found, {a.key: a.value.string_value for a in one.resource.attributes}
