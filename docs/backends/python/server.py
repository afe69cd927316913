"""A game's backend in Python, with PyJWT."""

import http.client
import json
import os
import re
import socket
import threading
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt

ISSUER = os.environ["AUTH_ISSUER"]
AUDIENCE = os.environ["AUTH_AUDIENCE"]
JWKS_URL = os.environ["AUTH_JWKS_URL"]
LEEWAY = 60  # seconds that two clocks may differ
REFETCH = 30  # seconds between two fetches
REFRESH = 600  # seconds after which keys are fetched again, and revoked ones forgotten
LONGEST = 86_400  # seconds that a token may live
LARGEST = 65_536  # bytes of a key set


class HereConnection(http.client.HTTPConnection):
    """A connection to this machine, whatever name it has in the address."""

    def connect(self):
        try:
            self.sock = socket.create_connection(("127.0.0.1", self.port), self.timeout)
        except ConnectionRefusedError:
            self.sock = socket.create_connection(("::1", self.port), self.timeout)


class HereHandler(urllib.request.HTTPHandler):
    """Names under localhost mean this machine (RFC 6761 section 6.3), but
    some systems cannot resolve them."""

    def http_open(self, request):
        name = urllib.parse.urlsplit(request.full_url).hostname
        here = name == "localhost" or name.endswith(".localhost")
        return self.do_open(HereConnection if here else http.client.HTTPConnection, request)


class StayHandler(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the party that can redirect must not choose the keys."""

    def redirect_request(self, *_):
        return None


OPENER = urllib.request.build_opener(HereHandler, StayHandler)


class NoKeySet(Exception):
    """There are no keys to verify with."""


class KeySet:
    """The keys, fetched for the first token, for an unknown kid, and every ten minutes."""

    def __init__(self, url):
        self.url = url
        self.keys = {}
        self.asked = None
        self.fetched = None
        self.lock = threading.Lock()

    def key(self, kid):
        with self.lock:
            if (kid not in self.keys or self._is_old()) and self._may_fetch():
                self.asked = time.monotonic()
                try:
                    with OPENER.open(self.url, timeout=5) as response:
                        document = response.read(LARGEST + 1)
                    if len(document) > LARGEST:
                        raise ValueError("it has more than 64 KiB")
                    document = json.loads(document)
                    if not isinstance(document, dict):
                        raise ValueError("it is no object")
                    keys = jwt.PyJWKSet.from_dict(document).keys
                    self.keys = {key.key_id: key for key in keys if key.algorithm_name == "ES256"}
                    self.fetched = self.asked
                except (OSError, ValueError, RecursionError, http.client.HTTPException, jwt.PyJWTError) as error:
                    reason = getattr(error, "reason", error)
                    if isinstance(reason, socket.gaierror):
                        name = urllib.parse.urlsplit(self.url).hostname
                        reason = f"could not resolve {name}: {reason}"
                    print(f"the key set cannot be fetched: {reason}", flush=True)
            if not self.keys:
                raise NoKeySet
            if kid not in self.keys:
                raise jwt.InvalidTokenError("unknown kid")
            return self.keys[kid]

    def _may_fetch(self):
        wait = REFETCH if self.keys else 1
        return self.asked is None or time.monotonic() - self.asked >= wait

    def _is_old(self):
        return self.fetched is None or time.monotonic() - self.fetched >= REFRESH


KEYS = KeySet(JWKS_URL)


def verify(token):
    """Returns the player of a game token. Key data on sub; username can change."""
    header = jwt.get_unverified_header(token)
    if header.get("alg") != "ES256" or header.get("typ") != "JWT" or "crit" in header:
        raise jwt.InvalidTokenError("not a game token")
    if not isinstance(header.get("kid"), str):
        raise jwt.InvalidTokenError("no kid")
    claims = jwt.decode(
        token,
        KEYS.key(header["kid"]),
        algorithms=["ES256"],
        issuer=ISSUER,
        audience=AUDIENCE,
        leeway=LEEWAY,
        # A game token is for exactly one audience, so a list is refused.
        options={"require": ["sub", "exp", "iat", "iss", "aud"], "strict_aud": True},
    )
    kinds = {"sub": str, "username": str, "is_anon": bool, "exp": int, "iat": int}
    if any(type(claims.get(name)) is not kind for name, kind in kinds.items()):
        raise jwt.InvalidTokenError("a claim is missing")
    if not claims["sub"].strip():
        raise jwt.InvalidTokenError("sub is empty")
    if claims["exp"] - claims["iat"] > LONGEST:
        raise jwt.InvalidTokenError("it lives longer than a token of the platform")
    return {name: claims[name] for name in ("sub", "username", "is_anon")}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        bearer = re.fullmatch(r"(?i:bearer) +(\S+)", self.headers.get("Authorization", ""))
        if not bearer:
            return self.problem(401, "not-signed-in", "This needs a player.")
        try:
            player = verify(bearer[1])
        except NoKeySet:
            return self.problem(503, "unavailable", "Players cannot be verified at the moment.")
        except jwt.PyJWTError as error:
            print(f"refused: {error}", flush=True)
            return self.problem(401, "not-signed-in", "The game token is not valid.")
        if self.path != "/api/me":
            return self.problem(404, "not-found", "There is nothing here.")
        self.answer(200, "application/json", player)

    def problem(self, status, slug, detail):
        body = {"type": f"urn:platform:{slug}", "status": status, "detail": detail}
        self.answer(status, "application/problem+json", body)

    def answer(self, status, kind, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        if status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        self.wfile.write(data)


if __name__ == "__main__":
    port = int(os.environ.get("PORT", "8788"))
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
