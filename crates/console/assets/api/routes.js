/** The calls that the pages make, one function for each, and which routes the server has. */

import { shellLine } from '../logic/route.js';
import { token } from '../state/session.js';
import { Problem, address, call, stream } from './client.js';

/** The members of the filter of a bulk change. */
export const FILTER_MEMBERS = ['state', 'due_from', 'due_to', 'tag', 'key', 'key_contains', 'group'];

/** @typedef {AbortSignal | undefined} Signal */

const queuePath = (/** @type {string} */ queue, /** @type {string[]} */ ...rest) => ['v1', 'queues', queue, ...rest];
/** @type {(version: number | string | null | undefined) => Record<string, string>} */
const ifMatch = (version) =>
    version === null || version === undefined ? /** @type {Record<string, string>} */ ({}) : { 'if-match': `"${version}"` };

// The server

/** @param {Signal} signal */
export const ready = async (signal) => (await call('GET', ['readyz'], { signal, accept: [503] })).data;
/** @param {Signal} signal */
export const whoami = async (signal) => (await call('GET', ['v1', 'whoami'], { signal })).data;
/** @param {Signal} signal */
export const metrics = async (signal) => (await call('GET', ['metrics'], { signal, text: true, headers: { accept: 'text/plain' } })).text;
/** @param {Signal} signal */
export const openapi = async (signal) => (await call('GET', ['openapi.json'], { signal, text: true })).text;
/** @param {string} by */
export const advance = async (by) => (await call('POST', ['v1', 'clock', 'advance'], { body: { by }, long: true })).data;
/**
 * @param {Record<string, string>} query
 * @param {(event: string, data: any) => void} onEvent
 * @param {(problem: Problem) => void} onProblem
 */
export const events = (query, onEvent, onProblem) => stream(['v1', 'events'], query, onEvent, onProblem);

/** The server's time as a token with a scope learns it, from one event. @param {Signal} signal @returns {Promise<string>} */
export const timeOfScoped = (signal) =>
    new Promise((done, failed) => {
        const stop = events(
            { topics: 'stats' },
            (event, data) => {
                stop();
                done(data.now);
            },
            (problem) => {
                stop();
                failed(problem);
            },
        );
        signal?.addEventListener('abort', stop);
    });

// Queues

/** @param {{prefix?: string, limit?: number, cursor?: string}} query @param {Signal} signal */
export const queues = async (query, signal) => (await call('GET', ['v1', 'queues'], { query, signal })).data;
/** A page of the list of queues, and the number of pages that are read at most. */
const QUEUES_PAGE = 1000;
const QUEUES_PAGES = 10;

/**
 * The queues whose names begin so, at most 10,000. `more` says whether there are others.
 * @param {string} prefix
 * @param {Signal} signal
 * @returns {Promise<{queues: any[], more: boolean}>}
 */
export async function allQueues(prefix, signal) {
    /** @type {any[]} */
    const found = [];
    let cursor = '';
    for (let page = 0; page < QUEUES_PAGES; page += 1) {
        const answer = await queues({ prefix, limit: QUEUES_PAGE, cursor }, signal);
        found.push(...answer.queues);
        if (answer.next_cursor === null) return { queues: found, more: false };
        cursor = answer.next_cursor;
    }
    return { queues: found, more: true };
}

/** @param {string} queue @param {Signal} signal */
export const queue = async (queue, signal) => (await call('GET', queuePath(queue), { signal })).data;
/** @param {string} queue @param {Record<string, any>} body */
export const patchQueue = async (queue, body) => (await call('PATCH', queuePath(queue), { body })).data;
/** @param {string} queue @param {string | null} length A duration, or null until it is resumed. */
export const pause = async (queue, length) => (await call('POST', queuePath(queue, 'pause'), { body: length ? { for: length } : {} })).data;
/** @param {string} queue */
export const drain = async (queue) => (await call('POST', queuePath(queue, 'drain'), { body: {} })).data;
/** @param {string} queue */
export const resume = async (queue) => (await call('POST', queuePath(queue, 'resume'), { body: {} })).data;
/** @param {string} queue */
export const deleteQueue = async (queue) => (await call('DELETE', queuePath(queue), { long: true })).data;
/** @param {string} queue @param {{filter: Record<string, any>, dry_run: boolean, revoke: boolean}} body */
export const bulkCancel = async (queue, body) => (await call('POST', queuePath(queue, 'cancel'), { body, long: true })).data;
/** @param {string} queue @param {Record<string, any>} body */
export const bulkMove = async (queue, body) => (await call('POST', queuePath(queue, 'move'), { body, long: true })).data;
/** The forecasts of this page, one after the other: the server makes one at a time, and answers `busy` to a second one. */
let lastForecast = Promise.resolve(/** @type {any} */ (null));

/** @param {Record<string, string>} query @param {Signal} signal @returns {Promise<any>} */
export function forecast(query, signal) {
    const mine = lastForecast.then(async () => {
        for (let turn = 1; ; turn += 1) {
            try {
                return (await call('GET', ['v1', 'forecast'], { query, signal, long: true })).data;
            } catch (error) {
                if (!(error instanceof Problem) || error.kind !== 'busy' || turn === 5) throw error;
                await new Promise((done) => setTimeout(done, 200 * turn));
            }
        }
    });
    lastForecast = mine.catch(() => null);
    return mine;
}

// Tasks

/** @param {string} queue @param {Record<string, string>} query @param {Signal} signal */
export const tasks = async (queue, query, signal) => (await call('GET', queuePath(queue, 'tasks'), { query, signal })).data;
/** The text is kept beside the task because the payload is shown byte for byte. @param {string} queue @param {string} key @param {Signal} signal */
export const task = async (queue, key, signal) => {
    const { data, text } = await call('GET', queuePath(queue, 'tasks', key), { signal });
    return { task: data, text };
};
/** @param {string} queue @param {string} key @param {Signal} signal */
export const story = async (queue, key, signal) => (await call('GET', queuePath(queue, 'tasks', key, 'story'), { signal })).data;
/** @param {string} queue @param {string} key @param {unknown} body @param {{version?: number, revoke?: boolean}} [options] */
export const patchTask = async (queue, key, body, { version, revoke } = {}) =>
    (await call('PATCH', queuePath(queue, 'tasks', key), { body, headers: ifMatch(version), query: { revoke: revoke ? 'true' : '' } }))
        .data;
/** @param {string} queue @param {string} key @param {number} version */
export const run = async (queue, key, version) =>
    (await call('POST', queuePath(queue, 'tasks', key, 'run'), { body: {}, headers: ifMatch(version) })).data;
/** @param {string} queue @param {string} key @param {{version?: number, revoke: boolean}} options */
export const cancel = async (queue, key, { version, revoke }) =>
    (await call('DELETE', queuePath(queue, 'tasks', key), { headers: ifMatch(version), query: { revoke: revoke ? 'true' : '' } })).data;
/** @param {string} queue @param {string} key @param {number} [version] */
export const releaseTask = async (queue, key, version) =>
    (await call('POST', queuePath(queue, 'tasks', key, 'release'), { body: {}, headers: ifMatch(version) })).data;

/** The tasks of a key in all queues. @param {string} key @param {Signal} signal */
export const tasksOfKey = async (key, signal) => (await call('GET', ['v1', 'tasks'], { query: { key }, signal })).data;
/** @param {Record<string, string>} query @param {Signal} signal */
export const leases = async (query, signal) => (await call('GET', ['v1', 'leases'], { query, signal })).data;

// Dead tasks

/** @param {string} queue @param {Record<string, string>} query @param {Signal} signal */
export const dead = async (queue, query, signal) => (await call('GET', queuePath(queue, 'dead'), { query, signal })).data;
/** @param {string} queue @param {Signal} signal */
export const deadGroups = async (queue, signal) => (await call('GET', queuePath(queue, 'dead', 'groups'), { signal, long: true })).data;
/** @param {string} queue @param {Record<string, any>} body One of `key id keys ids`, or `filter` with `dry_run`. */
export const redrive = async (queue, body) => (await call('POST', queuePath(queue, 'dead', 'redrive'), { body, long: true })).data;

// Jobs

/** @param {Signal} signal */
export const jobs = async (signal) => (await call('GET', ['v1', 'jobs'], { signal })).data;
/** @param {number} id @param {Signal} [signal] */
export const job = async (id, signal) => (await call('GET', ['v1', 'jobs', String(id)], { signal })).data;
/** @param {number} id */
export const stopJob = async (id) => (await call('DELETE', ['v1', 'jobs', String(id)])).data;

// Schedules

/** @param {Record<string, string>} query @param {Signal} signal */
export const schedules = async (query, signal) => (await call('GET', ['v1', 'schedules'], { query, signal })).data;
/** @param {string} queue @param {string} name @param {Signal} signal */
export const schedule = async (queue, name, signal) => {
    const { data, text } = await call('GET', queuePath(queue, 'schedules', name), { signal });
    return { schedule: data, text };
};
/** @param {string} queue @param {string} name @param {unknown} body @param {number | null} version Null for a new one. */
export const putSchedule = async (queue, name, body, version) =>
    (await call('PUT', queuePath(queue, 'schedules', name), { body, headers: ifMatch(version) })).data;
/** @param {string} queue @param {string} name @param {number} version */
export const deleteSchedule = async (queue, name, version) =>
    (await call('DELETE', queuePath(queue, 'schedules', name), { headers: ifMatch(version) })).data;
/** @param {string} queue @param {string} name @param {number} count @param {Signal} signal */
export const preview = async (queue, name, count, signal) =>
    (await call('GET', queuePath(queue, 'schedules', name, 'preview'), { query: { count }, signal })).data;
/** @param {Record<string, any>} spec @param {number} count @param {Signal} signal */
export const previewUnsaved = async (spec, count, signal) =>
    (await call('POST', ['v1', 'schedules', 'preview'], { body: spec, query: { count }, signal })).data;

// Targets

/** @param {Signal} signal */
export const targets = async (signal) => (await call('GET', ['v1', 'targets'], { signal })).data;
/** @param {string} queue @param {Signal} signal */
export const target = async (queue, signal) => (await call('GET', queuePath(queue, 'target'), { signal })).data;
/** @param {string} queue @param {Signal} signal */
export const attempts = async (queue, signal) =>
    (await call('GET', queuePath(queue, 'target', 'attempts'), { query: { limit: 20 }, signal })).data;
/** @param {string} queue @param {string} body JSON. @param {number} [version] */
export const putTarget = async (queue, body, version) =>
    (await call('PUT', queuePath(queue, 'target'), { body, headers: ifMatch(version), long: true })).data;
/** @param {string} queue @param {number} version */
export const deleteTarget = async (queue, version) =>
    (await call('DELETE', queuePath(queue, 'target'), { headers: ifMatch(version), long: true })).data;
const targetAct =
    (/** @type {string} */ verb) =>
    /** @param {string} queue */
    async (queue) =>
        (await call('POST', queuePath(queue, 'target', verb), { body: {}, long: true })).data;
export const pauseTarget = targetAct('pause');
export const resumeTarget = targetAct('resume');
/** Sends one message that is no task. */
export const testTarget = targetAct('test');
/** @param {string} queue @param {string} overlap */
export const rotateTarget = async (queue, overlap) =>
    (await call('POST', queuePath(queue, 'target', 'rotate'), { body: { overlap } })).data;

/**
 * A line for a shell that makes a call. The token is not in it, since it would stay in the history of the shell.
 * @param {string} method
 * @param {string[]} segments
 * @param {string} body JSON.
 */
export const curl = (method, segments, body) => shellLine(method, address(segments).href, body, token() !== null);
