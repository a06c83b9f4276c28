/** The filter of a search: from the fields of the page to the parameters of a list and the filter of a bulk change; and how such a change ends. */

import { parseDuration } from './duration.js';
import { parseInstant, rfc3339, wall } from './instant.js';

/**
 * @typedef {{key?: string, key_contains?: string, tag?: string, state?: string, group?: string, due_from?: string, due_to?: string}} Fields
 * The fields as they stand in the URL. A due time is an instant, `now`, or `+2h` and `-2h` from now.
 */

export const FIELDS = ['key', 'key_contains', 'tag', 'state', 'group', 'due_from', 'due_to'];
export const STATES = ['scheduled', 'ready', 'leased'];
/** The latest due time, in the year 9999. */
const DUE_MAX = 253_402_207_200_999;

/** @type {[string, string, string][]} Words for ranges of due times: the word's key, from, to. */
export const RANGES = [
    ['overdue', '', 'now'],
    ['next_minute', 'now', '+1m'],
    ['next_hour', 'now', '+1h'],
    ['next_day', 'now', '+1d'],
    ['next_week', 'now', '+7d'],
    ['later', '+7d', ''],
];

/**
 * Reads a due time of a field.
 * @param {string} text
 * @param {number} now
 * @param {string} zone
 * @returns {number | null}
 */
export function parseDue(text, now, zone) {
    const typed = text.trim();
    if (typed === 'now') return now;
    const sign = typed[0];
    if (sign === '+' || (sign === '-' && !/^-\d{4}-/.test(typed))) {
        const ms = parseDuration(typed.slice(1));
        return ms === null ? null : now + (sign === '+' ? ms : -ms);
    }
    return parseInstant(typed, zone);
}

/**
 * The parameters of a list, or the fields that cannot be read.
 * @param {Fields} fields
 * @param {number} now
 * @param {string} zone
 * @returns {{parameters: Record<string, string>, wrong: string[]}}
 */
export function parameters(fields, now, zone) {
    /** @type {Record<string, string>} */
    const found = {};
    const wrong = [];
    for (const name of FIELDS) {
        const value = /** @type {Record<string, string | undefined>} */ (fields)[name];
        if (!value) continue;
        if (name !== 'due_from' && name !== 'due_to') {
            found[name] = value;
            continue;
        }
        const ms = parseDue(value, now, zone);
        if (ms === null || ms > DUE_MAX) wrong.push(name);
        else found[name] = String(Math.max(0, ms));
    }
    return { parameters: found, wrong };
}

/**
 * The filter of a bulk change. Members that the server cannot filter by yet make it null, so that no more is changed than is shown.
 * @param {Record<string, string>} parameters Those of the list.
 * @param {string[]} known The members that the server's filter has.
 * @returns {Record<string, string | number> | null}
 */
export function bulkFilter(parameters, known) {
    /** @type {Record<string, string | number>} */
    const filter = {};
    for (const [name, value] of Object.entries(parameters)) {
        if (!known.includes(name)) return null;
        filter[name] = name.startsWith('due_') ? Number(value) : value;
    }
    return filter;
}

/** Whether an answer is a job that ended before it was done, so that its numbers are of a part. @param {any} answer */
export const endedBadly = (answer) =>
    answer?.id !== undefined && answer.state !== undefined && answer.state !== 'running' && answer.state !== 'done';

/**
 * The members of a move that was typed: `+1h` and `-1h` (or `by 1h`) from each task's own due time, `in 1h` and `1h` from the server's
 * clock, not from that of the browser, or an instant.
 * @param {string} text
 * @param {number} now
 * @param {string} zone
 * @returns {{by: string} | {delay: string} | {at_ms: number} | null}
 */
export function moveOf(text, now, zone) {
    const typed = text.trim();
    if (typed === 'now') return { delay: '0s' };
    const at = parseInstant(typed, zone);
    if (at !== null) return { at_ms: Math.max(0, at) };
    const [, word, sign, length] = /^(by|in|)\s*([+-]?)\s*(\S+)$/.exec(typed) ?? [];
    if (length === undefined || parseDuration(length) === null || (word === 'in' && sign)) return null;
    return word === 'by' || sign ? { by: sign.replace('+', '') + length } : { delay: length };
}

/**
 * A move of one task that was typed, whose due time is known: the new one, and the members of the call.
 * @param {string} text
 * @param {number} due
 * @param {number} now
 * @param {string} zone
 * @returns {{at: number, body: Record<string, string | number>} | null}
 */
export function moveTask(text, due, now, zone) {
    const move = moveOf(text, now, zone);
    if (!move) return null;
    const length = (/** @type {string} */ written) => parseDuration(written.replace('-', '')) ?? 0;
    const at =
        'at_ms' in move
            ? move.at_ms
            : 'by' in move
              ? Math.max(0, due + (move.by[0] === '-' ? -1 : 1) * length(move.by))
              : now + length(move.delay);
    if (at > DUE_MAX) return null;
    return { at, body: 'by' in move ? { at_ms: at } : move };
}

/** A due time in a field, so that the same instant is read from it. @param {number} ms @param {string} zone */
export function dueText(ms, zone) {
    const here = wall(ms, zone);
    const text = `${here.date} ${here.time}${here.millis === '000' ? '' : `.${here.millis}`}`;
    return parseInstant(text, zone) === ms ? text : rfc3339(ms, zone);
}

/**
 * A due time as it stands in an address: an instant is written with its offset, so that a reader in another zone sees the same tasks.
 * What is no instant stays as it is.
 * @param {string} text
 * @param {string} zone
 */
export function withZone(text, zone) {
    const typed = text.trim();
    const ms = parseInstant(typed, zone);
    return ms === null || /(Z|[+-]\d{2}:\d{2})$/i.test(typed) ? typed : rfc3339(ms, zone);
}

/** The fields of a search for what is due in a bar. A bar ends before its end, and `due_to` is inclusive. @param {number} from @param {number} to */
export const dueBetween = (from, to) => ({
    due_from: rfc3339(from, 'UTC'),
    due_to: rfc3339(Math.max(from, Math.ceil(to) - 1), 'UTC'),
});
