/**
 * The horizon: what falls due in 39 ranges from now to 100 years ahead.
 *
 * The ranges end 1 5 10 15 ... 60 s, 2 5 10 20 30 min, 1 2 3 6 12 h, 1 2 3 7 14 30 60 90 180 days, and 1 2 5 10 20 50 100 years (of
 * 365 days) from now.
 */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

/** The ends of the ranges, in milliseconds from now. */
export const ENDS = [
    ...[1, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60].map((n) => n * SECOND),
    ...[2, 5, 10, 20, 30].map((n) => n * MINUTE),
    ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
    ...[1, 2, 3, 7, 14, 30, 60, 90, 180].map((n) => n * DAY),
    ...[1, 2, 5, 10, 20, 50, 100].map((n) => n * YEAR),
];

/** The ends that have a label below the chart, with the label in the units of the API; years of 365 days. */
export const LABELS = new Map([
    [10 * SECOND, '10s'],
    [30 * SECOND, '30s'],
    [MINUTE, '1m'],
    [5 * MINUTE, '5m'],
    [20 * MINUTE, '20m'],
    [HOUR, '1h'],
    [6 * HOUR, '6h'],
    [DAY, '1d'],
    [7 * DAY, '7d'],
    [30 * DAY, '30d'],
    [90 * DAY, '90d'],
    [YEAR, '1y'],
    [10 * YEAR, '10y'],
    [100 * YEAR, '100y'],
]);

/**
 * @typedef {{from: number, to: number, tasks: number, expected: number}} Bar
 * Instants in milliseconds since 1970. `expected` tasks will come from schedules.
 */

/**
 * Bars of a forecast with a logarithmic scale, which leaves empty buckets out.
 * @param {{from: string, buckets: {at: string, tasks: number, expected?: number}[]}} forecast
 * @returns {Bar[]}
 */
export function logBarsOf(forecast) {
    const from = Date.parse(forecast.from);
    const bars = ENDS.map((end, i) => ({ from: from + (ENDS[i - 1] ?? 0), to: from + end, tasks: 0, expected: 0 }));
    for (const bucket of forecast.buckets) {
        const bar = bars.find((b) => b.from === Date.parse(bucket.at));
        if (!bar) continue;
        bar.tasks += bucket.tasks;
        bar.expected += bucket.expected ?? 0;
    }
    return bars;
}

/**
 * Bars of one linear forecast between two instants.
 * @param {{bucket: string, from: string, to: string, buckets: {at: string, tasks: number, expected?: number}[]}} forecast
 * @param {number} bucketMs
 * @param {number} from
 * @param {number} to
 * @returns {Bar[]}
 */
export function linearBars(forecast, bucketMs, from, to) {
    const first = Date.parse(forecast.from);
    const bars = [];
    for (let at = first; at < Date.parse(forecast.to); at += bucketMs) {
        if (at + bucketMs > from && at < to) bars.push({ from: at, to: at + bucketMs, tasks: 0, expected: 0 });
    }
    for (const bucket of forecast.buckets) {
        const bar = bars[Math.round((Date.parse(bucket.at) - (bars[0]?.from ?? 0)) / bucketMs)];
        if (bar && bar.from === Date.parse(bucket.at)) {
            bar.tasks += bucket.tasks;
            bar.expected += bucket.expected ?? 0;
        }
    }
    return bars;
}

/** Lengths of buckets of a linear view, in milliseconds, with their texts. */
const STEPS = [
    [SECOND, '1s'],
    [5 * SECOND, '5s'],
    [10 * SECOND, '10s'],
    [30 * SECOND, '30s'],
    [MINUTE, '1m'],
    [5 * MINUTE, '5m'],
    [10 * MINUTE, '10m'],
    [30 * MINUTE, '30m'],
    [HOUR, '1h'],
    [3 * HOUR, '3h'],
    [6 * HOUR, '6h'],
    [12 * HOUR, '12h'],
    [DAY, '1d'],
    [7 * DAY, '7d'],
    [30 * DAY, '30d'],
    [YEAR, '365d'],
];

/**
 * The bucket of a linear view: the finest with at most `most` bars.
 * @param {number} lengthMs Of the view.
 * @param {number} [most]
 * @returns {{bucketMs: number, bucket: string}}
 */
export function bucketFor(lengthMs, most = 120) {
    const found = STEPS.find(([ms]) => lengthMs / Number(ms) <= most) ?? STEPS[STEPS.length - 1];
    return { bucketMs: Number(found[0]), bucket: String(found[1]) };
}

/** The number of tasks that a queue's rate can deliver in each bar. @param {Bar[]} bars @param {{count: number, periodMs: number}} rate */
export const capacityOf = (bars, rate) => bars.map((bar) => ((bar.to - bar.from) / rate.periodMs) * rate.count);

/** How far ahead a backlog is looked for. */
export const REACH = 7 * DAY;

/**
 * The first time in which a queue's rate does not deliver what falls due in the minute in which it falls due.
 * @param {{at: string, tasks: number, expected?: number}[]} buckets Of one minute each, in the order of time; empty ones are left out.
 * @param {{count: number, periodMs: number}} rate
 * @param {number} burst
 * @param {number} due Tasks that are due already.
 * @param {number} from Now.
 * @param {number} end The buckets are known up to here.
 * @returns {{from: number, until: number | null, peak: number, lateMs: number, needed: string | null} | null} `until`: none waits any more;
 * `null`: some wait at the end. `peak`: the number that waits at the end of the worst minute, and `lateMs` how long the last of them does.
 * `needed`: a rate that would do; `null`: only what is due already waits.
 */
export function backlogOf(buckets, rate, burst, due, from, end) {
    const perMs = rate.count / rate.periodMs;
    // A thousandth of a task is an error of rounding.
    const left = (/** @type {number} */ waiting) => Math.ceil(waiting - perMs * MINUTE - 0.001);
    // Tasks that wait; below 0 it is what the burst still lets through at once.
    let waiting = due > 0 ? due : -burst;
    let now = from;
    let most = 0;
    let found = left(waiting) > 0 ? { from, peak: left(waiting) } : null;
    let open = true;
    for (const bucket of buckets) {
        const begin = Math.max(now, Date.parse(bucket.at));
        if (begin >= end) break;
        const rest = waiting - perMs * (begin - now);
        if (found && rest <= 0) {
            open = false;
            break;
        }
        const come = bucket.tasks + (bucket.expected ?? 0);
        waiting = Math.max(-burst, rest) + come;
        now = begin;
        if (left(waiting) > 0) {
            found ??= { from: begin, peak: 0 };
            found.peak = Math.max(found.peak, left(waiting));
        }
        if (found) most = Math.max(most, come);
    }
    if (!found) return null;
    const until = now + Math.round(Math.max(0, waiting) / perMs);
    const needed = most <= perMs * MINUTE ? null : most >= 60 ? `${Math.ceil(most / 60)}/s` : `${most}/m`;
    return { ...found, until: open && until > end ? null : until, lateMs: Math.round(found.peak / perMs), needed };
}

/** The height of a count, from 0 to 1, on a logarithmic axis that shows a single task, too. @param {number} count @param {number} most */
export const height = (count, most) => (count <= 0 ? 0 : Math.log10(1 + count) / Math.log10(1 + Math.max(most, 9)));

/** The lines of that axis: powers of ten up to the largest count. @param {number} most */
export function gridLines(most) {
    const lines = [1];
    while (lines[lines.length - 1] * 10 <= Math.max(most, 9)) lines.push(lines[lines.length - 1] * 10);
    return lines;
}

/**
 * The instant of a clock of which a bucket is known that contains it, and an instant that was true before.
 * @param {number} from The begin of the bucket.
 * @param {number} length
 * @param {number | null} known
 */
export const clockWithin = (from, length, known) => (known !== null && known >= from && known < from + length ? known : from);
