#!/usr/bin/env python3
"""The shop's orders, played through `tickwheel replay`, held against a computation of its own.

An order that is bought is to be closed after 30 minutes; an order that is paid by then is not. An order that was delivered is to
be confirmed 15 days later. So a row of orders becomes up to three operations:

    bought     put    close/order:ID    delay 30m
    paid       cancel close/order:ID
    delivered  put    confirm/order:ID  delay 15d

and the expectation follows from the row alone: `close` fires 30 minutes after the purchase unless the order was paid after it was
bought and before those 30 minutes were over; `confirm` fires 15 days after the delivery. This file knows nothing else of
Tickwheel.

usage: orders.py generate ROWS SEED            rows of the same shape, the edges among them, to stdout
       orders.py operations CSV                the operations, in the order of time, to stdout
       orders.py compare CSV DELIVERIES        what was delivered against what should have been; exit code 1 if they differ

A CSV has the columns order_id, order_purchase_timestamp, order_approved_at and order_delivered_customer_date in any place; its times
are `2017-10-02 10:56:33`, taken as UTC; a missing time is empty. Rows come in any order.
"""

import csv
import datetime
import itertools
import json
import random
import sys

CLOSE = datetime.timedelta(minutes=30)
CONFIRM = datetime.timedelta(days=15)
SECOND = datetime.timedelta(seconds=1)
COLUMNS = [
    "order_id",
    "order_status",
    "order_purchase_timestamp",
    "order_approved_at",
    "order_delivered_customer_date",
]


def read(path):
    """The rows of a file: id, bought, paid or None, delivered or None."""
    rows, ids = [], set()
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            one = row["order_id"]
            if one in ids:
                sys.exit(f"{path}: order {one} is there twice; its key could not tell the two apart")
            ids.add(one)
            times = [row["order_purchase_timestamp"], row["order_approved_at"], row["order_delivered_customer_date"]]
            bought, paid, delivered = [instant(text) for text in times]
            rows.append((one, bought, paid, delivered))
    return rows


def instant(text):
    return datetime.datetime.strptime(text, "%Y-%m-%d %H:%M:%S") if text else None


def rfc3339(at, digits=""):
    return at.strftime("%Y-%m-%dT%H:%M:%S") + digits + "Z"


def compact(line):
    return json.dumps(line, separators=(",", ":"))


def timeline(rows):
    """All operations in the order of time; at one instant those of a row keep theirs, and rows keep that of the file."""
    operations = []
    for index, (one, bought, paid, delivered) in enumerate(rows):
        operations.append((bought, index, 0, "close", one, CLOSE))
        if paid is not None:
            operations.append((paid, index, 1, "close", one, None))
        if delivered is not None:
            operations.append((delivered, index, 2, "confirm", one, CONFIRM))
    operations.sort(key=lambda operation: operation[:3])
    return operations


def write_operations(rows):
    for at, _, _, queue, one, delay in timeline(rows):
        line = {"at": rfc3339(at), "op": "cancel", "queue": queue, "key": f"order:{one}"}
        if delay is not None:
            line |= {"op": "put", "delay": "30m" if queue == "close" else "15d", "payload": {"order": one}}
        print(compact(line))


def expected(rows):
    """The expected deliveries, in order: by the instant, then by the put."""
    fates = {one: (bought, paid) for one, bought, paid, _ in rows}
    fires = []
    for place, (at, _, _, queue, one, delay) in enumerate(timeline(rows)):
        if delay is None:
            continue
        bought, paid = fates[one]
        if queue == "close" and paid is not None and bought <= paid < bought + CLOSE:
            continue
        due = rfc3339(at + delay, ".000")
        fires.append((due, place, {"queue": queue, "key": f"order:{one}", "due_at": due, "fired_at": due, "payload": {"order": one}}))
    fires.sort(key=lambda fire: fire[:2])
    return [fire for _, _, fire in fires]


def compare(rows, path):
    with open(path, encoding="utf-8") as file:
        # As text: the order of the members and the bytes of the payload count too.
        pairs = itertools.zip_longest(map(compact, expected(rows)), map(str.rstrip, file))
        wrong = 0
        for number, (should, was) in enumerate(pairs, start=1):
            if should != was:
                wrong += 1
                if wrong <= 10:
                    print(f"delivery {number}: should be {should}, was {was}")
    closed = sum(1 for _, bought, paid, _ in rows if paid is None or not bought <= paid < bought + CLOSE)
    on_edge = sum(1 for _, bought, paid, _ in rows if paid is not None and paid == bought + CLOSE)
    confirmed = sum(1 for row in rows if row[3] is not None)
    print(
        f"{len(rows)} orders: {closed} closed ({on_edge} paid at exactly 30 minutes), {len(rows) - closed} paid in time, "
        f"{confirmed} confirmed; {wrong} deliveries differ"
    )
    return 1 if wrong else 0


def generate(count, seed):
    """Rows of the same shape: mostly paid in time, some late, some never, and each edge many times."""
    rng = random.Random(seed)
    start = datetime.datetime(2017, 1, 1)
    edges = [CLOSE, CLOSE - SECOND, CLOSE + SECOND, datetime.timedelta(0), -SECOND]
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(COLUMNS)
    for number in range(count):
        # Many orders share their second with another, so that ties are decided too.
        bought = start + datetime.timedelta(seconds=rng.randrange(count * 4))
        kind = rng.random()
        if number < len(edges) * 20:
            paid = bought + edges[number % len(edges)]
        elif kind < 0.80:
            paid = bought + datetime.timedelta(seconds=rng.randrange(1, 1800))
        elif kind < 0.95:
            paid = bought + datetime.timedelta(seconds=rng.randrange(1800, 200_000))
        else:
            paid = None
        delivered = bought + datetime.timedelta(seconds=rng.randrange(86_400, 40 * 86_400)) if rng.random() < 0.9 else None
        status = "delivered" if delivered else "canceled"
        table.writerow([f"{rng.getrandbits(128):032x}", status, bought, paid or "", delivered or ""])


def main(words):
    match words:
        case ["generate", count, seed]:
            generate(int(count), int(seed))
        case ["operations", path]:
            write_operations(read(path))
        case ["compare", path, deliveries]:
            return compare(read(path), deliveries)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
