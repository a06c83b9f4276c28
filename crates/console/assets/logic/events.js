/** Events of the server: how they come, and rates, percentiles and trends of its statistics, which `GET /metrics` has, too. */

/**
 * Splits a stream of server-sent events. Bytes that end inside an event stay for the next call.
 * @param {string} buffer
 * @returns {{events: {event: string, data: string, id: string}[], rest: string, retry: number | null}} `retry` is the wait (ms) before a broken stream is
 * opened again, if the server names one.
 */
export function parseEvents(buffer) {
    const text = buffer.replace(/\r\n?/g, '\n');
    const end = text.lastIndexOf('\n\n');
    if (end < 0) return { events: [], rest: text, retry: null };
    const events = [];
    let retry = null;
    for (const block of text.slice(0, end).split('\n\n')) {
        const event = { event: 'message', data: '', id: '' };
        const lines = [];
        for (const line of block.split('\n')) {
            const colon = line.indexOf(':');
            if (colon <= 0) continue;
            const value = line.slice(colon + 1).replace(/^ /, '');
            const name = line.slice(0, colon);
            if (name === 'event') event.event = value;
            if (name === 'id') event.id = value;
            if (name === 'retry' && /^\d+$/.test(value)) retry = Number(value);
            if (name === 'data') lines.push(value);
        }
        if (lines.length > 0) events.push({ ...event, data: lines.join('\n') });
    }
    return { events, rest: text.slice(end + 2), retry };
}

/**
 * The samples of some metrics.
 * @param {string} text
 * @param {Set<string>} names
 * @returns {Map<string, {labels: Record<string, string>, value: number}[]>}
 */
export function samples(text, names) {
    /** @type {Map<string, {labels: Record<string, string>, value: number}[]>} */
    const found = new Map();
    for (const line of text.split('\n')) {
        const parts = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
        if (!parts || !names.has(parts[1])) continue;
        /** @type {Record<string, string>} */
        const labels = {};
        for (const [, name, value] of (parts[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[name] = value.replace(/\\(.)/g, '$1');
        const list = found.get(parts[1]) ?? [];
        list.push({ labels, value: Number(parts[3].replace('+Inf', 'Infinity')) });
        found.set(parts[1], list);
    }
    return found;
}

/** @typedef {{le: number, count: number}[]} Histogram Bounds in seconds, counts cumulative. */

/**
 * @typedef {object} Stats What the overview shows of the whole server.
 * @property {number} at Milliseconds of the browser's clock.
 * @property {Record<string, number>} counters By the words of the rates.
 * @property {Histogram} lateness
 * @property {Histogram | null} commit Null for a token with a scope.
 * @property {number | null} oldestDueMs
 * @property {number | null} roomBytes
 * @property {Record<string, number>} oldestByQueue Milliseconds.
 * @property {string} [now] The server's time. The metrics do not have it.
 * @property {Record<string, number>} [totals] The tasks of all queues by state.
 * @property {number} [queues] Number of all queues.
 */

const COUNTERS = /** @type {const} */ ([
    ['put', 'tickwheel_scheduled_total', ''],
    ['fired', 'tickwheel_fired_total', ''],
    ['delivered', 'tickwheel_leased_total', ''],
    ['acked', 'tickwheel_delivered_total', 'acked'],
    ['nacked', 'tickwheel_delivered_total', 'nacked'],
    ['cancelled', 'tickwheel_cancelled_total', ''],
    ['dead', 'tickwheel_dead_lettered_total', ''],
]);

const NAMES = new Set([
    ...COUNTERS.map(([, name]) => name),
    'tickwheel_fire_lateness_seconds_bucket',
    'tickwheel_commit_seconds_bucket',
    'tickwheel_oldest_due_age_seconds',
    'tickwheel_store_room_bytes',
    'tickwheel_queue_oldest_due_age_seconds',
]);

/** @param {string} text @param {number} at @returns {Stats} */
export function statsOf(text, at) {
    const all = samples(text, NAMES);
    /** @type {Record<string, number>} */
    const counters = {};
    for (const [word, name, result] of COUNTERS) {
        counters[word] = (all.get(name) ?? [])
            .filter((s) => result === '' || s.labels.result === result)
            .reduce((sum, s) => sum + s.value, 0);
    }
    const histogram = (/** @type {string} */ name) =>
        (all.get(name) ?? []).map((s) => ({ le: s.labels.le === '+Inf' ? Infinity : Number(s.labels.le), count: s.value }));
    const one = (/** @type {string} */ name) => all.get(name)?.[0]?.value ?? null;
    const room = one('tickwheel_store_room_bytes');
    const oldest = one('tickwheel_oldest_due_age_seconds');
    return {
        at,
        counters,
        lateness: histogram('tickwheel_fire_lateness_seconds_bucket'),
        commit: histogram('tickwheel_commit_seconds_bucket'),
        oldestDueMs: oldest === null ? null : oldest * 1000,
        // A store in memory has no end.
        roomBytes: room === null || room > 2 ** 60 ? null : room,
        oldestByQueue: Object.fromEntries(
            (all.get('tickwheel_queue_oldest_due_age_seconds') ?? []).map((s) => [s.labels.queue, s.value * 1000]),
        ),
    };
}

/** How long an instant is past at another, in milliseconds. @param {string | null} at @param {string} now */
export const ageAt = (at, now) => (at === null ? null : Math.max(0, Date.parse(now) - Date.parse(at)));

/**
 * The statistics of an event `stats`.
 * @param {any} event
 * @param {number} at
 * @returns {Stats}
 */
export function streamedStats(event, at) {
    const histogram = (/** @type {{le_us: number | null, count: number}[]} */ buckets) =>
        buckets.map(({ le_us, count }) => ({ le: le_us === null ? Infinity : le_us / 1e6, count }));
    return {
        at,
        counters: event.counters,
        lateness: histogram(event.lateness),
        commit: event.commit ? histogram(event.commit) : null,
        oldestDueMs: ageAt(event.oldest_due, event.now),
        roomBytes: event.room_bytes ?? null,
        oldestByQueue: {},
        now: event.now,
        totals: event.totals,
        queues: event.queues,
    };
}

/**
 * Counts a second between the oldest and the newest observation.
 * @param {Stats[]} history Oldest first.
 * @returns {Record<string, number> | null} Null before there are two, or after a restart of the server.
 */
export function rates(history) {
    const first = history[0];
    const last = history[history.length - 1];
    if (!first || last.at - first.at < 500) return null;
    /** @type {Record<string, number>} */
    const found = {};
    for (const word of Object.keys(last.counters)) {
        if (last.counters[word] < first.counters[word]) return null;
        found[word] = ((last.counters[word] - first.counters[word]) * 1000) / (last.at - first.at);
    }
    return found;
}

/**
 * The bound of the bucket that a share of the observations since `before` does not exceed; never a figure between two bounds.
 * @param {Histogram} before
 * @param {Histogram} after
 * @param {number} share
 * @returns {number | null} Milliseconds; null without observations.
 */
export function percentile(before, after, share) {
    const since = after.map(({ le, count }) => ({ le, count: count - (before.find((b) => b.le === le)?.count ?? 0) }));
    const all = since[since.length - 1]?.count ?? 0;
    if (all <= 0) return null;
    const found = since.find(({ count }) => count >= all * share);
    return found ? found.le * 1000 : null;
}

/**
 * A course of counts as heights from 0 to 1. The scale reaches over half of the largest count and over 4 at least: a count that stays is a
 * line at half the height, a small change is a small step, and 0 is at the lower edge if nothing else was seen.
 * @param {number[]} values
 */
export function trend(values) {
    const [least, most] = [Math.min(...values), Math.max(...values)];
    const reach = Math.max(most - least, most / 2, 4);
    const from = Math.max(0, (least + most - reach) / 2);
    return values.map((value) => (value - from) / reach);
}
