import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseEvents, percentile, rates, statsOf, streamedStats, trend } from '../assets/logic/events.js';

test('events are split, also where a chunk ends inside one', () => {
    const first = parseEvents(': hello\n\nevent: stats\r\nid: 1\r\ndata: {"a":\r\ndata: 1}\r\n\r\nevent: jo');
    assert.deepEqual(first, { events: [{ event: 'stats', data: '{"a":\n1}', id: '1' }], rest: 'event: jo', retry: null });
    assert.equal(parseEvents('retry: 2000\n\nevent: x').retry, 2000);
    assert.deepEqual(parseEvents(`${first.rest}bs\ndata: []\n\n`).events, [{ event: 'jobs', data: '[]', id: '' }]);
});

const text = (/** @type {number} */ put, /** @type {number} */ fast, /** @type {number} */ all) => `# TYPE x counter
tickwheel_scheduled_total ${put}
tickwheel_delivered_total{result="acked"} 3
tickwheel_delivered_total{result="nacked"} 1
tickwheel_fire_lateness_seconds_bucket{le="0.001"} ${fast}
tickwheel_fire_lateness_seconds_bucket{le="5.0"} ${all}
tickwheel_fire_lateness_seconds_bucket{le="+Inf"} ${all}
tickwheel_queue_oldest_due_age_seconds{queue="a\\"b"} 1.5
tickwheel_oldest_due_age_seconds 1.5
tickwheel_store_room_bytes 18446744073709551615
`;

test('rates and bounds come from two looks at the metrics', () => {
    const before = statsOf(text(10, 0, 0), 1000);
    const after = statsOf(text(30, 98, 100), 11_000);
    assert.equal(rates([before, after])?.put, 2);
    assert.equal(rates([before]), null);
    assert.equal(rates([after, { ...before, at: 12_000 }]), null, 'a restart begins at zero');
    assert.equal(percentile(before.lateness, after.lateness, 0.5), 1);
    assert.equal(percentile(before.lateness, after.lateness, 0.99), 5000);
    assert.equal(percentile(after.lateness, after.lateness, 0.99), null);
    assert.deepEqual([after.oldestByQueue['a"b'], after.roomBytes, after.counters.acked, after.counters.nacked], [1500, null, 3, 1]);
});

test('streamed statistics have the bounds and ages of the metrics', () => {
    const event = {
        now: '2030-01-01T00:00:10.000Z',
        queues: 2,
        totals: { scheduled: 1, ready: 2, leased: 3, dead: 4 },
        counters: { put: 5 },
        oldest_due: '2030-01-01T00:00:08.500Z',
        lateness: [
            { le_us: 1000, count: 1 },
            { le_us: null, count: 2 },
        ],
    };
    const stats = streamedStats(event, 7);
    assert.deepEqual([stats.at, stats.oldestDueMs, stats.roomBytes, stats.queues], [7, 1500, null, 2]);
    assert.deepEqual(stats.lateness, [
        { le: 0.001, count: 1 },
        { le: Infinity, count: 2 },
    ]);
    assert.equal(stats.commit, null);
    assert.equal(streamedStats({ ...event, oldest_due: null }, 7).oldestDueMs, null);
});

test('a trend shows how much a count changes, and not how large it is', () => {
    assert.deepEqual(trend([]), []);
    assert.deepEqual(trend([0, 0]), [0, 0]);
    assert.deepEqual(trend([1000, 1000]), [0.5, 0.5]);
    assert.deepEqual(trend([0, 1000, 500]), [0, 1, 0.5]);
    assert.deepEqual(
        trend([995, 1005]).map((height) => height.toFixed(2)),
        ['0.49', '0.51'],
    );
    assert.deepEqual(trend([0, 1]), [0, 0.25]);
    assert.deepEqual(trend([1, 3]), [0.25, 0.75]);
    for (const height of [[7], [0, 3, 9], [100, 101], [1e9, 0]].flatMap(trend)) assert.ok(height >= 0 && height <= 1);
});
