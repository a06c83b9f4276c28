#!/usr/bin/env python3
"""A price plan: one task with many instants, each with a price of its own.

The clock of the server is virtual and moved by this program, so that a week takes milliseconds:

    tickwheel serve --memory --virtual-clock
    python3 examples/http/switch_prices.py

TICKWHEEL_SERVER names another server than http://127.0.0.1:8463.
"""

from datetime import datetime, timedelta

from tickwheel import advance, begin, end, expect, same

QUEUE = "/v1/queues/switch-prices"
SKU = f"{QUEUE}/tasks/sku:7"


def plan(*prices):
    """A timeline of pairs: from which midnight on there is which price."""
    at = {number: f"{(today + timedelta(days=number)).isoformat()}Z" for number, _ in prices}
    return {"timeline": [{"at": at[number], "payload": {"price": price}} for number, price in prices]}


def switched():
    """A worker sets the price that is due. Only its ack lets the next one come."""
    tasks = expect(200, "POST", f"{QUEUE}/lease")["tasks"]
    for task in tasks:
        answer = expect(200, "POST", f"{QUEUE}/ack", {"tokens": [task["token"]]})
        same(answer, {"results": ["acked"]})
    return [task["payload"]["price"] for task in tasks]


begin(QUEUE)

# The instants of a timeline are absolute. The story may begin at any time of day: by the server's clock, for
# that is the one that counts.
now = datetime.strptime(advance("0s"), "%Y-%m-%dT%H:%M:%S.%fZ")
today = datetime(now.year, now.month, now.day)
until_midnight = f"{(today + timedelta(days=1) - now) // timedelta(milliseconds=1)}ms"

expect(201, "PUT", SKU, plan((1, 9), (2, 8), (3, 12)))
print("the plan of sku:7: 9 from the first midnight on, 8 from the second, 12 from the third")

advance(until_midnight)
same(switched(), [9])
print("the first midnight: the price is 9")

# One instant alone cannot be moved or taken out: a plan is put in the place of the other, as a whole.
advance("12h")
expect(409, "PATCH", SKU, {"delay": "1d"})
answer = expect(200, "PATCH", SKU, plan((2, 7), (4, 11)))
same(answer["state"], "scheduled")
print("at noon there is another plan: 7 from the second midnight on, 11 from the fourth")

advance("12h")
same(switched(), [7])
print("the second midnight: the price is 7")
advance("1d")
same(switched(), [])
print("the third midnight: nothing, for that was in the plan before")

answer = expect(200, "DELETE", SKU)
same(answer, {"result": "cancelled"})
print("the plan is cancelled, with all that was to come")
advance("30d")
same(switched(), [])
print("the fourth midnight: nothing; the price stays 7")

end(QUEUE)
