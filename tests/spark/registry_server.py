"""A schema registry for tests: the part of Confluent's REST API that jobs and commands use, in
memory. Avro's compatibility is one rule: a reader's field that no writer has needs a default.
"""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote


class TestRegistry:
    """Subjects with their versions. `asked` has every path."""

    __test__ = False

    def __init__(self, login=None):
        self.login = login
        self.schemas = []
        self.subjects = {}
        self.asked = []
        self.url = ""

    def register(self, subject, schema, kind="AVRO", references=()):
        """The id of a schema as the subject's next version."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        told = (kind, text, list(references))
        if told not in self.schemas:
            self.schemas.append(told)
        number = self.schemas.index(told) + 1
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def refusal(self, subject, text, kind):
        """Why a schema is no next version."""
        versions = self.subjects.get(subject)
        if not versions or kind != "AVRO":
            return ""
        old = {one["name"]: one["type"] for one in self._fields(self.schemas[versions[-1] - 1][1])}
        for one in self._fields(text):
            if one["name"] not in old and "default" not in one:
                return f"READER_FIELD_MISSING_DEFAULT_VALUE: {one['name']}"
            if one["name"] in old and old[one["name"]] != one["type"]:
                return f"TYPE_MISMATCH: {one['name']}"
        return ""

    def _fields(self, text):
        return json.loads(text)["fields"]

    def answer(self, method, path, body):
        """(status, content) of a request."""
        parts = [unquote(one) for one in path.partition("?")[0].strip("/").split("/")]
        match (method, *parts):
            case ("GET", "schemas", "ids", number) if 0 < int(number) <= len(self.schemas):
                return 200, self._told(int(number))
            case ("GET", "subjects", subject, "versions") if subject in self.subjects:
                return 200, [at + 1 for at in range(len(self.subjects[subject]))]
            case ("GET", "subjects", subject, "versions", version) if subject in self.subjects:
                versions = self.subjects[subject]
                at = len(versions) if version == "latest" else int(version)
                if at <= len(versions):
                    number = versions[at - 1]
                    return 200, {**self._told(number), "id": number, "version": at}
            case ("POST", "subjects", subject, "versions"):
                kind = body.get("schemaType", "AVRO")
                if why := self.refusal(subject, body["schema"], kind):
                    return 409, {"error_code": 409, "message": why}
                return 200, {"id": self.register(subject, body["schema"], kind)}
            case ("POST", "compatibility", "subjects", subject, "versions", "latest"):
                if subject in self.subjects:
                    why = self.refusal(subject, body["schema"], body.get("schemaType", "AVRO"))
                    return 200, {"is_compatible": not why, "messages": [why] * bool(why)}
        return 404, {"error_code": 40401, "message": "not found"}

    def _told(self, number):
        kind, text, references = self.schemas[number - 1]
        told = {"schema": text} | ({"references": references} if references else {})
        return told if kind == "AVRO" else told | {"schemaType": kind}


@contextmanager
def serving(registry):
    """The registry, at its `url`, until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self._answer("GET", None)

        def do_POST(self):
            length = int(self.headers["Content-Length"])
            self._answer("POST", json.loads(self.rfile.read(length)))

        def _answer(self, method, body):
            registry.asked.append(self.path)
            if registry.login and self.headers.get("Authorization") != registry.login:
                status, content = 401, {"error_code": 401, "message": "Unauthorized"}
            else:
                status, content = registry.answer(method, self.path, body)
            told = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        registry.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
