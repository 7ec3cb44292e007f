"""An identity provider in the test's own process: keys, tokens, and a server that gives both."""

import base64
import http.server
import json
import threading
import time
import urllib.parse

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

AUDIENCE, ISSUER = "kafka", "https://issuer.example.org"


class Provider:
    """The issuer of tokens. kinds: of its keys."""

    def __init__(self):
        self.keys = {}
        self.asked = 0
        self.add_key("first")

    def add_key(self, kid, kind="RS256", bits=2048):
        made = ec.generate_private_key(ec.SECP256R1()) if kind == "ES256" else (
            rsa.generate_private_key(65537, bits))  # fmt: skip
        self.keys[kid] = (kind, made)

    def jwks(self):
        found = []
        for kid, (kind, key) in self.keys.items():
            public = jwt.get_algorithm_by_name(kind).to_jwk(key.public_key(), as_dict=True)
            public.pop("key_ops", None)
            found.append(public | {"kid": kid, "alg": kind, "use": "sig"})
        return json.dumps({"keys": found}).encode()

    def claims(self, **changed):
        now = int(time.time())
        usual = {"sub": "carol", "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 300,
                 "scope": "produce"}  # fmt: skip
        return {key: value for key, value in (usual | changed).items() if value is not None}

    def token(self, kid="first", head=(), **changed):
        kind, key = self.keys[kid]
        return jwt.encode(self.claims(**changed), key, kind, headers={"kid": kid, **dict(head)})

    def unsigned(self):
        return jwt.encode(self.claims(), None, "none")

    def by_public_key(self):
        """HMAC with the public key as the secret, which a careless server takes."""
        public = json.loads(self.jwks())["keys"][0]["n"]
        head = {"alg": "HS256", "kid": "first", "typ": "JWT"}
        parts = [base64.urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=")
                 for one in (head, self.claims())]  # fmt: skip
        signer = jwt.get_algorithm_by_name("HS256")
        signature = signer.sign(b".".join(parts), public.encode())
        return b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()

    def bad(self):
        """Tokens that nobody may take, by what is wrong."""
        now = int(time.time())
        stranger = Provider.__new__(Provider)
        stranger.keys = {}
        stranger.add_key("first")
        return {
            "expired": self.token(exp=now - 60, iat=now - 120),
            "that ends before it begins": self.token(exp=now - 5),
            "without an end": self.token(exp=None),
            "without a beginning": self.token(iat=None),
            "not yet": self.token(nbf=now + 120),
            "of another audience": self.token(aud="other"),
            "without an audience": self.token(aud=None),
            "of another issuer": self.token(iss="https://other"),
            "without an issuer": self.token(iss=None),
            "without a user": self.token(sub=None),
            "of an empty user": self.token(sub=" "),
            "with an empty scope": self.token(scope=[""]),
            "unsigned": self.unsigned(),
            "signed by the public key": self.by_public_key(),
            "signed by a stranger": stranger.token(),
            "of an unknown key": self.token(head={"kid": "other"}),
            "garbage": "a.b.c",
            "one part": "garbage",
        }


class Served(Provider):
    """Behind TLS where a context is given: its keys at `url`, and tokens for `clients` (id →
    secret) at `token_url`. granted: the scopes of all tokens that it gave. life_s: of a token, ""
    is not told. answered: what is answered in place of a token."""

    def __init__(self, context=None):
        super().__init__()
        provider = self
        self.clients, self.granted = {}, []
        self.life_s, self.answered = 300, None

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                provider.asked += 1
                self.answer(provider.status, provider.jwks())

            def do_POST(self):
                size = int(self.headers["Content-Length"])
                form = urllib.parse.parse_qs(self.rfile.read(size).decode())
                said = self.headers.get("Authorization", "").removeprefix("Basic ")
                client, _, secret = base64.b64decode(said).decode().partition(":")
                if provider.answered is not None:
                    self.answer(*provider.answered)
                elif form["grant_type"] != ["client_credentials"]:
                    self.answer(400, b'{"error":"unsupported_grant_type"}')
                elif provider.clients.get(client) != secret:
                    self.answer(401, b'{"error":"invalid_client"}')
                else:
                    provider.granted.append(form.get("scope", [""])[0])
                    told = {"access_token": provider.token(sub=client), "token_type": "Bearer"}
                    told |= {"expires_in": provider.life_s} if provider.life_s else {}
                    self.answer(200, json.dumps(told).encode())

            def answer(self, status, data):
                self.send_response(status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.status = 200
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://localhost:{self.server.server_port}/keys"
        self.token_url = f"{scheme}://localhost:{self.server.server_port}/token"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
