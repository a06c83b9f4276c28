/** Small parts of all pages: states, times, errors, empty and loading views, and things to copy. */

import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { instant, number, relative, stateWord, t } from '../i18n/index.js';
import { useClock } from '../state/live.js';
import { href } from '../state/location.js';

/** A word in a box. Its shape says the same as its colour. @param {{kind: string, children?: any}} props */
export const Chip = ({ kind, children }) => html`<span class=${`chip chip-${kind}`}>${children}</span>`;

/** @param {{state: string}} props */
export const StateChip = ({ state }) => html`<${Chip} kind=${state}>${stateWord(state)}<//>`;

/** The chips of a queue that does not do what queues do. @param {{queue: any}} props */
export const QueueChips = ({ queue }) => html`
    ${queue.paused && html`<${Chip} kind="paused">${t('queue.paused')}<//>`}
    ${queue.draining && html`<${Chip} kind="draining">${t('queue.draining')}<//>`}
`;

/** A time, relative with the absolute one as its tooltip, or both. @param {{ms: number, both?: boolean}} props */
export function Time({ ms, both }) {
    useClock();
    return html`<time class=${both ? 'whole' : ''} datetime=${new Date(ms).toISOString()} title=${instant(ms, true)}>${both ? html`${instant(ms)} <span class="dim">${relative(ms)}</span>` : relative(ms)}</time>`;
}

/** @param {{queue: string}} props */
export const QueueLink = ({ queue }) => html`<a class="name" href=${href('queue', { queue })}>${queue}</a>`;

/** @param {{queue: string, key_: string}} props */
export const TaskLink = ({ queue, key_ }) => html`<a class="name" href=${href('task', { queue, key: key_ })}>${key_}</a>`;

/**
 * The words of an error: the problem's detail and hint.
 * @param {any} error
 * @returns {{title: string, detail: string, hint: string}}
 */
export function wordsOf(error) {
    // A proxy answers 502 and 504 for a server that does not.
    if (error?.type === 'offline' || (error?.type === 'answer' && [502, 504].includes(error.status)))
        return { title: t('error.offline'), detail: t('error.offline_detail'), hint: t('error.offline_hint') };
    if (error?.status === 403) return { title: t('error.forbidden'), detail: error.detail, hint: error.hint };
    if (error?.status !== undefined) return { title: error.title || t('error.answer'), detail: error.detail, hint: error.hint };
    return { title: t('error.page'), detail: String(error?.message ?? error), hint: '' };
}

/** A text in which the parts between backticks are code. @param {{text: string}} props */
export const Marked = ({ text }) =>
    html`${text.split('`').map((part, i) => (i % 2 === 1 ? html`<code>${part}</code>` : part))}`;

/** @param {{error: any, onRetry?: () => void}} props */
export function Failure({ error, onRetry }) {
    const { title, detail, hint } = wordsOf(error);
    return html`
        <div class="box failure" role="alert">
            <strong>${title}</strong>
            ${detail && html`<p><${Marked} text=${detail} /></p>`}
            ${hint && html`<p class="dim"><${Marked} text=${hint} /></p>`}
            ${onRetry && html`<button type="button" onClick=${onRetry}>${t('action.retry')}</button>`}
        </div>
    `;
}

export const Loading = () =>
    html`<p class="loading" role="status"><span class="spinner" aria-hidden="true"></span>${t('state.loading')}</p>`;

/** A view without data teaches how to get some. @param {{title: string, text?: string, command?: string}} props */
export const Empty = ({ title, text, command }) => html`
    <div class="box empty">
        <strong>${title}</strong>
        ${text && html`<p>${text}</p>`}
        ${command && html`<${Command} text=${command} />`}
    </div>
`;

/** A line for a shell. @param {{text: string}} props */
export const Command = ({ text }) => html`<div class="command"><pre tabindex="0"><code>${text}</code></pre><${Copy} text=${text} /></div>`;

/** @param {string} text */
async function copy(text) {
    // Browsers have no clipboard on plain HTTP from another machine.
    if (window.navigator.clipboard) {
        await window.navigator.clipboard.writeText(text);
        return;
    }
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'outside';
    (document.querySelector('dialog[open]') ?? document.body).append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
}

/** @param {{text: string, label?: string}} props */
export function Copy({ text, label }) {
    const [done, setDone] = useState(false);
    const run = () =>
        copy(text).then(
            () => {
                setDone(true);
                window.setTimeout(() => setDone(false), 1500);
            },
            () => {},
        );
    return html`<button type="button" class="quiet" onClick=${run}>${done ? t('action.copied') : (label ?? t('action.copy'))}</button>`;
}

/** Offers bytes as a file. @param {string} name @param {Uint8Array} bytes @param {string} type */
export function download(name, bytes, type) {
    const link = document.createElement('a');
    const url = URL.createObjectURL(new Blob([/** @type {BlobPart} */ (bytes)], { type }));
    link.href = url;
    link.download = name;
    link.click();
    window.setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/**
 * The three states of loaded data around what shows it. Data that is there stays while a later call fails.
 * @param {{live: import('../state/live.js').Live<any>, children: (data: any) => any}} props
 */
export function Loaded({ live, children }) {
    if (live.data === null) return live.error ? html`<${Failure} error=${live.error} onRetry=${live.reload} />` : html`<${Loading} />`;
    const refused = live.error && /** @type {any} */ (live.error).status > 0;
    return html`
        ${refused && html`<${Failure} error=${live.error} onRetry=${live.reload} />`}
        <div class=${live.error ? 'stale' : ''}>${children(live.data)}</div>
    `;
}

/** A number of a tile with its word. A link takes the whole tile. @param {{label: string, value: any, note?: any, tone?: string, link?: string}} props */
export const Tile = ({ label, value, note, tone, link }) => html`
    <div class=${`tile ${tone ? `tile-${tone}` : ''}`}>
        <dt>${label}</dt>
        <dd>${link ? html`<a href=${link} aria-label=${`${label}: ${value}`}>${value}</a>` : value}${note && html`<small>${note}</small>`}</dd>
    </div>
`;

/** How much of a limit is used. @param {{label: string, value: number, max: number}} props */
export const Gauge = ({ label, value, max }) => html`
    <div class="gauge">
        <span>${label}</span><span>${number(value)} / ${number(max)}</span>
        <progress max=${max} value=${Math.min(value, max)} aria-label=${label}></progress>
    </div>
`;

/** The way to a page inside a queue. @param {{queue: string, page: string}} props */
export const QueueTabs = ({ queue, page }) => html`
    <nav class="tabs" aria-label=${t('queue.parts', { queue })}>
        ${[
            ['queue', 'queue.title'],
            ['search', 'search.title'],
            ['dead', 'dead.title'],
            ['settings', 'settings.title'],
            ['target', 'target.title'],
        ].map(
            ([name, word]) => html`
            <a href=${href(name, { queue })} aria-current=${name === page ? 'page' : undefined}>${t(word)}</a>
        `,
        )}
        <a href=${href('horizon', {}, { queue })} aria-current=${page === 'horizon' ? 'page' : undefined}>${t('horizon.title')}</a>
    </nav>
`;

/** The fault of a field is shown after a pause in the typing, or when the field is left. */
const PAUSE_MS = 800;

/**
 * A field with its label, a note and what is wrong with it. The input that has the id is described by both.
 * @param {{id: string, label: string, note?: any, wrong?: string | null, children: any}} props
 */
export function Field({ id, label, note, wrong, children }) {
    const [shown, setShown] = useState(wrong ?? '');
    const timer = useRef(0);
    const latest = useRef(wrong);
    latest.current = wrong;
    const show = () => {
        window.clearTimeout(timer.current);
        setShown(latest.current ?? '');
    };
    const showSoon = () => {
        window.clearTimeout(timer.current);
        timer.current = window.setTimeout(show, PAUSE_MS);
    };
    useEffect(() => {
        // A fault that is repaired goes at once.
        if (!wrong || document.activeElement?.id !== id) show();
        else showSoon();
        return () => window.clearTimeout(timer.current);
    }, [wrong]);
    useEffect(() => {
        const field = document.getElementById(id);
        const put = (/** @type {string} */ name, /** @type {string} */ value) =>
            value ? field?.setAttribute(name, value) : field?.removeAttribute(name);
        put('aria-describedby', `${note ? `${id}-note ` : ''}${shown ? `${id}-wrong` : ''}`.trim());
        put('aria-invalid', shown ? 'true' : '');
    });
    return html`
        <div class=${`field ${shown ? 'field-wrong' : ''}`} onInput=${() => wrong && showSoon()} onfocusout=${show}>
            <label for=${id}>${label}</label>
            ${children}
            ${note && html`<small class="dim" id=${`${id}-note`}>${note}</small>`}
            <small class="wrong" id=${`${id}-wrong`} role="status">${shown && html`<${Marked} text=${shown} />`}</small>
        </div>
    `;
}
