/** Who calls, what the server is, and how the reader wants to see it. */

import { browserZone } from '../logic/instant.js';
import { isToken } from '../logic/route.js';
import { allows } from '../logic/settings.js';
import { store } from './live.js';

const TOKEN = 'tickwheel.token';

/** Storage may be forbidden, for example in a private window. @param {() => string | null} read */
function quietly(read) {
    try {
        return read();
    } catch {
        return null;
    }
}

// The token

let secret = quietly(() => window.sessionStorage.getItem(TOKEN));
// Another release may have kept what no header can carry.
if (secret !== null && !isToken(secret)) secret = null;

/** The problem that asks for a token, or null while none is needed. @type {import('./live.js').Store<import('../api/client.js').Problem | null>} */
export const login = store(/** @type {any} */ (null));
/** Whether there is a token to forget. */
export const hasToken = store(secret !== null);

export const token = () => secret;

/**
 * Asks for a token, unless the refused call was sent with one that has been replaced since.
 * @param {import('../api/client.js').Problem} problem
 * @param {string | null} sent
 */
export function unauthorized(problem, sent) {
    if (sent === secret) login.set(problem);
}

/** @param {string} text @param {boolean} keep For this tab, until it is closed. */
export function logIn(text, keep) {
    secret = text;
    quietly(() => {
        if (keep) window.sessionStorage.setItem(TOKEN, text);
        else window.sessionStorage.removeItem(TOKEN);
        return null;
    });
    hasToken.set(true);
    login.set(null);
}

export function logOut() {
    secret = null;
    quietly(() => {
        window.sessionStorage.removeItem(TOKEN);
        return null;
    });
    // A load forgets all that the page has read.
    window.location.reload();
}

// The server

/** The last answer of `GET /readyz`. @type {import('./live.js').Store<any>} */
export const server = store(/** @type {any} */ (null));
/** The answer of `GET /v1/whoami`; null until it is known. @type {import('./live.js').Store<any>} */
export const caller = store(/** @type {any} */ (null));

/** Whether the caller may do what needs a right. Actions that it may not do are not drawn. @param {'read' | 'produce' | 'consume' | 'admin'} right */
export function may(right) {
    return allows(caller.get(), right);
}

/** The instant of a virtual clock; null while the server's clock runs. @type {import('./live.js').Store<number | null>} */
export const virtualNow = store(/** @type {number | null} */ (null));

/** The server's time. */
export const now = () => virtualNow.get() ?? Date.now();

// Preferences

/** @param {string} name */
const kept = (name) => quietly(() => window.localStorage.getItem(`tickwheel.${name}`));
/** @param {string} name @param {string} value */
const keep = (name, value) =>
    quietly(() => {
        window.localStorage.setItem(`tickwheel.${name}`, value);
        return null;
    });

/** `system`, `light` or `dark`. */
export const theme = store(kept('theme') ?? 'system');
/** The zone of absolute times. */
export const zone = store(kept('zone') === 'UTC' ? 'UTC' : browserZone());
/** The zone of the schedule that is looked at, for the choice in the header. @type {import('./live.js').Store<string | null>} */
export const offeredZone = store(/** @type {string | null} */ (null));

/** Offers a zone until it is taken back, which gives the reader's own zone back, too. @param {string} name @returns {() => void} */
export function offerZone(name) {
    const own = zone.get();
    offeredZone.set(name);
    return () => {
        offeredZone.set(null);
        if (zone.get() === name) zone.set(own);
    };
}

/** `en` or `zh`. */
export const language = store(kept('language') ?? (window.navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en'));

/** Whether single keys such as `/` act. A reader who speaks to the browser switches them off. */
export const keysAct = store(kept('keys') !== 'off');

/** @param {boolean} value */
export function setKeysAct(value) {
    keysAct.set(value);
    keep('keys', value ? 'on' : 'off');
}

/** @param {string} value */
export function setTheme(value) {
    theme.set(value);
    keep('theme', value);
    showTheme();
}

export function showTheme() {
    const value = theme.get();
    if (value === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = value;
}

/** @param {string} value */
export function setZone(value) {
    zone.set(value);
    if (value !== offeredZone.get()) keep('zone', value === 'UTC' ? 'UTC' : 'browser');
}

/** @param {string} value */
export function setLanguage(value) {
    language.set(value);
    keep('language', value);
    showLanguage();
}

export function showLanguage() {
    document.documentElement.lang = language.get() === 'zh' ? 'zh-CN' : 'en';
}
