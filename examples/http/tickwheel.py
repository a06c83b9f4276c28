"""The six stories share this: calls to a Tickwheel server, with the standard library alone."""

import http.client
import json
import os
import sys
import urllib.error
import urllib.request

SERVER = (os.environ.get("TICKWHEEL_SERVER") or "http://127.0.0.1:8463").rstrip("/")
# The server is named by its address: a proxy of the environment is not meant for it.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def expect(status, method, path, body=None, if_match=None):
    """Sends one request and returns the answer, which has to have this status; it may be a refusal."""
    headers = {"Content-Type": "application/json"}
    if if_match is not None:
        headers["If-Match"] = f'"{if_match}"'
    data = None if body is None else json.dumps(body).encode()
    try:
        request = urllib.request.Request(SERVER + path, data, headers, method=method)
        try:
            reply = OPENER.open(request, timeout=30)
        except urllib.error.HTTPError as refusal:
            reply = refusal
        with reply:
            found, answer = reply.status, json.load(reply)
    except (OSError, ValueError, http.client.HTTPException) as error:
        sys.exit(f"no Tickwheel server answers at {SERVER}: {error}")
    if found != status:
        sys.exit(f"not as told: {method} {path} answered {found} instead of {status}: {json.dumps(answer)}")
    return answer


def same(found, told):
    if found != told:
        sys.exit(f"not as told: {found} instead of {told}")


def advance(by):
    """Moves the server's clock and returns its time, such as 2026-11-21T09:43:41.295Z."""
    return expect(200, "POST", "/v1/clock/advance", {"by": by})["now"]


def begin(queue):
    """Empties the story's own queue of what a run that broke off may have left there."""
    advance("0s")  # refused, before anything is touched, by a server that runs on real time
    for which in ({}, {"state": "dead"}):
        expect(200, "POST", f"{queue}/cancel", {"filter": which, "revoke": True})


def end(queue):
    counts = expect(200, "GET", queue)
    same({state: counts[state] for state in ("scheduled", "ready", "leased", "dead") if counts[state]}, {})
    print("nothing is left to do")
