/** The story of a task, from what the API tells of it: what happened, what comes, and why it does not run yet. */

/**
 * @typedef {object} Event
 * @property {string} what The key of its words below `story.`.
 * @property {number | null} at Milliseconds since 1970; null if it is not known.
 * @property {number} [attempt]
 * @property {string} [reason]
 * @property {boolean} [future]
 */

/**
 * @param {any} task
 * @param {number} now
 * @returns {Event[]}
 */
export function eventsOf(task, now) {
    /** @type {Event[]} */
    const events = [];
    const failures = task.failures ?? [];
    if (failures.length > 0 && failures[0].attempt > 1) events.push({ what: 'earlier', at: null, attempt: failures[0].attempt - 1 });
    for (const failure of failures)
        events.push({ what: failure.how, at: Date.parse(failure.at), attempt: failure.attempt, reason: failure.reason });
    const due = Date.parse(task.due_at);
    if (task.state === 'dead') {
        if (task.dead_at) events.push({ what: 'dead', at: Date.parse(task.dead_at), reason: task.reason });
        return events;
    }
    if (task.state === 'leased') events.push({ what: 'due', at: due }, { what: 'leased', at: null, attempt: task.attempt });
    else events.push({ what: due > now ? 'fires' : 'due', at: due, attempt: task.attempt + 1, future: due > now });
    for (const moment of task.timeline ?? []) {
        const at = Date.parse(moment.at);
        if (at !== due) events.push({ what: 'moment', at, future: true });
    }
    if (task.expire_at) events.push({ what: 'expires', at: Date.parse(task.expire_at), future: true });
    return events;
}

/**
 * The reason why a task does not run, as a key of words with its values.
 * @param {any} task
 * @param {any | null} queue Its queue, if it is known.
 * @param {number} now
 * @returns {{key: string, values: Record<string, any>}}
 */
export function whyNot(task, queue, now) {
    const due = Date.parse(task.due_at);
    if (task.state === 'dead') return { key: `why.dead_${task.reason ?? 'other'}`, values: { n: task.attempt } };
    if (task.state === 'leased') return { key: 'why.leased', values: { attempt: task.attempt } };
    if (task.state === 'scheduled' && due > now) {
        const retry = (task.failures ?? []).length > 0;
        return { key: retry ? 'why.retry' : 'why.scheduled', values: { due } };
    }
    if (queue?.paused)
        return queue.paused_until
            ? { key: 'why.paused_until', values: { until: Date.parse(queue.paused_until) } }
            : { key: 'why.paused', values: {} };
    if (queue?.max_in_flight && queue.leased >= queue.max_in_flight)
        return { key: 'why.in_flight', values: { leased: queue.leased, max: queue.max_in_flight } };
    if (queue?.rate) return { key: 'why.rate', values: { rate: queue.rate, n: queue.ready } };
    if (queue?.max_in_flight_per_group && task.group)
        return { key: 'why.group', values: { group: task.group, max: queue.max_in_flight_per_group } };
    return { key: 'why.ready', values: { n: queue?.ready ?? 0 } };
}

/**
 * The reasons that hold up a queue's ready tasks, the weightiest first.
 * @param {any} queue
 * @returns {{key: string, values: Record<string, any>}[]}
 */
export function holdUps(queue) {
    const found = [];
    if (queue.paused) {
        found.push(
            queue.paused_until
                ? { key: 'hold.paused_until', values: { until: Date.parse(queue.paused_until) } }
                : { key: 'hold.paused', values: {} },
        );
    }
    if (queue.draining) found.push({ key: 'hold.draining', values: {} });
    if (queue.max_in_flight && queue.leased >= queue.max_in_flight)
        found.push({ key: 'hold.in_flight', values: { leased: queue.leased, max: queue.max_in_flight } });
    const live = queue.scheduled + queue.ready + queue.leased;
    if (queue.max_backlog && live >= queue.max_backlog) found.push({ key: 'hold.backlog', values: { live, max: queue.max_backlog } });
    if (queue.ready > 0 && found.length === 0) {
        if (queue.rate) found.push({ key: 'hold.rate', values: { rate: queue.rate, ready: queue.ready } });
        else if (queue.leased === 0) found.push({ key: 'hold.no_worker', values: { ready: queue.ready } });
        else found.push({ key: 'hold.workers', values: { ready: queue.ready, leased: queue.leased } });
    }
    return found;
}
