#!/bin/sh
# A receipt is confirmed 15 days after the delivery, unless the buyer says something else before.
#
# The clock of the server is virtual and moved by this script, so that three weeks take milliseconds:
#
#     tickwheel serve --memory --virtual-clock
#     sh examples/http/confirm_receipts.sh
#
# TICKWHEEL_SERVER names another server than http://127.0.0.1:8463.
set -eu
. "$(dirname "$0")/lib.sh"

queue=/v1/queues/confirm-receipts

# A worker takes the due tasks, confirms them, and says so. Leaves the orders in $confirmed.
confirmed_by_itself() {
    expect 200 POST "$queue/lease" '{"max":10}'
    confirmed=$(members key)
    for token in $(members token); do
        expect 200 POST "$queue/ack" '{"tokens":["'"$token"'"]}'
        same "$answer" '{"results":["acked"]}'
    done
}

begin "$queue"

for order in 1 2 3; do
    expect 201 PUT "$queue/tasks/order:$order" '{"delay":"15d","payload":{"order":'$order',"extended":false}}'
done
say "order:1, order:2 and order:3 are delivered; each receipt is confirmed by itself after 15 days"

advance 3d
expect 200 DELETE "$queue/tasks/order:1"
same "$answer" '{"result":"cancelled"}'
say "day 3: the buyer of order:1 confirms early: cancelled"

# A delay counts from now: 5 days are left on day 10, and 7 more make 12. That the buyer has had her extension
# is written into the payload in the same step, and the version guards both: if another call has been faster, be it
# her own second click, the patch does nothing.
advance 7d
expect 200 GET "$queue/tasks/order:2"
same "$(members extended)" false
version=$(members version)
patch='{"delay":"12d","payload":{"order":2,"extended":true}}'
expect 200 PATCH "$queue/tasks/order:2" "$patch" "$version"
say "day 10: the buyer of order:2 asks for 7 more days and gets them"

expect 412 PATCH "$queue/tasks/order:2" "$patch" "$version"
expect 200 GET "$queue/tasks/order:2"
same "$(members extended)" true
say "she has clicked twice: the second click meets another version and changes nothing"

advance 5d
confirmed_by_itself
same "$confirmed" order:3
say "day 15: order:3 is confirmed by itself"

advance 6d23h59m59.999s
confirmed_by_itself
same "$confirmed" ""
advance 1ms
confirmed_by_itself
same "$confirmed" order:2
say "day 22: order:2 is confirmed by itself, and not a millisecond sooner"

end "$queue"
