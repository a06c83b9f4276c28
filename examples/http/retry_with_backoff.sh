#!/bin/sh
# Work that fails: tried again after longer and longer waits, given up, looked at, and given another life.
#
# The clock of the server is virtual and moved by this script, so that the waits take no time:
#
#     tickwheel serve --memory --virtual-clock
#     sh examples/http/retry_with_backoff.sh
#
# TICKWHEEL_SERVER names another server than http://127.0.0.1:8463.
set -eu
. "$(dirname "$0")/lib.sh"

queue=/v1/queues/retry-with-backoff

# due [KEY ATTEMPT]: what a worker gets: no task, or this one. Leaves its token in $token.
due() {
    expect 200 POST "$queue/lease"
    same "$(members key) $(members attempt)" "${1-} ${2-}"
    token=$(members token)
}

begin "$queue"

# Without a policy it would be tried again at once and for ever. The jitter is off here so that the story is
# the same each time; leave it on where many tasks fail together, or they all come back together.
retry='{"max_attempts":3,"backoff":"exponential","base":"1m","jitter":0}'
expect 201 PUT "$queue/tasks/invoice:1" '{"payload":{"invoice":1},"retry":'"$retry"'}'
say "invoice:1 is to be mailed: 3 attempts, with waits of 1 and 2 minutes"

attempt=1
for reason in "no answer" "no answer" "the mailbox is full"; do
    due invoice:1 "$attempt"
    # The worker says why, and leaves it to the policy when to try again.
    expect 200 POST "$queue/nack" '{"tokens":["'"$token"'"],"reason":"'"$reason"'"}'
    same "$answer" '{"results":["nacked"]}'
    say "attempt $attempt fails: $reason"
    if [ "$attempt" -lt 3 ]; then
        due
        advance "${attempt}m"
    fi
    attempt=$((attempt + 1))
done

# Dead is not gone: it is out of the workers' way and kept for 30 days, with its story.
due
expect 200 GET "$queue/dead"
same "$(members key) $(members state)" "invoice:1 dead"
same "$(list $(members how))" '["nacked","nacked","nacked"]'
same "$(members reason)" "no answer
no answer
the mailbox is full
max_attempts"
say "invoice:1 is dead: max_attempts"
say "  attempt 1 was nacked: no answer"
say "  attempt 2 was nacked: no answer"
say "  attempt 3 was nacked: the mailbox is full"

# The same task again, with all of its attempts before it.
expect 200 POST "$queue/dead/redrive" '{"key":"invoice:1"}'
same "$(members state) $(members attempt)" "ready 0"
say "the mailbox has room again, and invoice:1 is redriven"

due invoice:1 1
expect 200 POST "$queue/ack" '{"tokens":["'"$token"'"]}'
same "$answer" '{"results":["acked"]}'
say "attempt 1 succeeds"

end "$queue"
