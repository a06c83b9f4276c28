/** The settings of a queue as a form: fields, checks, and the difference that a `PATCH` sends. */

import { parseDuration, parseRate } from './duration.js';

/**
 * @typedef {object} Field
 * @property {string} name The member; `retry.base` is a member of `retry`.
 * @property {'integer' | 'duration' | 'rate' | 'share' | 'choice'} kind
 * @property {string} [preset] The default, as text; without it there is no limit.
 * @property {number} [min]
 * @property {number} [max] For durations in milliseconds.
 * @property {string[]} [choices]
 */

const DAY = 86_400_000;

/** @type {Field[]} */
export const FIELDS = [
    { name: 'max_in_flight', kind: 'integer', min: 1, max: 1e9 },
    { name: 'max_in_flight_per_group', kind: 'integer', min: 1, max: 1e9 },
    { name: 'rate', kind: 'rate' },
    { name: 'burst', kind: 'integer', min: 1, max: 1e9 },
    { name: 'max_backlog', kind: 'integer', min: 1, max: 1e9 },
    { name: 'default_lease', kind: 'duration', preset: '30s', min: 1000, max: DAY / 2 },
    { name: 'retry.max_attempts', kind: 'integer', min: 1, max: 1e6 },
    { name: 'retry.backoff', kind: 'choice', choices: ['exponential', 'fixed'], preset: 'exponential' },
    { name: 'retry.base', kind: 'duration', preset: '1s', min: 0, max: 36_500 * DAY },
    { name: 'retry.max', kind: 'duration', preset: '10m', min: 0, max: 36_500 * DAY },
    { name: 'retry.jitter', kind: 'share', preset: '0.5', min: 0, max: 1 },
    { name: 'history.keep', kind: 'duration', preset: '1d', min: 0, max: 365 * DAY },
    { name: 'history.keys', kind: 'integer', preset: '100000', min: 0, max: 1e6 },
];

/**
 * @param {Record<string, any>} queue As the server answers it.
 * @returns {Record<string, string>} The text of each field; empty for one that has no value.
 */
export function valuesOf(queue) {
    /** @type {Record<string, string>} */
    const values = {};
    for (const { name } of FIELDS) {
        const value = name.split('.').reduce((/** @type {any} */ at, part) => at?.[part], queue);
        values[name] = value === undefined || value === null ? '' : String(value);
    }
    return values;
}

/**
 * The key of the message for a text that the server would refuse, or null.
 * @param {Field} field
 * @param {string} text
 */
export function check(field, text) {
    const typed = text.trim();
    if (typed === '') return null;
    switch (field.kind) {
        case 'integer':
            return /^\d{1,10}$/.test(typed) && inside(field, Number(typed)) ? null : 'settings.wrong.integer';
        case 'share':
            return /^(0(\.\d+)?|1(\.0+)?|\.\d+)$/.test(typed) ? null : 'settings.wrong.share';
        case 'rate':
            return parseRate(typed) ? null : 'settings.wrong.rate';
        case 'duration': {
            const ms = parseDuration(typed);
            return ms !== null && inside(field, ms) ? null : 'settings.wrong.duration';
        }
        default:
            return field.choices?.includes(typed) ? null : 'settings.wrong.choice';
    }
}

/** @param {Field} field @param {number} value */
const inside = (field, value) => value >= (field.min ?? 0) && value <= (field.max ?? Infinity);

/**
 * The fields that differ, in the order of the form.
 * @param {Record<string, string>} before
 * @param {Record<string, string>} after
 * @returns {{name: string, before: string, after: string}[]}
 */
export function difference(before, after) {
    return FIELDS.filter(({ name }) => before[name] !== after[name].trim()).map(({ name }) => ({
        name,
        before: before[name],
        after: after[name].trim(),
    }));
}

/**
 * The body of the `PATCH`. An emptied field is sent as null, which gives it its default.
 * @param {{name: string, after: string}[]} changes
 */
export function patchOf(changes) {
    /** @type {Record<string, any>} */
    const body = {};
    for (const { name, after } of changes) {
        const field = FIELDS.find((f) => f.name === name);
        const number = field?.kind === 'integer' || field?.kind === 'share';
        const value = after === '' ? null : number ? Number(after) : after;
        const [outer, inner] = name.split('.');
        if (inner) body[outer] = { ...body[outer], [inner]: value };
        else body[outer] = value;
    }
    return body;
}

/** The members of a target that are no settings. The server refuses them in a `PUT`. */
const STATE = ['queue', 'version', 'state', 'since', 'next_try', 'reason', 'in_flight', 'attempts'];

/** The settings of a target, as a `PUT` takes them. @param {Record<string, any>} view */
export const settingsOf = (view) => Object.fromEntries(Object.entries(view).filter(([name]) => !STATE.includes(name)));

/** A setting of a target as one text. @param {any} value @returns {string} */
export function shownMember(value) {
    if (Array.isArray(value)) return value.map(shownMember).join(', ');
    if (value === null || typeof value !== 'object') return String(value);
    // A secret is not shown, but its id tells it from others.
    if (value.set === true) return value.id ? `••• ${value.id}` : '•••';
    return Object.entries(value)
        .map(([name, inner]) => `${name}: ${shownMember(inner)}`)
        .join(', ');
}

/**
 * Whether a caller may do what needs a right. Nothing is allowed before it is known who calls, except to read.
 * @param {any} caller The answer of `GET /v1/whoami`, and null until it is known.
 * @param {string} right
 */
export function allows(caller, right) {
    if (caller === null) return right === 'read';
    if (caller.console === 'read-only' && right !== 'read') return false;
    return caller.rights.includes(right);
}
