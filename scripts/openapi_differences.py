"""Requests that the server refuses for a reason that no schema can say: such a case is left out, with its reason, since the checks take it for a good request.

No case that is made is changed, and no check. What else differs stands in openapi.toml.
"""

import datetime
import re

import schemathesis

import openapi_lines  # noqa: F401 (for what it registers)

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
YEAR_MS = 365 * UNITS_MS["d"]
# The least and the most that the server takes of each duration. The pattern says what a duration is, and not how long it is.
LIMITS_MS = {
    "lease": (1_000, 43_200_000),
    "default_lease": (1_000, 43_200_000),
    "wait": (0, 60),  # The server takes 60 s, and a run would wait for them.
    "for": (1, YEAR_MS),
    "keep": (0, YEAR_MS),
    "overlap": (0, 30 * UNITS_MS["d"]),  # Of a rotation. The overlap of a schedule is a word, which counts as 0 here.
    "bucket": (1_000, 100 * YEAR_MS),
    "every": (100, 100 * YEAR_MS),
    "fixed_delay": (100, 100 * YEAR_MS),
    "by": (1, 100 * YEAR_MS),  # Of a move: to be moved by nothing is refused. The clock may advance by nothing.
    **{name: (0, 100 * YEAR_MS) for name in ("delay", "max_wait", "jitter", "base", "max", "expire_after")},
}
# A task is due at most 100 years ahead of the clock.
FAR_MS = 4_000_000_000_000


def duration_ms(text):
    parts = re.findall(r"([0-9.]+)([a-z]+)", text) if isinstance(text, str) else []
    return sum(float(number) * UNITS_MS.get(unit, 0) for number, unit in parts)


def instant_ms(value):
    if isinstance(value, (int, float)):
        return value
    try:
        return datetime.datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp() * 1_000
    except (ValueError, AttributeError, OverflowError):
        return None


def in_order(instants):
    known = [instant for instant in instants if instant is not None]
    return known == sorted(known)


def is_beyond(members):
    """Whether a duration is shorter or longer than its limits."""
    for name, value in members.items():
        if name in LIMITS_MS and isinstance(value, str):
            least, most = LIMITS_MS[name]
            if not least <= duration_ms(value) <= most:
                return True
        if name in ("retry", "history") and isinstance(value, dict) and is_beyond(value):
            return True
    return False


def is_odd_retry(retry):
    """The longest wait has to be as long as the first: one member is compared with another."""
    if not isinstance(retry, dict) or not isinstance(retry.get("max"), str):
        return False
    return duration_ms(retry["max"]) < duration_ms(retry.get("base") or "1s")


def is_odd_rate(body):
    """A while has limits as other durations do; and a burst needs a rate, which the queue may have already."""
    rate = body.get("rate")
    if not isinstance(rate, str) or "/" not in rate:
        return body.get("burst") is not None
    tasks, per = rate.split("/", 1)
    per_ms = UNITS_MS.get(per) or duration_ms(per)
    return not (tasks.isdigit() and int(tasks) <= 1_000_000_000 and 1 <= per_ms <= UNITS_MS["d"])


def is_odd_time(body):
    """Instants have an order, and a limit that moves with the clock."""
    timeline = body.get("timeline") if isinstance(body.get("timeline"), list) else []
    moments = [instant_ms(moment.get("at", moment.get("at_ms"))) for moment in timeline if isinstance(moment, dict)]
    own = body.get("filter") if isinstance(body.get("filter"), dict) else {}
    spans = [(body.get("start"), body.get("end")), (own.get("due_from"), own.get("due_to"))]
    due = moments + [instant_ms(body.get(name)) for name in ("at", "at_ms")]
    is_far = any(at is not None and at > FAR_MS for at in due)
    strictly = len(set(moments)) == len(moments)
    return is_far or not strictly or not all(in_order(map(instant_ms, row)) for row in [*spans]) or not in_order(moments)


def is_over_before_it_begins(body):
    """Without an instant before its end, a schedule is refused: an interval and two instants are compared."""
    interval = body.get("every") or body.get("fixed_delay")
    if body.get("end") is None or not isinstance(interval, str):
        return False
    start, end = instant_ms(body.get("start")), instant_ms(body.get("end"))
    return start is None or end is None or start + duration_ms(interval) > end


def is_odd_filter(body):
    """Only dead tasks have a cause of death: one member says which others may be there."""
    own = body.get("filter") if isinstance(body.get("filter"), dict) else {}
    return bool({"reason", "failure", "group_id"} & own.keys()) and own.get("state") != "dead"


def is_left_out(body):
    if not isinstance(body, dict):
        return False
    # A task has to expire later than it is due, or than a schedule's jitter.
    expires = body.get("expire_after") is not None
    # The meaning of an expression, and the zones that exist.
    calendar = body.get("cron") not in (None, "0 2 * * *") or body.get("tz") not in (None, "Europe/Berlin")
    # How many delays the list of the server has.
    levels = isinstance(body.get("level"), (int, float)) and body["level"] > 18
    return expires or calendar or levels or is_beyond(body) or is_odd_retry(body.get("retry")) or is_odd_rate(body) or is_odd_time(body) or is_over_before_it_begins(body) or is_odd_filter(body)


@schemathesis.hook
def filter_case(ctx, case):
    query = case.query if isinstance(case.query, dict) else {}
    # A cursor is what a page before has given; both ends of a span are compared.
    odd = "cursor" in query or {"due_from", "due_to"} <= query.keys() or is_beyond(query)
    # The buckets of this scale are fixed and begin now.
    odd = odd or (query.get("scale") == "log" and bool({"bucket", "span", "from"} & query.keys()))
    return not odd and not is_left_out(case.body)
