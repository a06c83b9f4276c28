#!/usr/bin/env python3
"""Reminders: one that is snoozed and put off, and one for many edits.

The clock of the server is virtual and moved by this program, so that days take milliseconds:

    tickwheel serve --memory --virtual-clock
    python3 examples/http/snooze_reminders.py

TICKWHEEL_SERVER names another server than http://127.0.0.1:8463.
"""

from tickwheel import advance, begin, end, expect, same

QUEUE = "/v1/queues/snooze-reminders"


def due(*told):
    """The worker who shows reminders: there is none to show, or the one of this key with this payload."""
    tasks = expect(200, "POST", f"{QUEUE}/lease")["tasks"]
    same([(task["key"], task["payload"]) for task in tasks], list(told))
    return tasks


def ack(task):
    answer = expect(200, "POST", f"{QUEUE}/ack", {"tokens": [task["token"]]})
    same(answer, {"results": ["acked"]})


begin(QUEUE)

dentist = {"text": "call the dentist"}
expect(201, "PUT", f"{QUEUE}/tasks/anna:dentist", {"delay": "1h", "payload": dentist})
print("anna wants to be reminded in 1 hour: call the dentist")

# The worker who shows the reminder has it leased, and gives it back to come again later. That counts as an
# attempt: with a `retry` policy of 3 attempts the third snooze would be the last.
advance("1h")
[task] = due(("anna:dentist", dentist))
nack = {"tokens": [task["token"]], "delay": "10m", "reason": "snoozed"}
same(expect(200, "POST", f"{QUEUE}/nack", nack), {"results": ["nacked"]})
print("1 hour later she sees it and snoozes it for 10 minutes: nacked")

# Until then no worker has it, and a patch moves it by its key. That counts as nothing.
advance("5m")
answer = expect(200, "PATCH", f"{QUEUE}/tasks/anna:dentist", {"delay": "1d"})
same(answer["state"], "scheduled")
print("5 minutes later she finds it in her list and puts it off for a day: scheduled")

advance("5m")
due()
print("the 10 minutes are over: nothing, for she has put it off since")

advance("23h55m")
[task] = due(("anna:dentist", dentist))
same(task["attempt"], 2)
ack(task)
print("a day later she sees it for the second time and calls: acked")


def edit(number, status):
    """5 minutes after the last edit, but at the latest 15 after the first: some never stop editing."""
    body = {"delay": "5m", "max_wait": "15m", "payload": {"edit": number}}
    return expect(status, "PUT", f"{QUEUE}/tasks/ben:report?mode=debounce", body)


edit(1, 201)
for number in (2, 3, 4):
    advance("4m")
    edit(number, 200)
    due()
print("ben edits his report, 4 times, each 4 minutes after the other: no reminder yet")

advance("2m59.999s")
due()
advance("1ms")
[task] = due(("ben:report", {"edit": 4}))
print("15 minutes after the first edit there is one reminder for all, of edit 4")

# Nothing is put over a task that a worker has, and the edit must not be forgotten: it is put again later.
same(edit(5, 409)["result"], "leased")
print("ben edits while it is being sent: leased")
ack(task)
edit(5, 201)
advance("5m")
[task] = due(("ben:report", {"edit": 5}))
ack(task)
print("the edit is put again once it is sent, and 5 minutes later there is a reminder of edit 5")

end(QUEUE)
