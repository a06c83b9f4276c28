#!/usr/bin/env python3
"""Exports of many users: 2 may run at once, and 1 of each user; the others wait their turn.

The clock of the server is virtual and moved by this program, so that nothing here takes real time:

    tickwheel serve --memory --virtual-clock
    python3 examples/http/download_centre.py

TICKWHEEL_SERVER names another server than http://127.0.0.1:8463.
"""

from tickwheel import begin, end, expect, same

QUEUE = "/v1/queues/exports"


def next_exports():
    """A worker that has time asks for as many as it can do, and gets as many as may run."""
    tasks = expect(200, "POST", f"{QUEUE}/lease", {"max": 10})["tasks"]
    # The first attempt of each: none has been handed out before, only to be given back.
    same([task["attempt"] for task in tasks], [1] * len(tasks))
    return tasks


def names(tasks):
    return " and ".join(task["key"] for task in tasks)


begin(QUEUE)

# The queue itself keeps the limits, however many workers there are and whatever they know of each other.
expect(200, "PUT", QUEUE, {"max_in_flight": 2, "max_in_flight_per_group": 1})
print("2 exports may run at once, and 1 of each user")

for key in ("anna:1", "anna:2", "anna:3", "ben:1", "carla:1"):
    user = key.split(":")[0]
    expect(201, "PUT", f"{QUEUE}/tasks/{key}", {"group": f"user:{user}", "payload": {"user": user}})
print("anna asks for 3 exports, then ben for 1 and carla for 1")

running = next_exports()
same(names(running), "anna:1 and ben:1")
counts = expect(200, "GET", QUEUE)
same((counts["leased"], counts["ready"]), (2, 3))
print(f"{names(running)} run, and 3 are ready and wait")
same(next_exports(), [])
print("another worker gets nothing")

# The one that has waited longest is next, unless its user has one that runs: anna:3 lets carla:1 pass.
turns = (("anna:1", "anna:2"), ("ben:1", "carla:1"), ("anna:2", "anna:3"), ("carla:1", ""), ("anna:3", ""))
for key, told in turns:
    done = running.pop(0)
    same(done["key"], key)
    answer = expect(200, "POST", f"{QUEUE}/ack", {"tokens": [done["token"]]})
    same(answer, {"results": ["acked"]})
    begun = next_exports()
    same(names(begun), told)
    running += begun
    print(f"{key} is done: {told or 'nothing'} begins")

end(QUEUE)
