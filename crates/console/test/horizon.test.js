import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
    ENDS,
    LABELS,
    backlogOf,
    bucketFor,
    gridLines,
    height,
    linearBars,
    logBarsOf,
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

test('a backlog is found minute by minute, with its end', () => {
    const rate = { count: 50, periodMs: 1000 };
    const end = NOW + 7 * 86_400_000;
    const minutes = (/** @type {number} */ first, /** @type {number[]} */ counts) =>
        counts.map((tasks, i) => ({ at: new Date(NOW + (first + i) * 60_000).toISOString(), tasks }));
    // 6,000 in each of 20 minutes, of which a minute carries 3,000: a coarse range hides it.
    const found = backlogOf(minutes(480, Array(20).fill(6_000)), rate, 0, 0, NOW, end);
    assert.deepEqual(found, { from: NOW + 480 * 60_000, until: NOW + 520 * 60_000, peak: 60_000, lateMs: 1_200_000, needed: '100/s' });
    assert.equal(backlogOf(minutes(1, [3_000, 3_000, 2_000]), rate, 0, 0, NOW, end), null);
    assert.equal(backlogOf(minutes(1, [3_040]), rate, 50, 0, NOW, end), null, 'the burst goes out at once');
    assert.equal(backlogOf(minutes(1, [3_040]), rate, 0, 0, NOW, end)?.peak, 40);
    assert.equal(backlogOf([], rate, 50, 3_000, NOW, end), null, 'a minute carries what is due');
    const behind = { from: NOW, until: NOW + 120_000, peak: 3_000, lateMs: 60_000, needed: null };
    assert.deepEqual(backlogOf([], rate, 50, 6_000, NOW, end), behind, 'no other rate is named for what is due already');
    // The first time ends before the second begins.
    const first = backlogOf([...minutes(1, [6_000]), ...minutes(60, [90_000])], rate, 0, 0, NOW, end);
    assert.deepEqual([first?.until, first?.peak], [NOW + 180_000, 3_000]);
    const slow = backlogOf(minutes(1, [5]), { count: 1, periodMs: 60_000 }, 1, 0, NOW, end);
    assert.deepEqual([slow?.peak, slow?.needed, slow?.until], [3, '5/m', NOW + 300_000]);
    const hourly = { count: 1, periodMs: 3_600_000 };
    assert.equal(backlogOf(minutes(1, [2]), hourly, 1, 0, NOW, end)?.lateMs, 3_600_000, 'the second waits an hour');
    assert.equal(backlogOf(minutes(1, [1]), hourly, 1, 0, NOW, end), null);
    // Nothing is said of the time after the end.
    assert.equal(backlogOf(minutes(1, [6_000]), rate, 0, 0, NOW, NOW + 60_000), null);
    assert.equal(backlogOf(minutes(1, [60_000]), rate, 0, 0, NOW, NOW + 120_000)?.until, null);
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
