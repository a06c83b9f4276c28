/** Calls of the HTTP API: the token, problems, and streams of events. */

import { base } from '../state/location.js';
import { token, unauthorized } from '../state/session.js';
import { parseEvents } from '../logic/events.js';
import { encodeSegment } from '../logic/route.js';
import { store } from '../state/live.js';

/** Whether the server answers, and when it did last. @type {import('../state/live.js').Store<{ok: boolean, lastAnswer: number | null}>} */
export const connection = store({ ok: /** @type {boolean} */ (true), lastAnswer: /** @type {number | null} */ (null) });

let lastAnswer = Date.now();

/** Notes the outcome of a call: an answer of any kind, or none. @param {boolean} answered */
export function observe(answered) {
    if (answered) lastAnswer = Date.now();
    const before = connection.get();
    if (before.ok !== answered) connection.set({ ok: answered, lastAnswer: answered ? null : lastAnswer });
}

/** An error answer by RFC 9457, or a call that got no answer; then its status is 0. */
export class Problem extends Error {
    /** @param {Record<string, any>} body */
    constructor(body) {
        super(body.detail ?? body.title ?? '');
        this.type = String(body.type ?? '');
        this.title = String(body.title ?? '');
        this.status = Number(body.status ?? 0);
        this.detail = String(body.detail ?? '');
        this.hint = String(body.hint ?? '');
        this.member = body.member;
        this.parameter = body.parameter;
        this.version = body.version;
    }

    /** The kind: the last part of the type. */
    get kind() {
        return this.type.slice(this.type.lastIndexOf('/') + 1);
    }
}

/**
 * @typedef {object} Options
 * @property {Record<string, string | number | boolean | null | undefined>} [query]
 * @property {unknown} [body] Sent as JSON; a string is sent as it is.
 * @property {Record<string, string>} [headers]
 * @property {AbortSignal} [signal]
 * @property {boolean} [long] Whether the server may take minutes for it.
 * @property {boolean} [text] Whether the answer is text and not JSON.
 * @property {number[]} [accept] Statuses that are answers and not problems, beside 2xx.
 */

/** @typedef {{data: any, status: number, etag: string | null, text: string}} Answer */

/**
 * The address of a path of the API. Each segment is encoded.
 * @param {string[]} segments
 * @param {Options['query']} [query]
 */
export function address(segments, query = {}) {
    const url = new URL(`../${segments.map(encodeSegment).join('/')}`, base);
    for (const [name, value] of Object.entries(query)) {
        if (value !== null && value !== undefined && value !== '') url.searchParams.set(name, String(value));
    }
    return url;
}

/** A call without an answer is given up after this time (ms). */
const LIMIT_MS = 15_000;
const LONG_LIMIT_MS = 180_000;

/** The proxy in front of a stopped server answers for it. @param {number} status */
const isGateway = (status) => status === 502 || status === 504;

/**
 * The caller's own signal and a limit of time. A stream has no limit: it lives until it is stopped.
 * @param {Options} options
 * @param {boolean} endless
 */
function signalOf({ signal, long }, endless) {
    if (endless) return signal;
    const limit = AbortSignal.timeout(long ? LONG_LIMIT_MS : LIMIT_MS);
    return signal ? AbortSignal.any([signal, limit]) : limit;
}

/** @param {string | null} secret @param {string} method @param {string[]} segments @param {Options} options @param {boolean} [endless] */
async function send(secret, method, segments, options, endless = false) {
    if (segments.some((s) => s === '.' || s === '..')) {
        // A browser resolves such a segment even if it is percent-encoded.
        throw new Problem({
            type: 'dots',
            title: 'a browser cannot name this key',
            status: 0,
            detail: 'a browser cannot send the names `.` and `..`',
            hint: 'use `tickwheel get` or curl --path-as-is',
        });
    }
    /** @type {Record<string, string>} */
    const headers = { accept: 'application/json', ...options.headers };
    if (secret) headers.authorization = `Bearer ${secret}`;
    let body;
    if (options.body !== undefined) {
        headers['content-type'] = 'application/json';
        body = typeof options.body === 'string' ? options.body : JSON.stringify(options.body);
    }
    try {
        const response = await fetch(address(segments, options.query), {
            method,
            headers,
            body,
            signal: signalOf(options, endless),
            cache: 'no-store',
            credentials: 'omit',
            redirect: 'error',
        });
        observe(!isGateway(response.status));
        return response;
    } catch (error) {
        if (/** @type {Error} */ (error).name === 'AbortError') throw error;
        observe(false);
        throw new Problem({ type: 'offline', status: 0 });
    }
}

/** @param {Response} response @param {string} text */
function problemOf(response, text) {
    try {
        const body = JSON.parse(text);
        if (body && typeof body === 'object' && 'status' in body) return new Problem(body);
    } catch {
        // A proxy answers errors as HTML.
    }
    return new Problem({
        type: 'answer',
        status: response.status,
        title: response.statusText,
        detail: `HTTP ${response.status} ${response.statusText}`,
    });
}

/**
 * Sends a call and returns its answer.
 * @param {string} method
 * @param {string[]} segments
 * @param {Options} [options]
 * @returns {Promise<Answer>}
 * @throws {Problem}
 */
export async function call(method, segments, options = {}) {
    const secret = token();
    const response = await send(secret, method, segments, options);
    let text;
    try {
        text = await response.text();
    } catch (error) {
        if (/** @type {Error} */ (error).name === 'AbortError') throw error;
        observe(false);
        throw new Problem({ type: 'offline', status: 0 });
    }
    if (!response.ok && !options.accept?.includes(response.status)) {
        const problem = problemOf(response, text);
        if (response.status === 401) unauthorized(problem, secret);
        throw problem;
    }
    const data = options.text ? null : JSON.parse(text || 'null');
    return { data, status: response.status, etag: response.headers.get('etag'), text };
}

/** A stream sends a comment every 15 s, so one that is silent for longer is broken. */
const SILENCE_MS = 40_000;
const WAIT_MAX_MS = 3000;

/**
 * Reads a stream of events until it is stopped. A broken stream is opened again after the time that the server names, then after twice
 * that, and at most after 3 s. `EventSource` is not used because it sends no `Authorization`.
 * @param {string[]} segments
 * @param {Options['query']} query
 * @param {(event: string, data: any) => void} onEvent
 * @param {(problem: Problem) => void} onProblem
 * @returns {() => void} Stops it.
 */
export function stream(segments, query, onEvent, onProblem) {
    const stop = new AbortController();
    (async () => {
        let retry = 1000;
        let wait = retry;
        while (!stop.signal.aborted) {
            const silence = new AbortController();
            let timer = 0;
            const hear = () => {
                window.clearTimeout(timer);
                timer = window.setTimeout(() => silence.abort(), SILENCE_MS);
            };
            hear();
            try {
                const secret = token();
                const response = await send(
                    secret,
                    'GET',
                    segments,
                    { query, signal: AbortSignal.any([stop.signal, silence.signal]), headers: { accept: 'text/event-stream' } },
                    true,
                );
                if (!response.ok || !response.body) {
                    const problem = problemOf(response, await response.text());
                    if (response.status === 401) unauthorized(problem, secret);
                    throw problem;
                }
                const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
                let rest = '';
                for (;;) {
                    const { done, value } = await reader.read();
                    if (done || stop.signal.aborted) break;
                    hear();
                    const parsed = parseEvents(rest + value);
                    rest = parsed.rest;
                    retry = parsed.retry ?? retry;
                    wait = retry;
                    for (const { event, data } of parsed.events) onEvent(event, JSON.parse(data));
                    observe(true);
                }
            } catch (error) {
                if (stop.signal.aborted) return;
                if (silence.signal.aborted) {
                    observe(false);
                    onProblem(new Problem({ type: 'offline', status: 0 }));
                }
                if (error instanceof Problem) {
                    onProblem(error);
                    // A refusal stays one; only a full or a stopping server is asked again.
                    if (error.status >= 400 && error.status < 500 && error.status !== 429) return;
                }
            } finally {
                window.clearTimeout(timer);
                // An error of the page's own leaves the answer open, too.
                silence.abort();
            }
            await new Promise((done) => setTimeout(done, wait));
            wait = Math.min(WAIT_MAX_MS, wait * 2);
        }
    })();
    return () => stop.abort();
}
