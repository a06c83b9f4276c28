#!/usr/bin/env python3
"""A receipt is confirmed 15 days after the delivery, unless the buyer says something else before.

The clock of the server is virtual and moved by this program, so that three weeks take milliseconds:

    tickwheel serve --memory --virtual-clock
    python3 examples/http/confirm_receipts.py

TICKWHEEL_SERVER names another server than http://127.0.0.1:8463.
"""

from tickwheel import advance, begin, end, expect, same

QUEUE = "/v1/queues/confirm-receipts"


def confirmed_by_itself():
    """A worker takes the due tasks, confirms them, and says so."""
    tasks = expect(200, "POST", f"{QUEUE}/lease", {"max": 10})["tasks"]
    if tasks:
        answer = expect(200, "POST", f"{QUEUE}/ack", {"tokens": [task["token"] for task in tasks]})
        same(answer, {"results": ["acked"] * len(tasks)})
    return [task["key"] for task in tasks]


begin(QUEUE)

for order in (1, 2, 3):
    body = {"delay": "15d", "payload": {"order": order, "extended": False}}
    expect(201, "PUT", f"{QUEUE}/tasks/order:{order}", body)
print("order:1, order:2 and order:3 are delivered; each receipt is confirmed by itself after 15 days")

advance("3d")
answer = expect(200, "DELETE", f"{QUEUE}/tasks/order:1")
same(answer, {"result": "cancelled"})
print("day 3: the buyer of order:1 confirms early: cancelled")

# A delay counts from now: 5 days are left on day 10, and 7 more make 12. That the buyer has had her extension
# is written into the payload in the same step, and the version guards both: if another call has been faster, be it
# her own second click, the patch does nothing.
advance("7d")
task = expect(200, "GET", f"{QUEUE}/tasks/order:2")
same(task["payload"], {"order": 2, "extended": False})
patch = {"delay": "12d", "payload": {"order": 2, "extended": True}}
expect(200, "PATCH", f"{QUEUE}/tasks/order:2", patch, if_match=task["version"])
print("day 10: the buyer of order:2 asks for 7 more days and gets them")

expect(412, "PATCH", f"{QUEUE}/tasks/order:2", patch, if_match=task["version"])
same(expect(200, "GET", f"{QUEUE}/tasks/order:2")["payload"], {"order": 2, "extended": True})
print("she has clicked twice: the second click meets another version and changes nothing")

advance("5d")
same(confirmed_by_itself(), ["order:3"])
print("day 15: order:3 is confirmed by itself")

advance("6d23h59m59.999s")
same(confirmed_by_itself(), [])
advance("1ms")
same(confirmed_by_itself(), ["order:2"])
print("day 22: order:2 is confirmed by itself, and not a millisecond sooner")

end(QUEUE)
