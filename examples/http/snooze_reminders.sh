#!/bin/sh
# Reminders: one that is snoozed and put off, and one for many edits.
#
# The clock of the server is virtual and moved by this script, so that days take milliseconds:
#
#     tickwheel serve --memory --virtual-clock
#     sh examples/http/snooze_reminders.sh
#
# TICKWHEEL_SERVER names another server than http://127.0.0.1:8463.
set -eu
. "$(dirname "$0")/lib.sh"

queue=/v1/queues/snooze-reminders

# due [KEY TEXT|EDIT]: the worker who shows reminders: there is none to show, or this one. Leaves its token in
# $token.
due() {
    expect 200 POST "$queue/lease"
    same "$(members key) $(members text)$(members edit)" "${1-} ${2-}"
    token=$(members token)
}

ack() {
    expect 200 POST "$queue/ack" '{"tokens":["'"$token"'"]}'
    same "$answer" '{"results":["acked"]}'
}

begin "$queue"

expect 201 PUT "$queue/tasks/anna:dentist" '{"delay":"1h","payload":{"text":"call the dentist"}}'
say "anna wants to be reminded in 1 hour: call the dentist"

# The worker who shows the reminder has it leased, and gives it back to come again later. That counts as an
# attempt: with a `retry` policy of 3 attempts the third snooze would be the last.
advance 1h
due anna:dentist "call the dentist"
expect 200 POST "$queue/nack" '{"tokens":["'"$token"'"],"delay":"10m","reason":"snoozed"}'
same "$answer" '{"results":["nacked"]}'
say "1 hour later she sees it and snoozes it for 10 minutes: nacked"

# Until then no worker has it, and a patch moves it by its key. That counts as nothing.
advance 5m
expect 200 PATCH "$queue/tasks/anna:dentist" '{"delay":"1d"}'
same "$(members state)" scheduled
say "5 minutes later she finds it in her list and puts it off for a day: scheduled"

advance 5m
due
say "the 10 minutes are over: nothing, for she has put it off since"

advance 23h55m
due anna:dentist "call the dentist"
same "$(members attempt)" 2
ack
say "a day later she sees it for the second time and calls: acked"

# edit NUMBER STATUS: the reminder comes 5 minutes after the last edit, but at the latest 15 after the first:
# some never stop editing.
edit() {
    expect "$2" PUT "$queue/tasks/ben:report?mode=debounce" \
        '{"delay":"5m","max_wait":"15m","payload":{"edit":'"$1"'}}'
}

edit 1 201
for number in 2 3 4; do
    advance 4m
    edit "$number" 200
    due
done
say "ben edits his report, 4 times, each 4 minutes after the other: no reminder yet"

advance 2m59.999s
due
advance 1ms
due ben:report 4
say "15 minutes after the first edit there is one reminder for all, of edit 4"

# Nothing is put over a task that a worker has, and the edit must not be forgotten: it is put again later.
edit 5 409
same "$(members result)" leased
say "ben edits while it is being sent: leased"
ack
edit 5 201
advance 5m
due ben:report 5
ack
say "the edit is put again once it is sent, and 5 minutes later there is a reminder of edit 5"

end "$queue"
