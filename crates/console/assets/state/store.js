/** A value that components watch. */

import { useEffect, useState } from '../vendor/preact.js';

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
