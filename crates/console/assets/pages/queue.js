/** A queue: counts, limits, what holds it up, and the buttons for it. */

import { html, useEffect, useState } from '../vendor/preact.js';
import { instant, length, number, t } from '../i18n/index.js';
import * as routes from '../api/routes.js';
import { parseDuration } from '../logic/duration.js';
import { ENDS, LABELS } from '../logic/horizon.js';
import { holdUps, withInstants } from '../logic/story.js';
import { FIELDS, valuesOf } from '../logic/settings.js';
import { dueBetween } from '../logic/filter.js';
import { go, href } from '../state/location.js';
import { useLive, useStream } from '../state/live.js';
import { language, may } from '../state/session.js';
import { Empty, Failure, Field, Gauge, Loaded, Marked, QueueChips, QueueTabs, Tile } from '../ui/parts.js';
import { Confirm, Dialog } from '../ui/dialog.js';
import { BarChart } from '../ui/chart.js';
import { Backlog, logBars, useBacklog } from './horizon.js';
import { settingWord } from './settings.js';

/** @param {{queue: string, onClose: () => void, onDone: (queue: any) => void}} props */
function Pause({ queue, onClose, onDone }) {
    const [typed, setTyped] = useState('');
    const [error, setError] = useState(/** @type {any} */ (null));
    const ms = typed.trim() === '' ? 0 : parseDuration(typed);
    const wrong = ms === null || ms > 31_536_000_000 ? t('settings.wrong.duration', { min: '1ms', max: '365d' }) : null;
    const submit = (/** @type {Event} */ event) => {
        event.preventDefault();
        if (!wrong)
            routes.pause(queue, typed.trim() || null).then((answer) => {
                onDone(answer);
                onClose();
            }, setError);
    };
    return html`<${Dialog} title=${t('pause.title', { queue })} onClose=${onClose}>
        <form onSubmit=${submit}>
            <p>${t('pause.text')}</p>
            <${Field} id="pause-length" label=${t('pause.for')} note=${t('pause.note')} wrong=${wrong}>
                <input id="pause-length" data-first autocomplete="off" placeholder="1h30m" value=${typed} onInput=${(/** @type {any} */ e) => setTyped(e.target.value)} />
            <//>
            ${error && html`<${Failure} error=${error} />`}
            <div class="buttons">
                <button type="button" onClick=${onClose}>${t('action.keep')}</button>
                <button type="submit" class="primary" disabled=${wrong !== null}>${t('action.pause')}</button>
            </div>
        </form>
    <//>`;
}

/** The words of what holds a queue up. @param {{queue: any, target?: any}} props */
const HoldUps = ({ queue, target }) => {
    const found = holdUps(queue, target);
    if (found.length === 0) return html`<p class="ok">${t('hold.nothing')}</p>`;
    return html`<ul class="holds">${found.map(({ key, values }) => html`<li>${t(key, { ...values, until: values.until ? instant(values.until) : '', n: values.ready ?? 0 })}</li>`)}</ul>`;
};

/** @param {{row: any}} props */
const QueueBacklog = ({ row }) => html`<${Backlog} row=${row} backlog=${useBacklog(row)} />`;

/** The reasons why a queue does not deliver, and its first ready task with the reason of its wait. @param {{queue: any}} props */
function Holds({ queue: row }) {
    const { queue } = row;
    const hasReady = row.ready > 0;
    const live = useLive(
        async (signal) => {
            const { tasks } = await routes.tasks(queue, { state: 'ready', limit: '1', payloads: 'false' }, signal);
            return tasks[0] ? { key: tasks[0].key, ...(await routes.story(queue, tasks[0].key, signal)) } : null;
        },
        [queue, hasReady],
        hasReady ? 5000 : null,
    );
    // The story says whether a target or a worker is to be waited for.
    if (hasReady && live.loading && !live.data) return null;
    const first = hasReady ? live.data : null;
    return html`
        <${HoldUps} queue=${row} target=${first?.target} />
        ${first && html`<p>${t('hold.first')}: <a class="name" href=${href('task', { queue, key: first.key })}>${first.key}</a>${language.get() === 'en' ? html`. <${Marked} text=${withInstants(first.why, instant)} />` : ''}</p>`}
    `;
}

/** The horizon of the queue, as far as 100 years. @param {{queue: string}} props */
function QueueHorizon({ queue }) {
    const live = useLive((signal) => logBars(signal, queue), [queue], 30_000);
    return html`<${Loaded} live=${live}>${(/** @type {import('./horizon.js').Bars} */ { bars }) => {
        const sum = bars.reduce((all, bar) => all + bar.tasks + bar.expected, 0);
        if (sum === 0) return html`<p class="dim">${t('horizon.none')}</p>`;
        const from = bars[0].from;
        const views = bars.map((bar, i) => ({
            tasks: bar.tasks,
            expected: bar.expected,
            label: LABELS.get(ENDS[i]) ?? '',
            title: `${t('horizon.range', { from: length(bar.from - from), to: length(bar.to - from) })}: ${t('tasks.count', { n: bar.tasks })}${bar.expected > 0 ? `, ${t('horizon.expected', { n: bar.expected })}` : ''}`,
        }));
        return html`<${BarChart} bars=${views} capacity=${null} summary=${t('tasks.count', { n: sum })}
            onPick=${(/** @type {number} */ i) => go(href('search', { queue }, dueBetween(bars[i].from, bars[i].to)))}
            onBrush=${(/** @type {number} */ a, /** @type {number} */ b) => go(href('horizon', {}, { queue, from: Math.floor(bars[a].from), to: Math.ceil(bars[b].to) }))} />
            <p class="dim">${t('horizon.help_queue')} <a href=${href('horizon', {}, { queue, view: 'table' })}>${t('horizon.table')}</a></p>`;
    }}<//>`;
}

/** @param {{queue: string}} props */
export function Queue({ queue }) {
    const [row, setRow] = useState(/** @type {any} */ (null));
    const streams = useStream(
        (onEvent, onProblem) => routes.events({ topics: 'queues', queue }, onEvent, onProblem),
        [queue],
        (event, data) => event === 'queues' && setRow({ at: Date.now(), ...data.queues[0] }),
    );
    // The stream has the counts. The settings are asked for.
    const asked = useLive((signal) => routes.queue(queue, signal), [queue], streams ? 30_000 : 2000);
    const told = `${row?.paused ?? false} ${row?.draining ?? false}`;
    useEffect(() => {
        if (row?.queue && asked.data && told !== `${asked.data.paused} ${asked.data.draining ?? false}`) asked.reload();
    }, [told]);
    const live = asked.data && row?.queue && row.at > (asked.at ?? 0) ? { ...asked, data: { ...asked.data, ...row } } : asked;
    const [open, setOpen] = useState(/** @type {string | null} */ (null));
    const [error, setError] = useState(/** @type {any} */ (null));
    const act = (/** @type {Promise<any>} */ call) =>
        call.then((answer) => {
            setError(null);
            live.replace(answer);
        }, setError);
    const close = () => setOpen(null);
    return html`
        <h1 tabindex="-1" class="name">${queue} ${live.data && html`<${QueueChips} queue=${live.data} />`}</h1>
        <${QueueTabs} queue=${queue} page="queue" />
        <${Loaded} live=${live}>${(/** @type {any} */ data) => {
            const values = valuesOf(data);
            const set = FIELDS.filter(({ name }) => values[name] !== '');
            const empty = data.scheduled + data.ready + data.leased + data.dead === 0;
            if (data.exists === false && empty && !data.paused && !data.draining)
                return html`
                    <${Empty} title=${t('queue.none')} text=${t('queue.none_text')} command=${routes.curl('PUT', ['v1', 'queues', queue, 'tasks', 'order:1'], '{"delay":"1m"}')} />
                    <div class="actions">
                        <a class="button" href=${href('overview')}>${t('overview.queues')}</a>
                        ${may('admin') && html`<a class="button" href=${href('settings', { queue })}>${t('settings.title')}</a>`}
                    </div>`;
            return html`
                <dl class="tiles">
                    ${['ready', 'scheduled', 'leased'].map((state) => html`<${Tile} label=${t(`state.${state}`)} value=${number(data[state])} link=${href('search', { queue }, { state })} />`)}
                    <${Tile} label=${t('state.dead')} value=${number(data.dead)} link=${href('dead', { queue })} tone=${data.dead > 0 ? 'bad' : ''} />
                </dl>
                <h2>${t('hold.title')}</h2>
                <${Holds} queue=${data} />
                ${data.rate && html`<${QueueBacklog} row=${data} />`}
                ${
                    (data.max_in_flight || data.max_backlog) &&
                    html`
                    <div class="gauges">
                        ${data.max_in_flight && html`<${Gauge} label=${t('setting.max_in_flight')} value=${data.leased} max=${data.max_in_flight} />`}
                        ${data.max_backlog && html`<${Gauge} label=${t('setting.max_backlog')} value=${data.scheduled + data.ready + data.leased} max=${data.max_backlog} />`}
                    </div>`
                }
                ${error && html`<${Failure} error=${error} />`}
                <div class="actions">
                    ${
                        may('admin') &&
                        html`
                        ${
                            data.paused || data.draining
                                ? html`<button type="button" class="primary" onClick=${() => act(routes.resume(queue))}>${t('action.resume')}</button>`
                                : html`<button type="button" onClick=${() => setOpen('pause')}>${t('action.pause_for')}</button>`
                        }
                        ${!data.draining && html`<button type="button" onClick=${() => setOpen('drain')}>${t('action.drain')}</button>`}
                        <a class="button" href=${href('settings', { queue })}>${t('settings.title')}</a>`
                    }
                    ${may('produce') && html`<button type="button" class="danger" disabled=${data.scheduled + data.ready + data.leased === 0} onClick=${() => setOpen('cancel')}>${t('action.cancel_all')}</button>`}
                    ${may('admin') && empty && html`<button type="button" class="danger" onClick=${() => setOpen('delete')}>${t('action.delete_queue')}</button>`}
                </div>
                <h2>${t('horizon.title')}</h2>
                <${QueueHorizon} queue=${queue} />
                <h2>${t('settings.title')}</h2>
                ${
                    set.length === 0
                        ? html`<p class="dim">${t('settings.none')}</p>`
                        : html`<dl class="facts">${set.map((field) => html`<div><dt>${settingWord(field.name)}</dt><dd><code>${values[field.name]}</code>${field.preset === values[field.name] ? html` <span class="dim">${t('settings.is_preset')}</span>` : ''}</dd></div>`)}</dl>`
                }
            `;
        }}<//>
        ${open === 'pause' && html`<${Pause} queue=${queue} onClose=${close} onDone=${live.replace} />`}
        ${
            open === 'drain' &&
            html`<${Confirm} title=${t('drain.title', { queue })} text=${t('drain.text')} action=${t('action.drain')} queue=${queue} onClose=${close}
            run=${async () => live.replace(await routes.drain(queue))} />`
        }
        ${
            open === 'cancel' &&
            html`<${Confirm} title=${t('cancel.title_all', { queue })} text=${t('cancel.text')} action=${t('action.cancel')} queue=${queue} onClose=${close} offerRevoke
            count=${() => routes.bulkCancel(queue, { filter: {}, dry_run: true, revoke: true })}
            run=${(/** @type {any} */ { revoke }) => routes.bulkCancel(queue, { filter: {}, dry_run: false, revoke })}
            done=${(/** @type {any} */ answer) => t('cancel.done', { n: answer.cancelled ?? answer.done, matched: answer.matched })} onDone=${live.reload} />`
        }
        ${
            open === 'delete' &&
            html`<${Confirm} title=${t('delete.title', { queue })} text=${t('delete.text')} action=${t('action.delete_queue')} queue=${queue} onClose=${close}
            run=${() => routes.deleteQueue(queue)} onDone=${(/** @type {boolean} */ closed) => !closed && go(href('overview'))} />`
        }
    `;
}
