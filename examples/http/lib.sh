# The six stories share this: calls to a Tickwheel server with curl. Sourced, not run.

TICKWHEEL_SERVER=${TICKWHEEL_SERVER:-http://127.0.0.1:8463}
TICKWHEEL_SERVER=${TICKWHEEL_SERVER%/}

say() {
    printf '%s\n' "$*"
}

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

# expect STATUS METHOD PATH [BODY [VERSION]]: sends one request and leaves its answer in $answer. The answer
# has to have this status; it may be a refusal. With a version the request is for that version of the task.
expect() {
    # The server is named by its address: a proxy of the environment is not meant for it.
    answer=$(curl -sS --noproxy '*' --max-time 30 --write-out '\n%{http_code}' --request "$2" \
        ${4:+--data "$4"} ${5:+--header "If-Match: \"$5\""} "$TICKWHEEL_SERVER$3") ||
        fail "no Tickwheel server answers at $TICKWHEEL_SERVER"
    status=${answer##*
}
    answer=${answer%
*}
    [ "$status" = "$1" ] || fail "not as told: $2 $3 answered $status instead of $1: $answer"
}

# same FOUND TOLD
same() {
    [ "$1" = "$2" ] || fail "not as told: '$1' instead of '$2'"
}

# members NAME: the values of all members of $answer with this name, one a line. It is no reader of JSON:
# texts with commas or quotes are beyond it, and the stories have none.
members() {
    printf '%s\n' "$answer" | tr ',' '\n' | sed -n "s/.*\"$1\":\"\{0,1\}\([^\"}]*\).*/\1/p"
}

# list WORD...: a JSON list of strings.
list() {
    words=$(for word in "$@"; do printf ',"%s"' "$word"; done)
    printf '[%s]' "${words#,}"
}

# advance BY: moves the server's clock.
advance() {
    expect 200 POST /v1/clock/advance "{\"by\":\"$1\"}"
}

# begin QUEUE: empties the story's own queue of what a run that broke off may have left there.
begin() {
    advance 0s # refused, before anything is touched, by a server that runs on real time
    expect 200 POST "$1/cancel" '{"filter":{},"revoke":true}'
    expect 200 POST "$1/cancel" '{"filter":{"state":"dead"}}'
}

# end QUEUE
end() {
    expect 200 GET "$1"
    for state in scheduled ready leased dead; do
        same "$(members "$state") $state" "0 $state"
    done
    say "nothing is left to do"
}
