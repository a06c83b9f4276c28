"""Bodies of one JSON object a line, which schemathesis does not know of itself."""

import json

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(ctx, value):
    if isinstance(value, list):
        return b"".join(json.dumps(line).encode() + b"\n" for line in value)
    return json.dumps(value).encode()


@schemathesis.deserializer("application/x-ndjson")
def objects(ctx, response):
    return [json.loads(line) for line in response.content.splitlines()]
