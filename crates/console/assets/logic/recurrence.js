/** A schedule in numbers: its cost in a year, and the days on which it runs. */

import { parseDuration } from './duration.js';

const YEAR_MS = 365 * 86_400_000;

/**
 * The tasks that a schedule makes in a year, from the distance of its next instants.
 * @param {any} spec
 * @param {number[]} instants Next instants in milliseconds.
 * @returns {number | null} Null if it cannot be told.
 */
export function tasksAYear(spec, instants) {
    const step = spec.every ? parseDuration(spec.every) : spec.fixed_delay ? parseDuration(spec.fixed_delay) : null;
    if (step) return Math.round(YEAR_MS / step);
    if (instants.length < 2) return null;
    const length = instants[instants.length - 1] - instants[0];
    return length > 0 ? Math.round(((instants.length - 1) * YEAR_MS) / length) : null;
}

/**
 * The number of instants on each of the next 365 days.
 * @param {number[]} instants
 * @param {number} now
 * @returns {number[]}
 */
export function yearStrip(instants, now) {
    const days = new Array(365).fill(0);
    for (const at of instants) {
        const day = Math.floor((at - now) / 86_400_000);
        if (day >= 0 && day < 365) days[day] += 1;
    }
    return days;
}

/** Whether a cron expression repeats within an hour, so that a repeated hour in autumn runs it twice. @param {string | undefined} cron */
export function repeatsWithinAnHour(cron) {
    const fields = (cron ?? '').trim().split(/\s+/);
    const minute = fields.length === 6 ? fields[1] : fields[0];
    const hour = fields.length === 6 ? fields[2] : fields[1];
    return fields.length >= 5 && (/[*/,-]/.test(minute) || minute === '*') && /^\*/.test(hour ?? '');
}

/** Tags as a person edits them. @param {string[]} tags */
export const writeTags = (tags) => tags.join(', ');

/**
 * The tags that were typed. The stored ones stay as they are while their text is unchanged, since a tag may contain a comma.
 * @param {string} text
 * @param {string[]} stored
 */
export function readTags(text, stored) {
    if (text === writeTags(stored)) return stored;
    // A stored tag with a comma is found whole, the longest first, so that an edit of another tag leaves it.
    const whole = stored.filter((tag) => tag.includes(',')).sort((a, b) => b.length - a.length);
    const found = [];
    for (let rest = text; rest.trim() !== '';) {
        rest = rest.replace(/^[\s,]+/, '');
        const tag = whole.find((name) => rest.startsWith(name.trimStart()) && /^\s*(,|$)/.test(rest.slice(name.trimStart().length)));
        const length = tag ? tag.trimStart().length : (rest + ',').indexOf(',');
        const text_ = tag ?? rest.slice(0, length).trim();
        if (text_ !== '') found.push(text_);
        rest = rest.slice(length);
    }
    return found;
}
