#!/usr/bin/env python3
"""Work that fails: tried again after longer and longer waits, given up, looked at, and given another life.

The clock of the server is virtual and moved by this program, so that the waits take no time:

    tickwheel serve --memory --virtual-clock
    python3 examples/http/retry_with_backoff.py

TICKWHEEL_SERVER names another server than http://127.0.0.1:8463.
"""

from tickwheel import advance, begin, end, expect, same

QUEUE = "/v1/queues/retry-with-backoff"


def due(*told):
    """A worker gets no task, or the one of this key with this attempt."""
    tasks = expect(200, "POST", f"{QUEUE}/lease")["tasks"]
    same([(task["key"], task["attempt"]) for task in tasks], list(told))
    return tasks


begin(QUEUE)

# Without a policy it would be tried again at once and for ever. The jitter is off here so that the story is
# the same each time; leave it on where many tasks fail together, or they all come back together.
retry = {"max_attempts": 3, "backoff": "exponential", "base": "1m", "jitter": 0}
expect(201, "PUT", f"{QUEUE}/tasks/invoice:1", {"payload": {"invoice": 1}, "retry": retry})
print("invoice:1 is to be mailed: 3 attempts, with waits of 1 and 2 minutes")

failures = ((1, "no answer"), (2, "no answer"), (3, "the mailbox is full"))
for attempt, reason in failures:
    [task] = due(("invoice:1", attempt))
    # The worker says why, and leaves it to the policy when to try again.
    answer = expect(200, "POST", f"{QUEUE}/nack", {"tokens": [task["token"]], "reason": reason})
    same(answer, {"results": ["nacked"]})
    print(f"attempt {attempt} fails: {reason}")
    if attempt < 3:
        due()
        advance(f"{attempt}m")

# Dead is not gone: it is out of the workers' way and kept for 30 days, with its story.
due()
dead = expect(200, "GET", f"{QUEUE}/dead")["tasks"]
same([(task["key"], task["state"], task["reason"]) for task in dead], [("invoice:1", "dead", "max_attempts")])
print("invoice:1 is dead: max_attempts")
for failure, (attempt, reason) in zip(dead[0]["failures"], failures):
    same((failure["attempt"], failure["how"], failure["reason"]), (attempt, "nacked", reason))
    print(f"  attempt {attempt} was nacked: {reason}")

# The same task again, with all of its attempts before it.
answer = expect(200, "POST", f"{QUEUE}/dead/redrive", {"key": "invoice:1"})
same((answer["state"], answer["attempt"]), ("ready", 0))
print("the mailbox has room again, and invoice:1 is redriven")

[task] = due(("invoice:1", 1))
answer = expect(200, "POST", f"{QUEUE}/ack", {"tokens": [task["token"]]})
same(answer, {"results": ["acked"]})
print("attempt 1 succeeds")

end(QUEUE)
