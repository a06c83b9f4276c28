/**
 * Durations and rates as the API reads and writes them: `250ms`, `1h30m`, `15d`, and `5/s`, `1/250ms`.
 *
 * The rules are those of the server: the largest unit comes first, no unit occurs twice, only the last part has decimals,
 * and the result is rounded up to whole milliseconds.
 */

/** @type {[string, number][]} The units, largest first, in milliseconds. */
export const UNITS = [
    ['w', 604_800_000],
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1000],
    ['ms', 1],
];

const MAX_MS = 2 ** 53;

/**
 * Reads a duration.
 * @param {string} text
 * @returns {number | null} Milliseconds, or null if the server would refuse the text.
 */
export function parseDuration(text) {
    let rest = text.trim();
    if (rest === '' || rest.length > 64) return null;
    let ms = 0;
    let from = 0;
    while (rest !== '') {
        const part = /^(\d+)(\.\d{1,9})?(ms|[smhdw])/.exec(rest);
        if (!part) return null;
        const unit = UNITS.findIndex(([name]) => name === part[3]);
        rest = rest.slice(part[0].length);
        if (unit < from || (part[2] && rest !== '')) return null;
        from = unit + 1;
        ms += Number(part[1] + (part[2] ?? '')) * UNITS[unit][1];
    }
    // A product such as 1.1 * 1000 may exceed the exact value by its last bit.
    const whole = Math.max(0, Math.ceil(ms - 1e-6));
    return whole <= MAX_MS ? whole : null;
}

/**
 * Writes a duration as the API does.
 * @param {number} ms
 */
export function writeDuration(ms) {
    let rest = Math.max(0, Math.round(ms));
    if (rest === 0) return '0s';
    let text = '';
    for (const [name, size] of UNITS) {
        if (name === 'w') continue;
        const count = Math.floor(rest / size);
        if (count > 0) text += `${count}${name}`;
        rest -= count * size;
    }
    return text;
}

/**
 * The two largest parts of a duration, for a reader: 3 d 4 h. Years of 365 days are parts, too.
 * @param {number} ms
 * @returns {[number, 'year' | 'day' | 'hour' | 'minute' | 'second' | 'millisecond'][]}
 */
export function largestParts(ms) {
    /** @type {['year' | 'day' | 'hour' | 'minute' | 'second' | 'millisecond', number][]} */
    const sizes = [
        ['year', 31_536_000_000],
        ['day', 86_400_000],
        ['hour', 3_600_000],
        ['minute', 60_000],
        ['second', 1000],
        ['millisecond', 1],
    ];
    let rest = Math.abs(Math.round(ms));
    // A second is exact enough from one minute on, a tenth of a second below.
    if (rest >= 60_000) rest = Math.floor(rest / 1000) * 1000;
    const first = sizes.findIndex(([, size]) => rest >= size);
    if (first < 0) return [[0, 'second']];
    if (sizes[first][0] === 'second') return [[Math.floor(rest / 100) / 10, 'second']];
    const [name, size] = sizes[first];
    const count = Math.floor(rest / size);
    /** @type {[number, 'year' | 'day' | 'hour' | 'minute' | 'second' | 'millisecond'][]} */
    const parts = [[count, name]];
    const next = sizes[first + 1];
    const more = next ? Math.floor((rest - count * size) / next[1]) : 0;
    if (more > 0) parts.push([more, next[0]]);
    return parts;
}

/**
 * Reads a rate such as `5/s`.
 * @param {string} text
 * @returns {{count: number, periodMs: number} | null}
 */
export function parseRate(text) {
    const halves = text.trim().split('/');
    if (halves.length !== 2 || !/^\d{1,10}$/.test(halves[0])) return null;
    const count = Number(halves[0]);
    const period = /^\d/.test(halves[1]) ? halves[1] : `1${halves[1]}`;
    const periodMs = parseDuration(period);
    if (periodMs === null || periodMs < 1 || periodMs > 86_400_000 || count < 1 || count > 1e9) return null;
    return { count, periodMs };
}
