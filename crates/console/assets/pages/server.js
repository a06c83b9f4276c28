/** The server itself: what it is, its virtual clock, and its wheel. */

import { html, useState } from '../vendor/preact.js';
import { instant, length, number, size, t } from '../i18n/index.js';
import * as routes from '../api/routes.js';
import { parseDuration } from '../logic/duration.js';
import { clockWithin } from '../logic/horizon.js';
import { SHOWN_MAX } from '../logic/payload.js';
import { occupiedOf, runsOf } from '../logic/wheel.js';
import { base } from '../state/location.js';
import { useLive, useStore, useStream } from '../state/live.js';
import { caller, hasToken, may, server, virtualNow } from '../state/session.js';
import { Copy, Empty, Failure, Field, Loaded, Loading, QueueLink, download } from '../ui/parts.js';
import { Table } from '../ui/table.js';
import { Rings } from '../ui/chart.js';

/** The number of ready and dead tasks of each queue. @returns {Promise<Map<string, any>>} */
async function counts() {
    const { queues } = await routes.allQueues('', undefined);
    return new Map(queues.map((/** @type {any} */ row) => [row.queue, row]));
}

/** A forecast of 100 years, to find out whether anything comes. */
const COARSE = { bucket: '10d', span: '36500d' };

export function Clock() {
    const state = useStore(server);
    const time = useStore(virtualNow);
    const [by, setBy] = useState('');
    const [error, setError] = useState(/** @type {any} */ (null));
    const [busy, setBusy] = useState(false);
    const [fell, setFell] = useState(/** @type {{by: string, rows: any[]} | null} */ (null));
    const ahead = useLive(
        (signal) => (state?.virtual_clock ? routes.forecast(COARSE, signal) : Promise.resolve(null)),
        [state?.virtual_clock ?? false, time ?? 0],
    );
    const wrong = by !== '' && parseDuration(by) === null ? t('settings.wrong.duration', { min: '0s', max: '36500d' }) : null;
    /** Moves the clock by what `steps` yields, and compares the queues before and after. @param {() => AsyncGenerator<string>} steps */
    const move = async (steps) => {
        setBusy(true);
        setError(null);
        try {
            const before = await counts();
            const first = virtualNow.get();
            for await (const step of steps()) virtualNow.set(Date.parse((await routes.advance(step)).now));
            const rows = [];
            for (const [name, row] of await counts()) {
                const old = before.get(name) ?? { ready: 0, dead: 0, scheduled: 0 };
                if (row.ready !== old.ready || row.dead !== old.dead)
                    rows.push({
                        queue: name,
                        ready: row.ready - old.ready,
                        dead: row.dead - old.dead,
                        scheduled: row.scheduled - old.scheduled,
                    });
            }
            const last = virtualNow.get() ?? 0;
            setFell({ by: length(last - (first ?? last)), rows });
        } catch (failure) {
            setError(failure);
        }
        setBusy(false);
    };
    const step = (/** @type {string} */ by_) =>
        move(async function* one() {
            yield by_;
        });
    // The begin of the first bucket with tasks is never behind the next event, so each finer search begins there.
    const toNext = () =>
        move(async function* finer() {
            // Another caller may have moved the clock, so the server is asked for it. Its buckets begin at whole seconds.
            const { from } = await routes.forecast({ bucket: '1s', span: '1s' }, undefined);
            virtualNow.set(clockWithin(Date.parse(from), 1000, virtualNow.get()));
            for (const window of [COARSE, { bucket: '1h', span: '240h' }, { bucket: '1s', span: '3600s' }]) {
                const found = (await routes.forecast(window, undefined)).buckets[0];
                const here = virtualNow.get();
                const away = found && here !== null ? Date.parse(found.at) - here + (window.bucket === '1s' ? 1000 : 0) : 0;
                if (away > 0) yield `${away}ms`;
            }
        });
    const signed = (/** @type {number} */ n) => (n > 0 ? `+${n}` : String(n));
    if (state && !state.virtual_clock)
        return html`<h1 tabindex="-1">${t('clock.title')}</h1><${Empty} title=${t('clock.none')} text=${t('clock.none_text')} command="tickwheel serve --memory --virtual-clock" />`;
    return html`
        <h1 tabindex="-1">${t('clock.title')}</h1>
        <p class="dim">${t('clock.text')}</p>
        ${time !== null && html`<p class="big-time">${instant(time, true)}</p>`}
        ${ahead.error ? html`<${Failure} error=${ahead.error} onRetry=${ahead.reload} />` : time === null && html`<${Loading} />`}
        ${error && html`<${Failure} error=${error} />`}
        ${
            // All queues have one clock, so a token with a scope may not move it.
            may('admin') &&
            caller.get()?.scopes.length === 0 &&
            html`
            <div class="actions">
                ${['1s', '1m', '1h', '1d', '15d'].map((by_) => html`<button type="button" disabled=${busy || time === null} onClick=${() => step(by_)}>+${by_}</button>`)}
                <button type="button" class="primary" disabled=${busy || time === null || !ahead.data?.buckets?.length} onClick=${toNext}>${t('clock.next')}</button>
            </div>
            <form class="inline" onSubmit=${(/** @type {Event} */ e) => {
                e.preventDefault();
                if (by && !wrong && !busy && time !== null) step(by.trim());
            }}>
                <${Field} id="clock-by" label=${t('clock.by')} wrong=${wrong}><input id="clock-by" autocomplete="off" placeholder="1h30m" value=${by} onInput=${(/** @type {any} */ e) => setBy(e.target.value)} /><//>
                <button type="submit" disabled=${busy || time === null || by === '' || wrong !== null}>${t('clock.advance')}</button>
            </form>`
        }
        <div role="status">
            ${
                fell &&
                html`<h2>${t('clock.fell', { length: fell.by })}</h2>
                ${
                    fell.rows.length === 0
                        ? html`<p class="dim">${t('clock.nothing')}</p>`
                        : html`<${Table} caption=${t('clock.fell', { length: fell.by })} rows=${fell.rows} rowKey=${(/** @type {any} */ r) => r.queue} columns=${[
                              {
                                  key: 'queue',
                                  label: t('queue.word'),
                                  head: true,
                                  cell: (/** @type {any} */ r) => html`<${QueueLink} queue=${r.queue} />`,
                              },
                              ...['ready', 'scheduled', 'dead'].map((state_) => ({
                                  key: state_,
                                  label: t(`state.${state_}`),
                                  numeric: true,
                                  cell: (/** @type {any} */ r) => signed(r[state_]),
                              })),
                          ]} />`
                }`
            }
        </div>
    `;
}

/** The address of what the server has beside the console. @param {string} path */
const outside = (path) => new URL(`../${path}`, base).href;

/** A text of the server: a link, or with a token, which a link does not send, the text itself. @param {{path: string, label: string, load: (signal: AbortSignal | undefined) => Promise<string>}} props */
function Document({ path, label, load }) {
    const known = useStore(hasToken);
    const [open, setOpen] = useState(false);
    const live = useLive(async (signal) => (open ? load(signal) : ''), [open]);
    if (!known) return html`<li><a href=${outside(path)}>${label}</a></li>`;
    return html`<li>
        <button type="button" class="quiet" aria-expanded=${open ? 'true' : 'false'} onClick=${() => setOpen(!open)}>${label}</button>
        ${
            open &&
            html`<${Loaded} live=${live}>${(/** @type {string} */ text) => html`
                <div class="buttons"><${Copy} text=${text} /><button type="button" class="quiet" onClick=${() => download(path, new TextEncoder().encode(text), 'text/plain')}>${t('payload.download')}</button></div>
                <pre class="payload" tabindex="0" role="region" aria-label=${label}>${text.slice(0, SHOWN_MAX)}</pre>
                ${text.length > SHOWN_MAX && html`<p class="note">${t('payload.cut', { size: size(text.length) })}</p>`}`}<//>`
        }
    </li>`;
}

/** The wheel of the engine while it turns. */
export function Wheel() {
    const [wheel, setWheel] = useState(/** @type {any} */ (null));
    const [problem, setProblem] = useState(/** @type {any} */ (null));
    const streams = useStream(
        (onEvent, onProblem) =>
            routes.events({ topics: 'wheel' }, onEvent, (why) => {
                setProblem(why);
                onProblem(why);
            }),
        [],
        (event, data) => event === 'wheel' && setWheel(data),
    );
    const levels = (wheel?.levels ?? []).map((/** @type {any} */ level, /** @type {number} */ i) => {
        const runs = runsOf(level.occupied, level.slots);
        const occupied = occupiedOf(runs);
        return { ...level, i, runs, occupied, title: t('wheel.level', { n: i + 1, slot: length(level.slot_ms), occupied, slots: level.slots }) };
    });
    const cell = (/** @type {string} */ key, /** @type {string} */ label, /** @type {(level: any) => any} */ show) => ({
        key,
        label: t(label),
        numeric: key !== 'level',
        head: key === 'level',
        cell: show,
    });
    return html`
        <h1 tabindex="-1">${t('wheel.title')}</h1>
        <p class="dim">${t('wheel.text')}</p>
        ${!streams && problem && html`<${Failure} error=${problem} />`}
        ${!wheel && (streams || !problem) && html`<${Loading} />`}
        ${
            wheel &&
            html`
            <p>${t('wheel.now', { n: wheel.tasks, time: instant(Date.parse(wheel.now)) })}</p>
            <${Rings} levels=${levels} />
            <${Table} caption=${t('wheel.title')} rows=${levels} rowKey=${(/** @type {any} */ level) => level.i} columns=${[
                cell('level', 'wheel.level_word', (level) => level.i + 1),
                cell('slot', 'wheel.slot', (level) => length(level.slot_ms)),
                cell('turn', 'wheel.turn', (level) => length(level.slot_ms * level.slots)),
                cell('hand', 'wheel.hand', (level) => level.hand),
                cell('occupied', 'wheel.occupied', (level) => `${number(level.occupied)} / ${number(level.slots)}`),
            ]} />`
        }
    `;
}

/** The limits of a token in one line, by the names of the API. @param {Record<string, any> | undefined} limits */
const limitsOf = (limits) =>
    Object.entries(limits ?? {})
        .filter(([, value]) => value !== null)
        .map(([name, value]) => `${name} ${value}`)
        .join(', ');

export function About() {
    const state = useStore(server);
    const known = useStore(caller);
    const yesNo = (/** @type {boolean} */ value) => t(value ? 'about.yes' : 'about.no');
    /** @type {[string, any][] | null} */
    const facts = state && [
        ['about.version', known?.version],
        ['about.status', t(`about.status_${state.status}`)],
        ['about.durability', `${t(`durability.${state.durability}`)}: ${t(`durability.${state.durability}.note`)}`],
        ['about.virtual', yesNo(state.virtual_clock)],
        ['about.read_only', state.read_only ?? yesNo(false)],
        ['about.draining', yesNo(state.draining)],
        ['about.clock', t('about.clock_text', { n: state.clock.steps, offset: number(state.clock.offset_ms) })],
        ['about.recovery', state.recovery ?? '–'],
        ['about.rights', known?.rights?.join(', ')],
        ['about.scopes', known?.scopes?.join(', ')],
        ['about.limits', limitsOf(known?.limits)],
        ['about.console', known?.console && t(known.console === 'read-only' ? 'about.console_read_only' : 'about.console_on')],
        ['about.instance', known?.instance],
        ['about.address', new URL('../', base).href],
    ];
    const module = (/** @type {string} */ path) => new URL(`../${path}`, import.meta.url).href;
    return html`
        <h1 tabindex="-1">${t('about.title')}</h1>
        ${!state && html`<${Loading} />`}
        ${facts && html`<dl class="facts">${facts.filter(([, value]) => value).map(([word, value]) => html`<div><dt>${t(word)}</dt><dd>${value}</dd></div>`)}</dl>`}
        <h2>${t('about.more')}</h2>
        <ul class="links">
            <${Document} path="openapi.json" label=${t('about.openapi')} load=${routes.openapi} />
            <${Document} path="metrics" label=${t('about.metrics')} load=${routes.metrics} />
            <li><a href=${outside('readyz')}>${t('about.ready')}</a></li>
        </ul>
        <h2>${t('about.licences')}</h2>
        <p>${t('about.licences_text')} <a href=${module('vendor/LICENSE-preact.txt')} data-outside>Preact (MIT)</a>, <a href=${module('vendor/LICENSE-htm.txt')} data-outside>htm (Apache-2.0)</a>.</p>
    `;
}
