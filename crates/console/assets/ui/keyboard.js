/** The keys that work on every page. */

import { html, useEffect, useState } from '../vendor/preact.js';
import { t } from '../i18n/index.js';
import { go, href } from '../state/location.js';
import { Dialog } from './dialog.js';

/** @type {[string, string][]} The second key after `g`, and its page. */
const GO = [['o', 'overview'], ['h', 'horizon'], ['q', 'overview'], ['s', 'schedules'], ['j', 'jobs']];

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

export function Keyboard() {
    const [help, setHelp] = useState(false);
    useEffect(() => {
        let gAt = 0;
        const onKey = (/** @type {KeyboardEvent} */ event) => {
            if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
            if (event.key === 'Escape' && typing(event)) /** @type {HTMLElement} */ (event.target).blur();
            if (typing(event)) return;
            const page = Date.now() - gAt < 1500 && GO.find(([key]) => key === event.key);
            gAt = 0;
            if (page) {
                event.preventDefault();
                go(href(page[1]));
                if (event.key === 'q') focusSoon();
            } else if (event.key === 'g') gAt = Date.now();
            else if (event.key === '?') setHelp(true);
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
    if (!help) return null;
    const keys = [['/', 'key.search'], ['g o', 'overview.title'], ['g q', 'key.queues'], ['g h', 'horizon.title'], ['g s', 'schedules.title'], ['g j', 'jobs.title'], ['t', 'key.table'], ['?', 'key.help'], ['Esc', 'key.close']];
    return html`<${Dialog} title=${t('key.title')} onClose=${() => setHelp(false)}>
        <dl class="keys">${keys.map(([key, word]) => html`<div><dt>${key.split(' ').map((k) => html`<kbd>${k}</kbd> `)}</dt><dd>${t(word)}</dd></div>`)}</dl>
        <div class="buttons"><button type="button" autofocus onClick=${() => setHelp(false)}>${t('action.close')}</button></div>
    <//>`;
}
