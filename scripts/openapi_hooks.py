"""Hints that schemathesis needs beside the description, so that it gets behind the first check of a request."""

import random

import schemathesis

import openapi_lines  # noqa: F401 (for what it registers)

# A request may have one member of each group.
ONE_OF = [
    ("delay", "at", "at_ms", "level", "timeline"),
    ("payload", "payload_base64", "timeline"),
    ("cron", "every", "fixed_delay"),
    ("key", "id", "keys", "ids"),
]
DURATIONS = ["0s", "5ms", "1s", "90s", "30m", "2h", "15d"]


def thinned(body, chance):
    """The body with one member of each group, and with durations, times and such that mean something half of the time."""
    for group in ONE_OF:
        named = [name for name in group if name in body]
        if "op" in body:
            named = [name for name in named if name != "key"]
        for name in named[1:]:
            del body[name]
    if "payload_base64" not in body:
        body.pop("content_type", None)
    if "cron" not in body:
        body.pop("tz", None)
    for name in ("delay", "wait", "lease", "expire_after", "max_wait", "every", "by", "base", "for"):
        if name in body and chance.random() < 0.7:
            body[name] = chance.choice(DURATIONS[:4] if name == "wait" else DURATIONS)
    if "wait" in body:
        body["wait"] = "5ms"
    for name in ("at", "start", "end", "due_from", "due_to"):
        if name in body and chance.random() < 0.7:
            body[name] = f"20{chance.randrange(10, 99)}-01-01T00:00:00Z"
    if "cron" in body:
        body["cron"] = chance.choice(["0 2 * * *", "*/5 * * * *", "61 * * * *", body["cron"]])
        if "tz" in body:
            body["tz"] = chance.choice(["Europe/Berlin", "America/New_York", "Mars/Base"])
    if chance.random() < 0.7:
        body.pop("max_wait", None)
    return body


def seeded(value):
    return random.Random(repr(value))


@schemathesis.hook
def map_body(ctx, body):
    """Good bodies only: what is to be bad stays bad."""
    chance = seeded(body)
    if isinstance(body, dict):
        return thinned(dict(body), chance)
    if isinstance(body, list):
        return [thinned(dict(line), chance) if isinstance(line, dict) else line for line in body]
    return body


@schemathesis.hook
def map_path_parameters(ctx, parameters):
    """Few names, so that requests meet what others have left."""
    if not isinstance(parameters, dict):
        return parameters
    chance = seeded(parameters)
    names = {"q": ["a", "b", "shop/c"], "key": ["k1", "k2", "ü:3"], "name": ["n1", "n2"]}
    for name, few in names.items():
        if name in parameters and chance.random() < 0.7:
            parameters[name] = chance.choice(few)
    return parameters


@schemathesis.hook
def map_headers(ctx, headers):
    """A version that no answer has named matches nothing."""
    if isinstance(headers, dict) and seeded(headers).random() < 0.8:
        headers.pop("If-Match", None)
    return headers
