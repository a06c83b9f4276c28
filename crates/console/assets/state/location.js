/** The address of the view: its page, parameters and query. All state of a view is in it. */

import { match, path, rootOf, writeQuery } from '../logic/route.js';
import { store, useStore } from './live.js';

/** The address of the console's root, such as `http://127.0.0.1:8463/console/`. */
export const base = new URL(rootOf(new URL('../', import.meta.url).href), window.location.href);

/** @typedef {{page: string, params: Record<string, string>, query: Record<string, string>}} View */

/** @returns {View} */
function read() {
    const { pathname, search } = window.location;
    const below = pathname.startsWith(base.pathname) ? pathname.slice(base.pathname.length) : '';
    return { ...match(below), query: Object.fromEntries(new URLSearchParams(search)) };
}

export const view = store(read());

window.addEventListener('popstate', () => view.set(read()));

/**
 * The address of a page, for links.
 * @param {string} page
 * @param {Record<string, string>} [params]
 * @param {Record<string, string | number | null | undefined>} [query]
 */
export const href = (page, params, query) => base.pathname + path(page, params, query);

/** @param {string} address @param {boolean} [replace] */
export function go(address, replace = false) {
    if (replace) window.history.replaceState(null, '', address);
    else window.history.pushState(null, '', address);
    view.set(read());
}

/**
 * Changes members of the query. A member that is empty is removed.
 * @param {Record<string, string | number | null | undefined>} changes
 * @param {boolean} [replace] Whether the change is no step of its own in the browser's history.
 */
export function setQuery(changes, replace = true) {
    go(window.location.pathname + writeQuery({ ...view.get().query, ...changes }), replace);
}

export const useView = () => useStore(view);

// A plain click on a link to a page of the console changes the view without loading it.
document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = /** @type {Element} */ (event.target).closest?.('a[href]');
    if (!link || link.hasAttribute('download') || link.getAttribute('target')) return;
    const target = new URL(/** @type {HTMLAnchorElement} */ (link).href);
    if (target.origin !== window.location.origin || !target.pathname.startsWith(base.pathname) || link.hasAttribute('data-outside')) return;
    if (target.hash && target.pathname === window.location.pathname && target.search === window.location.search) return;
    event.preventDefault();
    go(target.pathname + target.search);
    window.scrollTo(0, 0);
});
