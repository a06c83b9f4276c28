/** Values that components watch, and data of the server that they show. */

import { useCallback, useEffect, useRef, useState } from '../vendor/preact.js';

/**
 * @template T
 * @typedef {{get: () => T, set: (value: T) => void, watch: (listener: (value: T) => void) => () => void}} Store
 */

/**
 * @template T
 * @param {T} initial
 * @returns {Store<T>}
 */
export function store(initial) {
    let value = initial;
    /** @type {Set<(value: T) => void>} */
    const listeners = new Set();
    return {
        get: () => value,
        set(next) {
            if (Object.is(next, value)) return;
            value = next;
            for (const listener of [...listeners]) listener(next);
        },
        watch(listener) {
            listeners.add(listener);
            return () => listeners.delete(listener);
        },
    };
}

/**
 * The value of a store; the component is drawn again when it changes.
 * @template T
 * @param {Store<T>} from
 * @returns {T}
 */
export function useStore(from) {
    const [value, setValue] = useState(from.get());
    useEffect(() => {
        setValue(from.get());
        return from.watch(setValue);
    }, [from]);
    return value;
}

/**
 * @template T
 * @typedef {object} Live
 * @property {T | null} data The last good answer.
 * @property {import('../api/client.js').Problem | Error | null} error The outcome of the last call, if it failed.
 * @property {boolean} loading Whether there is no answer yet.
 * @property {number | null} at When the data came.
 * @property {() => void} reload
 * @property {(data: T) => void} replace Shows data that another call answered.
 */

/** Components that show a relative time. @type {Set<() => void>} */
const clocks = new Set();

if (typeof window !== 'undefined') {
    window.setInterval(() => {
        if (document.hidden) return;
        const due = [...clocks];
        // A page may have 500 times; 50 in a frame do not hold up its scrolling.
        const step = () => {
            for (const clock of due.splice(0, 50)) clock();
            if (due.length > 0) window.requestAnimationFrame(step);
        };
        step();
    }, 5000);
}

/** Draws the component again every 5 s, so that its relative time stays true. */
export function useClock() {
    const [, turn] = useState(0);
    useEffect(() => {
        const clock = () => turn((n) => n + 1);
        clocks.add(clock);
        return () => {
            clocks.delete(clock);
        };
    }, []);
}

/**
 * Data of the server: loaded, loaded again at an interval, and kept while the server does not answer.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {unknown[]} deps What the call depends on. After a change the old data goes.
 * @param {number | null} [intervalMs] 0 loads once, and null does not load: the data comes by `replace`. A hidden page does not load.
 * @returns {Live<T>}
 */
export function useLive(load, deps, intervalMs = 0) {
    const [state, setState] = useState({
        data: /** @type {T | null} */ (null),
        error: /** @type {any} */ (null),
        at: /** @type {number | null} */ (null),
        loading: true,
    });
    const current = useRef(load);
    current.current = load;
    const [round, setRound] = useState(0);
    const key = JSON.stringify(deps);
    const shown = useRef(key);
    useEffect(() => {
        const stop = new AbortController();
        /** @type {number | undefined} */
        let timer;
        if (shown.current !== key) {
            shown.current = key;
            setState({ data: null, error: null, at: null, loading: true });
        }
        if (intervalMs === null) return () => stop.abort();
        const each = intervalMs;
        // A page that is opened in a background tab has something to show when it is looked at.
        let never = true;
        let failures = 0;
        let refused = false;
        // A call that takes long is made rarely, so that a page costs the server little.
        let took = 0;
        const next = () => {
            if (stop.signal.aborted) return;
            // A page that has failed asks again by itself, at least every 3 s. A refused one asks less often, since it stays refused.
            const wait = failures > 0 ? Math.min(3000, 1000 * 2 ** (failures - 1)) : refused ? Math.max(10_000, each) : each && Math.max(each, Math.min(20 * took, 60_000));
            if (wait > 0) timer = window.setTimeout(turn, wait);
        };
        const turn = async () => {
            if (document.hidden && !never && failures === 0 && each > 0) {
                next();
                return;
            }
            never = false;
            const begun = performance.now();
            try {
                const data = await current.current(stop.signal);
                if (stop.signal.aborted) return;
                took = performance.now() - begun;
                failures = 0;
                refused = false;
                setState({ data, error: null, at: Date.now(), loading: false });
            } catch (error) {
                if (stop.signal.aborted) return;
                const status = /** @type {any} */ (error).status;
                failures = status === 0 || status >= 500 || status === 429 ? failures + 1 : 0;
                refused = failures === 0;
                setState((before) => ({ ...before, error, loading: false }));
                if (refused && each === 0) return;
            }
            next();
        };
        turn();
        return () => {
            stop.abort();
            window.clearTimeout(timer);
        };
    }, [key, round, intervalMs]);
    const reload = useCallback(() => setRound((n) => n + 1), []);
    const replace = useCallback((/** @type {T} */ data) => setState({ data, error: null, at: Date.now(), loading: false }), []);
    // The first drawing after a change must not show the data of what was there before.
    if (shown.current !== key) return { data: null, error: null, at: null, loading: true, reload, replace };
    return { ...state, reload, replace };
}

/**
 * Calls `act` when `value` has changed, and not for the first value: what a person typed before the effects of the first drawing ran would be
 * lost.
 * @template T
 * @param {T} value
 * @param {(value: T) => void} act
 */
export function useChanged(value, act) {
    const before = useRef(value);
    useEffect(() => {
        if (before.current === value) return;
        before.current = value;
        act(value);
    }, [value]);
}

/** The stream of a page that is not looked at is closed after this time: a browser has six connections to a server, for all its tabs. */
const HIDDEN_MS = 5_000;

/**
 * Events of the server while the page is looked at.
 * @param {(onEvent: (event: string, data: any) => void, onProblem: (problem: any) => void) => () => void} open Opens the stream.
 * @param {unknown[]} deps What the stream depends on.
 * @param {(event: string, data: any) => void} onEvent
 * @returns {boolean} Whether events are to be expected. Without them a page asks at an interval.
 */
export function useStream(open, deps, onEvent) {
    // A page that is opened in a background tab asks once, and begins its stream when it is looked at.
    const [refused, setRefused] = useState(document.hidden);
    const current = useRef({ open, onEvent });
    current.current = { open, onEvent };
    useEffect(() => {
        /** @type {(() => void) | null} */
        let stop = null;
        let timer = 0;
        const end = () => {
            stop?.();
            stop = null;
        };
        const begin = () => {
            stop ??= current.current.open(
                (event, data) => {
                    setRefused(false);
                    current.current.onEvent(event, data);
                },
                // Until the next event the page asks by itself: it has a say about a server that is full, broken or away, and keeps its data.
                () => setRefused(true),
            );
        };
        const look = () => {
            window.clearTimeout(timer);
            if (document.hidden) timer = window.setTimeout(end, HIDDEN_MS);
            else begin();
        };
        look();
        document.addEventListener('visibilitychange', look);
        return () => {
            document.removeEventListener('visibilitychange', look);
            window.clearTimeout(timer);
            end();
        };
    }, [JSON.stringify(deps)]);
    return !refused;
}
