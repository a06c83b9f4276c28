/** Failures of dead tasks, grouped so that one cause is one row. */

/**
 * The text of a failure with what differs from task to task made `#`: UUIDs, long hex numbers, digits and quoted parts.
 * @param {string} text
 */
export function shape(text) {
    return text
        .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, '#')
        .replace(/"[^"]*"|'[^']*'|`[^`]*`/g, '#')
        .replace(/\b(0x)?(?=[0-9a-f]*\d)[0-9a-f]{8,}\b/gi, '#')
        .replace(/\d+(?:[.,:]\d+)*/g, '#')
        .replace(/\s+/g, ' ')
        .trim();
}

/**
 * @typedef {object} Group
 * @property {string} id
 * @property {string} reason Why the tasks were given up.
 * @property {string} failure The shape of their last failure; empty if none has a text.
 * @property {string} how How the last attempt ended; empty without one.
 * @property {number} count
 * @property {string} first The earliest and the latest `dead_at`.
 * @property {string} last
 * @property {{key: string, id: number, text: string}[]} examples At most three.
 */

/**
 * Groups dead tasks, the largest group first.
 * @param {any[]} tasks
 * @returns {Group[]}
 */
export function groupsOf(tasks) {
    /** @type {Map<string, Group>} */
    const groups = new Map();
    for (const task of tasks) {
        const last = task.failures?.[task.failures.length - 1];
        const failure = shape(last?.reason ?? '');
        const id = JSON.stringify([task.reason, last?.how ?? '', failure]);
        let group = groups.get(id);
        if (!group) {
            group = {
                id,
                reason: task.reason,
                failure,
                how: last?.how ?? '',
                count: 0,
                first: task.dead_at,
                last: task.dead_at,
                examples: [],
            };
            groups.set(id, group);
        }
        group.count += 1;
        if (task.dead_at < group.first) group.first = task.dead_at;
        if (task.dead_at > group.last) group.last = task.dead_at;
        if (group.examples.length < 3) group.examples.push({ key: task.key, id: task.id, text: last?.reason ?? '' });
    }
    return [...groups.values()].sort((a, b) => b.count - a.count || (a.last < b.last ? 1 : -1));
}

/** Whether a dead task belongs to a group. @param {any} task @param {string} id */
export function isIn(task, id) {
    const last = task.failures?.[task.failures.length - 1];
    return JSON.stringify([task.reason, last?.how ?? '', shape(last?.reason ?? '')]) === id;
}
