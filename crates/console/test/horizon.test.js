import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
    ENDS,
    LABELS,
    bucketFor,
    gridLines,
    height,
    leftAt,
    linearBars,
    logBarsOf,
    wallOf,
    clockWithin,
} from '../assets/logic/horizon.js';

const NOW = Date.parse('2030-06-15T12:34:56.700Z');

test('there are 39 ranges to 100 years, and each label names one of them', () => {
    assert.equal(ENDS.length, 39);
    assert.equal(ENDS[38], 100 * 365 * 86_400_000);
    assert.ok(ENDS.every((end, i) => i === 0 || end > ENDS[i - 1]));
    for (const end of LABELS.keys()) assert.ok(ENDS.includes(end));
});

test('a logarithmic forecast fills its ranges', () => {
    const bars = logBarsOf({
        from: new Date(NOW).toISOString(),
        buckets: [
            { at: new Date(NOW).toISOString(), tasks: 2 },
            { at: new Date(NOW + ENDS[11]).toISOString(), tasks: 3, expected: 4 },
        ],
    });
    assert.deepEqual([bars[0].tasks, bars[12].tasks, bars[12].expected], [2, 3, 4]);
    assert.deepEqual([bars.length, bars[12].from, bars[12].to], [39, NOW + 55_000, NOW + 60_000]);
});

test('the wall is the first range with more than the rate delivers', () => {
    const bars = [0, 1, 2].map((i) => ({ from: i * 10_000, to: (i + 1) * 10_000, tasks: [10, 80, 0][i], expected: 0 }));
    const rate = { count: 5, periodMs: 1000 };
    assert.deepEqual(wallOf(bars, rate, 0), { capacity: [50, 50, 50], wall: 1, over: 30 });
    assert.equal(wallOf(bars, rate, 60).over, 50, 'what is left over is carried on');
    assert.equal(wallOf(bars.slice(0, 1), rate, 0).wall, -1);
});

test('a linear view has at most the buckets that fit', () => {
    assert.equal(bucketFor(3_600_000).bucket, '30s');
    assert.equal(bucketFor(60_000).bucket, '1s');
    assert.equal(bucketFor(100 * 365 * 86_400_000).bucket, '365d');
    const bars = linearBars(
        { bucket: '1m', from: '2030-01-01T00:00:00Z', to: '2030-01-01T00:05:00Z', buckets: [{ at: '2030-01-01T00:02:00Z', tasks: 7 }] },
        60_000,
        Date.parse('2030-01-01T00:01:30Z'),
        Date.parse('2030-01-01T00:04:00Z'),
    );
    assert.deepEqual(
        bars.map((bar) => bar.tasks),
        [0, 7, 0],
    );
});

test('one task can be seen beside a million', () => {
    assert.ok(height(1, 1e6) > 0.04);
    assert.equal(height(0, 10), 0);
    assert.equal(height(1e6, 1e6), 1);
    assert.deepEqual(gridLines(5000), [1, 10, 100, 1000]);
});

test('a clock that is known is kept while it is in the bucket of now', () => {
    assert.equal(clockWithin(5000, 1000, 5400), 5400);
    assert.equal(clockWithin(5000, 1000, 6000), 5000);
    assert.equal(clockWithin(5000, 1000, 4999), 5000);
    assert.equal(clockWithin(5000, 1000, null), 5000);
});

test('a far range begins with what is left over by then, and not with what is due today', () => {
    const rate = { count: 1, periodMs: 1000 };
    const bar = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ tasks) => ({ from, to, tasks, expected: 0 });
    const bars = [bar(0, 10_000, 0), bar(10_000, 20_000, 30), bar(20_000, 120_000, 0)];
    assert.equal(leftAt(bars, rate, 5, 0), 5);
    assert.equal(leftAt(bars, rate, 5, 2000), 3);
    assert.equal(leftAt(bars, rate, 5, 10_000), 0);
    assert.equal(leftAt(bars, rate, 5, 15_000), 10);
    assert.equal(leftAt(bars, rate, 5, 30_000), 10);
    assert.equal(leftAt(bars, rate, 5, 120_000), 0);
});
