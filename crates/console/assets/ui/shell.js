/** The frame of every page: the header, the banners of the server's state, the keys, and the log-in. */

import { html, useEffect, useState } from '../vendor/preact.js';
import { clockTime, instant, t } from '../i18n/index.js';
import { go, href } from '../state/location.js';
import * as routes from '../api/routes.js';
import { connection } from '../api/client.js';
import {
    caller,
    hasToken,
    keysAct,
    language,
    logIn,
    logOut,
    login,
    offeredZone,
    server,
    setKeysAct,
    setLanguage,
    setTheme,
    setZone,
    theme,
    virtualNow,
    zone,
} from '../state/session.js';
import { browserZone } from '../logic/instant.js';
import { isToken } from '../logic/route.js';
import { store, useStore } from '../state/live.js';
import { Dialog } from './dialog.js';
import { Chip, Field, Marked, wordsOf } from './parts.js';

/** @type {[string, string][]} */
const NAV = [
    ['overview', 'overview.title'],
    ['horizon', 'horizon.title'],
    ['schedules', 'schedules.title'],
    ['jobs', 'jobs.title'],
    ['leases', 'leases.title'],
    ['targets', 'target.all'],
    ['about', 'about.title'],
    // Some callers and some servers have these, which is known late: no other entry moves then.
    ['wheel', 'wheel.title'],
    ['clock', 'clock.title'],
];

/** The entry of the navigation that a page belongs to. The pages of a queue belong to none. @param {string} page */
const entryOf = (page) => (page === 'schedule' ? 'schedules' : page);

/** @param {{page: string}} props */
export function Header({ page }) {
    const state = useStore(server);
    const chosenTheme = useStore(theme);
    const chosenZone = useStore(zone);
    const chosenLanguage = useStore(language);
    const known = useStore(hasToken);
    const who = useStore(caller);
    const offered = useStore(offeredZone);
    const zones = [...new Set([browserZone(), 'UTC', ...(offered ? [offered] : [])])];
    // The wheel has the tasks of all queues, so a token with a scope does not see it.
    const isThere = (/** @type {string} */ name) =>
        name === 'clock' ? (who?.virtual_clock ?? state?.virtual_clock) : name !== 'wheel' || !who?.scopes.length;
    return html`
        <header>
            <a class="skip" href="#main" data-outside>${t('shell.skip')}</a>
            <a class="brand" href=${href('overview')}><span class="mark" aria-hidden="true"></span><span class="brand-name">Tickwheel</span></a>
            <nav aria-label=${t('shell.nav')}>
                ${NAV.filter(([name]) => isThere(name)).map(
                    ([name, word]) => html`
                    <a href=${href(name)} aria-current=${entryOf(page) === name ? 'page' : undefined}>${t(word)}</a>
                `,
                )}
            </nav>
            <div class="choices">
                ${who?.console === 'read-only' && html`<${Chip} kind="plain">${t('shell.read_only')}<//>`}
                <select aria-label=${t('shell.zone')} value=${chosenZone} onChange=${(/** @type {any} */ e) => setZone(e.target.value)}>
                    ${zones.map((name) => html`<option value=${name} selected=${name === chosenZone}>${name}</option>`)}
                </select>
                <select aria-label=${t('shell.language')} value=${chosenLanguage} onChange=${(/** @type {any} */ e) => setLanguage(e.target.value)}>
                    <option value="en" lang="en" selected=${chosenLanguage === 'en'}>English</option>
                    <option value="zh" lang="zh-CN" selected=${chosenLanguage === 'zh'}>中文</option>
                </select>
                <select aria-label=${t('shell.theme')} value=${chosenTheme} onChange=${(/** @type {any} */ e) => setTheme(e.target.value)}>
                    ${['system', 'light', 'dark'].map((name) => html`<option value=${name} selected=${name === chosenTheme}>${t(`shell.theme_${name}`)}</option>`)}
                </select>
                <button type="button" class="quiet" aria-label=${t('key.title')} title=${t('key.title')} onClick=${() => help.set(true)}>?</button>
                ${known && html`<button type="button" class="quiet" onClick=${logOut}>${t('shell.logout')}</button>`}
            </div>
        </header>
    `;
}

/** Banners: no connection, and what the server says of itself. */
export function Banners() {
    const link = useStore(connection);
    const state = useStore(server);
    const frozen = useStore(virtualNow);
    const who = useStore(caller);
    // The region is polite and changes at most when the connection does.
    const lost = link.ok ? '' : t('shell.lost', { time: clockTime(link.lastAnswer ?? Date.now()) });
    const notes = [];
    if (state?.read_only || who?.read_only) notes.push(['bad', t('banner.read_only', { why: state?.read_only ?? '' })]);
    if (state?.draining) notes.push(['warn', t('banner.draining')]);
    if (state && !state.read_only && state.why && state.status !== 'draining')
        notes.push(['warn', t('banner.degraded', { why: state.why })]);
    if (state && Math.abs(state.clock?.offset_ms ?? 0) > 1000) notes.push(['warn', t('banner.clock', { n: state.clock.offset_ms })]);
    if (state?.virtual_clock)
        notes.push(['info', frozen === null ? t('banner.virtual') : t('banner.virtual_at', { time: instant(frozen) })]);
    if (state?.recovery) notes.push(['info', t('banner.recovery', { note: state.recovery })]);
    return html`
        <section aria-label=${t('shell.state')}>
            <div role="status" class=${lost ? 'banner banner-bad lost-note' : ''}>${lost}</div>
            ${notes.map(([tone, text]) => html`<div class=${`banner banner-${tone}`}>${text}</div>`)}
        </section>
    `;
}

/** The page that asks for a token. */
export function Login() {
    const problem = useStore(login);
    const [text, setText] = useState('');
    const [keep, setKeep] = useState(true);
    useEffect(() => {
        document.title = `${t('login.title')} · Tickwheel`;
    });
    const { detail, hint } = wordsOf(problem);
    const wrong = text.trim() !== '' && !isToken(text.trim());
    const submit = (/** @type {Event} */ event) => {
        event.preventDefault();
        if (text.trim() !== '' && !wrong) logIn(text.trim(), keep);
    };
    return html`
        <main id="main" class="login">
            <h1 tabindex="-1">${t('login.title')}</h1>
            <p>${t('login.text')}</p>
            ${hasToken.get() && html`<div class="box failure" role="alert"><strong>${t('login.refused')}</strong><p><${Marked} text=${detail} /></p><p class="dim"><${Marked} text=${hint} /></p></div>`}
            <form onSubmit=${submit}>
                <${Field} id="token" label=${t('login.token')} wrong=${wrong ? t('login.wrong') : null}>
                    <input id="token" type="password" autocomplete="off" spellcheck=${false} value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)} data-search />
                <//>
                <label class="check"><input type="checkbox" checked=${keep} onChange=${(/** @type {any} */ e) => setKeep(e.target.checked)} />${t('login.keep')}</label>
                <div class="buttons"><button type="submit" class="primary" disabled=${text.trim() === '' || wrong}>${t('login.go')}</button></div>
            </form>
            <p class="dim"><${Marked} text=${t('login.note')} /></p>
        </main>
    `;
}

/** @type {[string, string][]} The second key after `g`, and its page. */
const GO = [
    ['o', 'overview'],
    ['h', 'horizon'],
    ['q', 'overview'],
    ['s', 'schedules'],
    ['j', 'jobs'],
];

/** @param {Event} event */
function typing(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    return target.isContentEditable || /^(input|textarea|select)$/i.test(target.tagName);
}

/** Focuses the search field of the page. @returns {boolean} Whether there is one. */
function focusSearch() {
    const field = /** @type {HTMLInputElement | null} */ (document.querySelector('main [data-search]'));
    field?.focus();
    field?.select?.();
    return field !== null;
}

/** Focuses the search field of a page that is being loaded. @param {number} [turns] */
function focusSoon(turns = 40) {
    if (turns > 0) window.setTimeout(() => focusSearch() || focusSoon(turns - 1), 50);
}

/** @type {[string, string][]} Words of the pages, and what they mean. */
const WORDS = [
    ['word.lease', 'word.lease_text'],
    ['horizon.title', 'word.horizon_text'],
    ['state.dead', 'word.dead_text'],
    ['action.redrive', 'word.redrive_text'],
    ['setting.max_in_flight', 'word.in_flight_text'],
];

/** Whether the list of the keys is open. */
const help = store(false);

/** The keys that work on every page, and their list. */
export function Keyboard() {
    const open = useStore(help);
    const act = useStore(keysAct);
    useEffect(() => {
        let gAt = 0;
        const onKey = (/** @type {KeyboardEvent} */ event) => {
            if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
            if (event.key === 'Escape' && typing(event)) /** @type {HTMLElement} */ (event.target).blur();
            if (typing(event) || !keysAct.get()) return;
            const page = Date.now() - gAt < 1500 && GO.find(([key]) => key === event.key);
            gAt = 0;
            if (page) {
                event.preventDefault();
                go(href(page[1]));
                if (event.key === 'q') focusSoon();
            } else if (event.key === 'g') gAt = Date.now();
            else if (event.key === '?') help.set(true);
            else if (event.key === '/') {
                event.preventDefault();
                if (!focusSearch()) {
                    go(href('overview'));
                    focusSoon();
                }
            }
        };
        document.addEventListener('keydown', onKey);
        return () => document.removeEventListener('keydown', onKey);
    }, []);
    if (!open) return null;
    const keys = [
        ['/', 'key.search'],
        ['g o', 'overview.title'],
        ['g q', 'key.queues'],
        ['g h', 'horizon.title'],
        ['g s', 'schedules.title'],
        ['g j', 'jobs.title'],
        ['t', 'key.table'],
        ['?', 'key.help'],
        ['Esc', 'key.close'],
    ];
    return html`<${Dialog} title=${t('key.title')} onClose=${() => help.set(false)}>
        <dl class="keys">${keys.map(([key, word]) => html`<div><dt>${key.split(' ').map((k) => html`<kbd>${k}</kbd> `)}</dt><dd>${t(word)}</dd></div>`)}</dl>
        <label class="check"><input type="checkbox" checked=${act} onChange=${(/** @type {any} */ e) => setKeysAct(e.target.checked)} />${t('key.act')}</label>
        <dl class="keys">${WORDS.map(([label, word]) => html`<div><dt>${t(label)}</dt><dd>${t(word)}</dd></div>`)}</dl>
        <div class="buttons"><button type="button" data-first onClick=${() => help.set(false)}>${t('action.close')}</button></div>
    <//>`;
}
