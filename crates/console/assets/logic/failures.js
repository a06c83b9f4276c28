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

/** The tasks that one call redrives at most. */
const REDRIVE_MAX = 1000;

/**
 * Redrives some dead tasks, up to 1,000 in a call, where the server has no filter for them.
 * @param {{redrive: (body: any) => Promise<any>, list: (limit: number) => Promise<number[]>}} calls `list` has the ids of the first dead tasks.
 * @param {{ids?: number[], most?: number, stopped: () => boolean}} which Tasks by their ids, or of the whole queue at most so many: others
 * may have died since they were counted.
 */
export async function redriveMany({ redrive, list }, { ids, most = 0, stopped }) {
    let matched = 0;
    let redriven = 0;
    let left = ids ? ids.length : most;
    while (left > 0 && !stopped()) {
        // A call without ids takes 1,000 tasks, so the last ones are named.
        const named = ids ? ids.slice(ids.length - left, ids.length - left + REDRIVE_MAX) : left < REDRIVE_MAX ? await list(left) : null;
        if (stopped() || named?.length === 0) break;
        const answer = await redrive(named ? { ids: named } : {});
        matched += answer.matched;
        redriven += answer.redriven;
        left -= named ? named.length : answer.matched;
        // A call that changed nothing would be answered the same again.
        if (!ids && (!answer.more || answer.redriven === 0)) break;
    }
    return { matched, redriven };
}
