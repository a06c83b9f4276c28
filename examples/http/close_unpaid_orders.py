#!/usr/bin/env python3
"""An order is closed after 30 minutes unless it is paid before.

The clock of the server is virtual and moved by this program, so that half an hour takes no time:

    tickwheel serve --memory --virtual-clock
    python3 examples/http/close_unpaid_orders.py

TICKWHEEL_SERVER names another server than http://127.0.0.1:8463.
"""

from tickwheel import advance, begin, end, expect, same

QUEUE = "/v1/queues/close-unpaid-orders"

begin(QUEUE)

# The key is the handle: the payment knows the order's number, and needs nothing else to find the task.
for order in (1, 2, 3):
    expect(201, "PUT", f"{QUEUE}/tasks/order:{order}", {"delay": "30m", "payload": {"order": order}})
print("order:1, order:2 and order:3 are placed, each to be closed in 30 minutes")

# Paid in time. `cancelled` is a promise: no worker will ever get this task.
advance("10m")
answer = expect(200, "DELETE", f"{QUEUE}/tasks/order:1")
same(answer, {"result": "cancelled"})
print("10 minutes later order:1 is paid: cancelled")

# Never early, not by a millisecond.
advance("19m59.999s")
answer = expect(200, "POST", f"{QUEUE}/lease", {"max": 10})
same(answer, {"tasks": []})
print("a millisecond before its time no order is closed")

# A worker has the tasks until it acks them, here for at most 30 seconds: then others may have them.
advance("1ms")
tasks = expect(200, "POST", f"{QUEUE}/lease", {"max": 10, "lease": "30s"})["tasks"]
same([task["key"] for task in tasks], ["order:2", "order:3"])
print("then a worker has order:2 and order:3")

# Paid while the worker is at it. `leased` has changed nothing: the shop may wait for the worker and give the
# money back, or, as here, take the task back. Then the worker is told so when it acks.
refusal = expect(409, "DELETE", f"{QUEUE}/tasks/order:2")
same(refusal["result"], "leased")
print("order:2 is paid at this moment: leased")
answer = expect(200, "DELETE", f"{QUEUE}/tasks/order:2?revoke=true")
same(answer, {"result": "revoked"})
print("the shop wants the money and takes the task back: revoked")

# The worker closes the orders first and acks then: the other way round a crash in between would leave an
# order open for ever. So it has to undo what turns out to be revoked.
answer = expect(200, "POST", f"{QUEUE}/ack", {"tokens": [task["token"] for task in tasks]})
same(answer, {"results": ["revoked", "acked"]})
print("the worker has closed both and hears: revoked, acked")
print("so it opens order:2 again, and order:3 stays closed")

# Paid when all is over: the order is closed, and the money goes back. The server remembers for a day what is
# `done`; a payment that comes later still hears `not_found`, and the shop's own books have to say why.
advance("5m")
refusal = expect(404, "DELETE", f"{QUEUE}/tasks/order:3")
same(refusal["result"], "done")
print("5 minutes later order:3 is paid: done")
print("so the shop gives the money back")

end(QUEUE)
