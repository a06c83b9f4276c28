/** The filter of a search: from the fields of the page to the parameters of a list and the filter of a bulk change; and how such a change ends. */

import { parseDuration } from './duration.js';
import { parseInstant, rfc3339 } from './instant.js';

/**
 * @typedef {{key?: string, key_contains?: string, tag?: string, state?: string, group?: string, due_from?: string, due_to?: string}} Fields
 * The fields as they stand in the URL. A due time is an instant, `now`, or `+2h` and `-2h` from now.
 */

export const FIELDS = ['key', 'key_contains', 'tag', 'state', 'group', 'due_from', 'due_to'];
export const STATES = ['scheduled', 'ready', 'leased'];

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
        if (ms === null || ms > 253_402_207_200_999) wrong.push(name);
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
 * The members of a move to a due time that was typed. A length counts from the server's clock, not from that of the browser.
 * @param {string} text
 * @param {number} now
 * @param {string} zone
 * @returns {Record<string, string | number> | null}
 */
export function moveTo(text, now, zone) {
    const typed = text.trim();
    const at = parseDue(typed, now, zone);
    if (at === null) return null;
    if (typed === 'now') return { delay: '0s' };
    return typed.startsWith('+') ? { delay: typed.slice(1).trim() } : { at_ms: Math.max(0, at) };
}

/** The members of a bulk move: `by 1h` and `by -1h` too. @param {string} text @param {number} now @param {string} zone */
export function moveOf(text, now, zone) {
    const by = /^by\s+(-?)(\S+)$/.exec(text.trim());
    if (by) return parseDuration(by[2]) === null ? null : { by: by[1] + by[2] };
    return moveTo(text, now, zone);
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
    due_from: new Date(from).toISOString(),
    due_to: new Date(Math.max(from, Math.ceil(to) - 1)).toISOString(),
});
