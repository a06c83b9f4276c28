/** The story of a task as the API tells it, and the reasons why tasks do not run yet, in the words of the page. */

/**
 * @typedef {object} Event
 * @property {string} what The key of its words below `story.`.
 * @property {number | null} at Milliseconds since 1970; null if it is not known.
 * @property {number} [attempt]
 * @property {string} [reason]
 * @property {string} [by] The worker.
 * @property {boolean} [future]
 */

/**
 * The events of a story as the page draws them: what happened, then what comes.
 * @param {any} told The answer of the server.
 * @returns {Event[]}
 */
export function eventsOf(told) {
    const dated = (/** @type {any} */ event) => ({ ...event, at: event.at === null ? null : Date.parse(event.at) });
    const past = told.events.map((/** @type {any} */ e) => ({ ...dated(e), what: e.what === 'moment' ? 'moment_done' : e.what }));
    const next = told.next.map((/** @type {any} */ e) => ({ ...dated(e), what: e.what === 'due' ? 'fires' : e.what, future: true }));
    return [...past, ...next];
}

/**
 * Sentences of the server with their instants as `show` writes them. A quoted text, such as the reason of a failure, has no backtick and stays as it is.
 * @param {string} sentence
 * @param {(ms: number) => string} show
 */
export const withInstants = (sentence, show) =>
    sentence.replace(/`[^`]*`|\d{4}-\d\d-\d\dT[\d:.]+Z/g, (text) => (Number.isNaN(Date.parse(text)) || text[0] === '`' ? text : show(Date.parse(text))));

/**
 * The values of the words about a target that ready tasks wait for.
 * @param {any} target
 * @param {number} ready The number of ready tasks.
 * @returns {Record<string, any>}
 */
function ofTarget({ kind, to, reason, in_flight: flight, next_try: until }, ready) {
    return { to: `${kind} ${to}`, reason: reason ?? '', flight, n: ready, ready, ...(until ? { until: Date.parse(until) } : {}) };
}

/**
 * The reason why a task does not run, as a key of words with its values.
 * @param {any} task
 * @param {any | null} queue Its queue, if it is known.
 * @param {number} now
 * @param {any} [target] The target of its queue, if it has one.
 * @returns {{key: string, values: Record<string, any>}}
 */
export function whyNot(task, queue, now, target) {
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
    const atTarget = target ? { key: `why.target_${target.state}`, values: ofTarget(target, queue?.ready ?? 0) } : null;
    if (atTarget && target.state !== 'closed') return atTarget;
    if (queue?.rate) return { key: 'why.rate', values: { rate: queue.rate, n: queue.ready } };
    if (queue?.max_in_flight_per_group && task.group)
        return { key: 'why.group', values: { group: task.group, max: queue.max_in_flight_per_group } };
    return atTarget ?? { key: 'why.ready', values: { n: queue?.ready ?? 0 } };
}

/**
 * The reasons that hold up a queue's ready tasks, the weightiest first.
 * @param {any} queue
 * @param {any} [target] Its target, if it has one.
 * @returns {{key: string, values: Record<string, any>}[]}
 */
export function holdUps(queue, target) {
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
    const atTarget = target ? { key: `hold.target_${target.state}`, values: ofTarget(target, queue.ready) } : null;
    if (queue.ready > 0 && atTarget && target.state !== 'closed') found.push(atTarget);
    if (queue.ready > 0 && found.length === 0) {
        if (queue.max_in_flight_per_group && queue.leased > 0)
            found.push({ key: 'hold.groups', values: { ready: queue.ready, max: queue.max_in_flight_per_group } });
        else if (queue.rate) found.push({ key: 'hold.rate', values: { rate: queue.rate, ready: queue.ready } });
        else if (atTarget) found.push(atTarget);
        else if (queue.leased === 0) found.push({ key: 'hold.no_worker', values: { ready: queue.ready } });
        else found.push({ key: 'hold.workers', values: { ready: queue.ready, leased: queue.leased } });
    }
    return found;
}
