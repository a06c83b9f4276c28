/** Whether the server answers, and since when it does not. */

import { store } from './store.js';

/** @type {import('./store.js').Store<{ok: boolean, lastAnswer: number | null}>} */
export const connection = store({ ok: true, lastAnswer: /** @type {number | null} */ (null) });

let lastAnswer = Date.now();

/** Notes the outcome of a call: an answer of any kind, or none. @param {boolean} answered */
export function observe(answered) {
    if (answered) lastAnswer = Date.now();
    const before = connection.get();
    if (before.ok !== answered) connection.set({ ok: answered, lastAnswer: answered ? null : lastAnswer });
}
