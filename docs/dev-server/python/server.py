"""A dev server with Python alone: the folder's files, and the four paths."""

import functools
import http.server
import json
import os
import re
import subprocess

FOLDER = os.environ.get("FOLDER", "dist")
PORT = int(os.environ.get("PORT", "5173"))
LOGIN = b"""<!doctype html>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<script defer src="/__platform/runtime.js"></script>
"""

# What browsers call this machine. Any other name may be that of a foreign page which was led here (DNS
# rebinding), and would pass for the game's own.
LOCAL = re.compile(r"(([\w-]+\.)*localhost|\d+(\.\d+){3}|\[[\da-f:.]+\])(:\d+)?", re.ASCII | re.IGNORECASE)


class Problem(Exception):
    def __init__(self, status, detail):
        self.body = {"type": "about:blank", "status": status, "detail": detail}


def run(*arguments):
    """What the command-line tool prints."""
    try:
        done = subprocess.run(["platform", *arguments], capture_output=True, timeout=20)
    except FileNotFoundError:
        raise Problem(503, 'The command "platform" is not installed.') from None
    except subprocess.TimeoutExpired:
        raise Problem(504, "The platform did not answer in time.") from None
    if done.returncode == 0:
        return done.stdout
    problem = Problem(502, done.stderr.decode(errors="replace").strip())
    if done.returncode == 3:
        problem = Problem(401, 'Sign in first: run "platform login".')
    try:
        said = json.loads(done.stdout or done.stderr)  # a problem of the platform, relayed as it came
        if said["status"] >= 400 and said["detail"]:
            problem.body = said
    except (ValueError, KeyError, TypeError):
        pass
    raise problem


runtime = functools.cache(lambda: run("runtime"))


class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        path = self.path.partition("?")[0]
        if not path.startswith("/__platform/"):
            super().do_GET()
        elif path == "/__platform/runtime.js":
            self.answer("text/javascript; charset=utf-8", runtime)
        elif path == "/__platform/login":
            self.answer("text/html; charset=utf-8", lambda: LOGIN)
        else:
            self.answer("", self.nothing)

    def do_POST(self):
        self.answer("application/json", self.token)

    def nothing(self):
        raise Problem(404, "There is no such path.")

    def token(self):
        wanted = re.fullmatch(r"/__platform/token/(user|guest)/([1-9]|10)", self.path)
        if not wanted:
            self.nothing()
        # A token is for the game's own page, not for any site that is open meanwhile. Browsers that do
        # not say Sec-Fetch-Site say Origin.
        host, origin = self.headers["Host"], self.headers["Origin"]
        own = self.headers["Sec-Fetch-Site"] in (None, "same-origin")
        if not own or origin not in (None, f"http://{host}", f"https://{host}"):
            raise Problem(403, "Only the game’s own page may ask for a test token.")
        guest = ["--guest"] if wanted[1] == "guest" else []
        return run("test-token", wanted[2], *guest, "--json")

    def answer(self, kind, make):
        status = 200
        try:
            if not LOCAL.fullmatch(self.headers["Host"] or ""):
                raise Problem(403, "Open the game as localhost or by an IP address.")
            body = make()
        except Problem as problem:
            status, kind = problem.body["status"], "application/problem+json"
            body = json.dumps(problem.body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    handler = functools.partial(Handler, directory=FOLDER)
    http.server.ThreadingHTTPServer(("127.0.0.1", PORT), handler).serve_forever()
