/** What this server is. */

import { html } from '../vendor/preact.js';
import { number, t } from '../i18n/index.js';
import * as routes from '../api/routes.js';
import { caller, server } from '../state/session.js';
import { base } from '../state/location.js';
import { useLive } from '../state/live.js';
import { useStore } from '../state/store.js';
import { Failure, Loading } from '../ui/parts.js';

export function About() {
    const state = useStore(server);
    const known = useStore(caller);
    const release = useLive(async (signal) => known?.version ?? routes.release(signal), [known?.version ?? '']);
    const yesNo = (/** @type {boolean} */ value) => t(value ? 'about.yes' : 'about.no');
    const facts = state && [
        ['about.version', release.data ?? (release.error ? '–' : '…')],
        ['about.status', t(`about.status_${state.status}`)],
        ['about.durability', `${t(`durability.${state.durability}`)}: ${t(`durability.${state.durability}.note`)}`],
        ['about.virtual', yesNo(state.virtual_clock)],
        ['about.read_only', state.read_only ?? yesNo(false)],
        ['about.draining', yesNo(state.draining)],
        ['about.clock', t('about.clock_text', { n: state.clock.steps, offset: number(state.clock.offset_ms) })],
        ['about.recovery', state.recovery ?? '–'],
        ['about.rights', known?.rights?.join(', ')],
        ['about.scopes', known?.scopes?.join(', ')],
        ['about.address', new URL('../', base).href],
    ];
    const at = (/** @type {string} */ path) => new URL(`../${path}`, base).href;
    const module = (/** @type {string} */ path) => new URL(`../${path}`, import.meta.url).href;
    return html`
        <h1 tabindex="-1">${t('about.title')}</h1>
        ${!state && html`<${Loading} />`}
        ${release.error && html`<${Failure} error=${release.error} onRetry=${release.reload} />`}
        ${facts && html`<dl class="facts">${facts.filter(([, value]) => value).map(([word, value]) => html`<div><dt>${t(String(word))}</dt><dd>${value}</dd></div>`)}</dl>`}
        <h2>${t('about.more')}</h2>
        <ul>
            <li><a href=${at('openapi.json')}>${t('about.openapi')}</a></li>
            <li><a href=${at('metrics')}>${t('about.metrics')}</a></li>
            <li><a href=${at('readyz')}>${t('about.ready')}</a></li>
        </ul>
        <h2>${t('about.licences')}</h2>
        <p>${t('about.licences_text')} <a href=${module('vendor/LICENSE-preact.txt')} data-outside>Preact (MIT)</a>, <a href=${module('vendor/LICENSE-htm.txt')} data-outside>htm (Apache-2.0)</a>.</p>
    `;
}
