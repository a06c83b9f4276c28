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

/** Tags as a person edits them: one on each line, since a tag may contain a comma. @param {string[]} tags */
export const writeTags = (tags) => tags.join('\n');

/**
 * The tags that were typed. Blanks around a tag go, except for those of a stored one.
 * @param {string} text
 * @param {string[]} stored
 */
export const readTags = (text, stored) =>
    text === writeTags(stored)
        ? stored
        : text
              .split('\n')
              .map((line) => (stored.includes(line) ? line : line.trim()))
              .filter((tag) => tag !== '');
