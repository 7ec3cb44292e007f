"""The client's side of SCRAM, by the words of RFC 5802 and the standard library alone."""

import base64
import hashlib
import hmac
import os


class ScramClient:
    """expected: what the server must answer to the last message. extensions: behind the nonce of
    the first one."""

    def __init__(self, scram, user, password, extensions=""):
        self.digest = scram.digest
        self.password = password
        name = user.replace("=", "=3D").replace(",", "=2C")
        self.bare = f"n={name},r={base64.b64encode(os.urandom(18)).decode()}{extensions}"
        self.expected = b""

    def first(self):
        return f"n,,{self.bare}".encode()

    def final(self, challenge):
        told = dict(part.split("=", 1) for part in challenge.decode().split(","))
        salt, count = base64.b64decode(told["s"]), int(told["i"])
        salted = hashlib.pbkdf2_hmac(self.digest, self.password.encode(), salt, count)
        key = hmac.digest(salted, b"Client Key", self.digest)
        stored = hashlib.new(self.digest, key).digest()
        unproved = f"c=biws,r={told['r']}"
        signed = f"{self.bare},{challenge.decode()},{unproved}".encode()
        proof = bytes(map(int.__xor__, key, hmac.digest(stored, signed, self.digest)))
        server = hmac.digest(salted, b"Server Key", self.digest)
        self.expected = b"v=" + base64.b64encode(hmac.digest(server, signed, self.digest))
        return f"{unproved},p={base64.b64encode(proof).decode()}".encode()
