#!/bin/sh
# A price plan: one task with many instants, each with a price of its own.
#
# The clock of the server is virtual and moved by this script, so that a week takes milliseconds:
#
#     tickwheel serve --memory --virtual-clock
#     sh examples/http/switch_prices.sh
#
# TICKWHEEL_SERVER names another server than http://127.0.0.1:8463.
set -eu
. "$(dirname "$0")/lib.sh"

queue=/v1/queues/switch-prices
sku=$queue/tasks/sku:7
day_ms=86400000

# plan MIDNIGHT=PRICE...: a timeline that says from which midnight on there is which price.
plan() {
    moments=
    for switch in "$@"; do
        at_ms=$((today_ms + ${switch%=*} * day_ms))
        moments="$moments,{\"at_ms\":$at_ms,\"payload\":{\"price\":${switch#*=}}}"
    done
    printf '{"timeline":[%s]}' "${moments#,}"
}

# A worker sets the price that is due. Only its ack lets the next one come. Leaves it in $price.
switched() {
    expect 200 POST "$queue/lease"
    price=$(members price)
    for token in $(members token); do
        expect 200 POST "$queue/ack" '{"tokens":["'"$token"'"]}'
        same "$answer" '{"results":["acked"]}'
    done
}

# ms_of TIME: the milliseconds since 1970 of a time such as 2026-11-21T09:43:41.295Z. No command that POSIX
# knows reads one. A year ends with February here, so that a leap day is its last.
ms_of() {
    IFS=-T:.Z read -r year month day hour minute second ms <<TIME
$1
TIME
    month=$((1$month - 100))
    year=$((month > 2 ? year : year - 1))
    days=$((365 * year + year / 4 - year / 100 + year / 400 + ((month + 9) % 12 * 153 + 2) / 5 + 1$day - 100))
    minutes=$((((days - 719469) * 24 + 1$hour - 100) * 60 + 1$minute - 100))
    printf '%s' $(((minutes * 60 + 1$second - 100) * 1000 + 1$ms - 1000))
}

begin "$queue"

# The instants of a timeline are absolute. The story may begin at any time of day: by the server's clock, for
# that is the one that counts.
advance 0s
now_ms=$(ms_of "$(members now)")
today_ms=$((now_ms - now_ms % day_ms))
until_midnight=$((today_ms + day_ms - now_ms))ms

expect 201 PUT "$sku" "$(plan 1=9 2=8 3=12)"
say "the plan of sku:7: 9 from the first midnight on, 8 from the second, 12 from the third"

advance "$until_midnight"
switched
same "$price" 9
say "the first midnight: the price is 9"

# One instant alone cannot be moved or taken out: a plan is put in the place of the other, as a whole.
advance 12h
expect 409 PATCH "$sku" '{"delay":"1d"}'
expect 200 PATCH "$sku" "$(plan 2=7 4=11)"
same "$(members state)" scheduled
say "at noon there is another plan: 7 from the second midnight on, 11 from the fourth"

advance 12h
switched
same "$price" 7
say "the second midnight: the price is 7"
advance 1d
switched
same "$price" ""
say "the third midnight: nothing, for that was in the plan before"

expect 200 DELETE "$sku"
same "$answer" '{"result":"cancelled"}'
say "the plan is cancelled, with all that was to come"
advance 30d
switched
same "$price" ""
say "the fourth midnight: nothing; the price stays 7"

end "$queue"
