#!/bin/sh
# Exports of many users: 2 may run at once, and 1 of each user; the others wait their turn.
#
# The clock of the server is virtual and moved by this script, so that nothing here takes real time:
#
#     tickwheel serve --memory --virtual-clock
#     sh examples/http/download_centre.sh
#
# TICKWHEEL_SERVER names another server than http://127.0.0.1:8463.
set -eu
. "$(dirname "$0")/lib.sh"

queue=/v1/queues/exports

# A worker that has time asks for as many as it can do, and gets as many as may run. Leaves
# their keys and tokens in $keys and $tokens.
next_exports() {
    expect 200 POST "$queue/lease" '{"max":10}'
    keys=$(members key)
    tokens=$(members token)
    # The first attempt of each: none has been handed out before, only to be given back.
    for attempt in $(members attempt); do
        same "$attempt" 1
    done
}

begin "$queue"

# The queue itself keeps the limits, however many workers there are and whatever they know of each other.
expect 200 PUT "$queue" '{"max_in_flight":2,"max_in_flight_per_group":1}'
say "2 exports may run at once, and 1 of each user"

for key in anna:1 anna:2 anna:3 ben:1 carla:1; do
    user=${key%:*}
    expect 201 PUT "$queue/tasks/$key" '{"group":"user:'"$user"'","payload":{"user":"'"$user"'"}}'
done
say "anna asks for 3 exports, then ben for 1 and carla for 1"

next_exports
same "$(list $keys)" '["anna:1","ben:1"]'
running=$tokens
expect 200 GET "$queue"
same "$(members leased) $(members ready)" "2 3"
say "anna:1 and ben:1 run, and 3 are ready and wait"
next_exports
same "$keys" ""
say "another worker gets nothing"

# The one that has waited longest is next, unless its user has one that runs: anna:3 lets carla:1 pass.
set -- $running
for turn in anna:1=anna:2 ben:1=carla:1 anna:2=anna:3 carla:1= anna:3=; do
    expect 200 POST "$queue/ack" '{"tokens":["'"$1"'"]}'
    same "$answer" '{"results":["acked"]}'
    shift
    next_exports
    same "$keys" "${turn#*=}"
    set -- "$@" $tokens
    say "${turn%=*} is done: ${keys:-nothing} begins"
done

end "$queue"
