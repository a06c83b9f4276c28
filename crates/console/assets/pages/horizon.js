/** The horizon: what falls due when, from the next second to 100 years ahead. */

import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { instant, length, number, span, t } from '../i18n/index.js';
import * as routes from '../api/routes.js';
import { parseRate } from '../logic/duration.js';
import { LABELS, ENDS, REACH, backlogOf, bucketFor, capacityOf, linearBars, logBarsOf } from '../logic/horizon.js';
import { dueBetween } from '../logic/filter.js';
import { go, href, setQuery } from '../state/location.js';
import { useChanged, useLive } from '../state/live.js';
import { keysAct, now } from '../state/session.js';
import { Empty, Loaded, QueueTabs } from '../ui/parts.js';
import { Table } from '../ui/table.js';
import { BarChart } from '../ui/chart.js';

/** @typedef {{bars: import('../logic/horizon.js').Bar[], until: number | null}} Bars `until`: the end of the counts of schedules, if there are more instants than were counted. */

/** @param {any} answer */
const untilOf = ({ expected_until }) => (expected_until ? Date.parse(expected_until) : null);

/** @param {AbortSignal} signal @param {string} queue @returns {Promise<Bars>} */
export async function logBars(signal, queue) {
    const answer = await routes.forecast({ queue, scale: 'log', schedules: 'true' }, signal);
    return { bars: logBarsOf(answer), until: untilOf(answer) };
}

/** @param {AbortSignal} signal @param {string} queue @param {number} from @param {number} to @returns {Promise<Bars>} */
async function zoomBars(signal, queue, from, to) {
    const { bucket, bucketMs } = bucketFor(to - from);
    const span = `${Math.max(1, Math.ceil((to - from) / 1000))}s`;
    const answer = await routes.forecast({ queue, bucket, span, from: String(from), schedules: 'true' }, signal);
    return { bars: linearBars(answer, bucketMs, from, to), until: untilOf(answer) };
}

/** @param {AbortSignal} signal @param {string} queue Empty for all. */
async function dueNow(signal, queue) {
    if (queue) {
        const one = await routes.queue(queue, signal);
        return { due: one.ready, rate: one.rate ?? null, row: one };
    }
    const { queues } = await routes.allQueues('', signal);
    return { due: queues.reduce((/** @type {number} */ sum, /** @type {any} */ row) => sum + row.ready, 0), rate: null, row: null };
}

/**
 * Whether a queue's rate delivers what falls due in the next days, minute by minute.
 * @param {any} row The queue; nothing is asked for one without a rate, or without a queue.
 */
export function useBacklog(row) {
    const rate = row?.rate ? parseRate(row.rate) : null;
    const live = useLive(
        (signal) => routes.forecast({ queue: row.queue, bucket: '1m', span: `${REACH}ms`, schedules: 'true' }, signal),
        [row?.queue],
        rate ? 60_000 : null,
    );
    if (!rate || !live.data) return { live, found: null, end: 0 };
    const begin = Math.max(now(), Date.parse(live.data.from));
    const end = untilOf(live.data) ?? begin + REACH;
    return { live, found: backlogOf(live.data.buckets, rate, row.burst ?? rate.count, row.ready, begin, end), end };
}

/** @param {{row: any, backlog: ReturnType<typeof useBacklog>}} props */
export const Backlog = ({ row: { rate, ready }, backlog: { live, found, end } }) => html`
    <${Loaded} live=${live}>${() => {
        if (!found) return html`<p class="ok">${t('horizon.no_backlog', { rate, end: instant(end) })}</p>`;
        const { from, until, peak, lateMs, needed } = found;
        const words = { rate, n: peak, from: instant(from), until: instant(until ?? end), late: length(lateMs) };
        if (needed === null) return html`<p class="note">${t('horizon.behind', { ...words, n: ready })}</p>`;
        return html`<p class="note wall-note">${t(until === null ? 'horizon.backlog_open' : 'horizon.backlog', words)} ${t('horizon.needed', { rate: needed })}</p>`;
    }}<//>
`;

/** @param {{queue: string}} props */
function QueueChoice({ queue }) {
    const [text, setText] = useState(queue);
    useChanged(queue, setText);
    const known = useLive((signal) => routes.queues({ limit: 1000 }, signal), []);
    const submit = (/** @type {Event} */ e) => {
        e.preventDefault();
        setQuery({ queue: text.trim() }, false);
    };
    return html`
        <form class="inline" role="search" onSubmit=${submit}>
            <input type="search" list="queues" data-search aria-label=${t('horizon.queue')} placeholder=${t('horizon.queue')} value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)} onChange=${submit} />
            <datalist id="queues">${known.data?.queues.map((/** @type {any} */ row) => html`<option value=${row.queue}></option>`)}</datalist>
        </form>
    `;
}

/** Zooms that need no mouse: from now to so far ahead, as the address names them. @type {[string, number][]} */
const ZOOMS = [
    ['1h', 3_600_000],
    ['1d', 86_400_000],
    ['7d', 604_800_000],
    ['30d', 2_592_000_000],
    ['365d', 31_536_000_000],
];

/** @param {{query: Record<string, string>}} props */
export function Horizon({ query }) {
    const queue = query.queue ?? '';
    const from = Number(query.from) || 0;
    const to = Number(query.to) || 0;
    const next = ZOOMS.find(([word]) => word === query.next)?.[1] ?? 0;
    const zoomed = next > 0 || (to > from && to > 0);
    const live = useLive(
        async (signal) => {
            // A view of what is next moves on with the clock.
            const begin = next > 0 ? Math.floor(now()) : from;
            const end = next > 0 ? begin + next : to;
            const [{ bars, until }, due] = await Promise.all([
                zoomed ? zoomBars(signal, queue, begin, end) : logBars(signal, queue),
                dueNow(signal, queue),
            ]);
            return { bars, until, begin, end, ...due };
        },
        [queue, from, to, next],
        10_000,
    );
    const backlog = useBacklog(live.data?.row);
    const table = query.view === 'table';
    const tableNow = useRef(table);
    tableNow.current = table;
    useEffect(() => {
        const onKey = (/** @type {KeyboardEvent} */ event) => {
            const target = /** @type {HTMLElement} */ (event.target);
            if (
                event.key !== 't' ||
                event.ctrlKey ||
                event.metaKey ||
                event.altKey ||
                !keysAct.get() ||
                /^(input|textarea|select)$/i.test(target.tagName) ||
                document.querySelector('dialog[open]')
            )
                return;
            setQuery({ view: tableNow.current ? '' : 'table' });
        };
        document.addEventListener('keydown', onKey);
        return () => document.removeEventListener('keydown', onKey);
    }, []);
    const list = (/** @type {number} */ a, /** @type {number} */ b) => href('search', { queue }, dueBetween(a, b));
    const zoom = (/** @type {number} */ a, /** @type {number} */ b) => setQuery({ next: '', from: Math.floor(a), to: Math.ceil(b) }, false);
    return html`
        <div class="bar-of-fields">
            <h1 tabindex="-1">${queue ? t('horizon.of', { queue }) : t('horizon.title')}</h1>
            <${QueueChoice} queue=${queue} />
        </div>
        ${queue && html`<${QueueTabs} queue=${queue} page="horizon" />`}
        <div class="actions">
            <button type="button" aria-pressed=${!zoomed} onClick=${() => setQuery({ next: '', from: '', to: '' }, false)}>${t('horizon.all')}</button>
            ${ZOOMS.map(([word, ms]) => html`<button type="button" aria-pressed=${query.next === word} onClick=${() => setQuery({ next: word, from: '', to: '' }, false)}>${t('horizon.next', { length: length(ms) })}</button>`)}
            <button type="button" aria-pressed=${table} onClick=${() => setQuery({ view: table ? '' : 'table' }, false)}>${t('horizon.table')}</button>
        </div>
        ${!queue && live.error && /** @type {any} */ (live.error).status === 403 && html`<p class="note">${t('horizon.choose')}</p>`}
        <${Loaded} live=${live}>${(/** @type {any} */ data) => {
            /** @type {import('../logic/horizon.js').Bar[]} */
            const bars = data.bars;
            const tasks = bars.reduce((all, bar) => all + bar.tasks, 0);
            const expected = bars.reduce((all, bar) => all + bar.expected, 0);
            const rate = data.rate ? parseRate(data.rate) : null;
            const capacity = rate ? capacityOf(bars, rate) : null;
            const { found } = backlog;
            const isBehind = (/** @type {import('../logic/horizon.js').Bar} */ bar) =>
                found?.needed && bar.tasks + bar.expected > 0 && bar.from < (found.until ?? Infinity) && bar.to > found.from;
            const at = now();
            const range = (/** @type {import('../logic/horizon.js').Bar} */ bar) =>
                zoomed
                    ? span(bar.from, bar.to)
                    : t('horizon.range', { from: length(bar.from - bars[0].from), to: length(bar.to - bars[0].from) });
            const words = (/** @type {import('../logic/horizon.js').Bar} */ bar) =>
                `${range(bar)}: ${t('tasks.count', { n: bar.tasks })}${bar.expected > 0 ? `, ${t('horizon.expected', { n: bar.expected })}` : ''}`;
            const summary = `${t('horizon.summary', { n: tasks, due: data.due })}${expected > 0 ? ` ${t('horizon.summary_expected', { n: expected })}` : ''}`;
            const every = Math.max(1, Math.ceil(bars.length / 10));
            const views = bars.map((bar, i) => ({
                tasks: bar.tasks,
                expected: bar.expected,
                title: words(bar),
                tone: /** @type {any} */ (isBehind(bar) ? 'wall' : ''),
                label: zoomed ? (i % every === 0 ? label(bar.from, data.end - data.begin) : '') : (LABELS.get(ENDS[i]) ?? ''),
            }));
            if (!zoomed)
                views.unshift({
                    tasks: data.due,
                    expected: 0,
                    title: `${t('horizon.due')}: ${t('tasks.count', { n: data.due })}`,
                    tone: 'due',
                    label: t('horizon.now'),
                });
            const first = zoomed ? 0 : 1;
            const rows = [
                ...(zoomed ? [] : [{ due: true, tasks: data.due, expected: 0, from: 0, to: at }]),
                ...bars.filter((bar) => bar.tasks + bar.expected > 0),
            ];
            const columns = [
                {
                    key: 'range',
                    label: t('horizon.when'),
                    head: true,
                    cell: (/** @type {any} */ bar) => (bar.due ? t('horizon.due') : range(bar)),
                },
                { key: 'until', label: t('horizon.until'), cell: (/** @type {any} */ bar) => (bar.due ? '–' : instant(bar.to)) },
                {
                    key: 'tasks',
                    label: t('horizon.tasks'),
                    numeric: true,
                    cell: (/** @type {any} */ bar) =>
                        queue
                            ? html`<a href=${bar.due ? href('search', { queue }, { state: 'ready' }) : list(bar.from, bar.to)}>${number(bar.tasks)}</a>`
                            : number(bar.tasks),
                },
                ...(capacity
                    ? [
                          {
                              key: 'capacity',
                              label: t('horizon.capacity', { rate: data.rate }),
                              numeric: true,
                              cell: (/** @type {any} */ bar) => (bar.due ? '–' : number(Math.floor(capacity[bars.indexOf(bar)]))),
                          },
                      ]
                    : []),
                {
                    key: 'expected',
                    label: t('horizon.from_schedules'),
                    numeric: true,
                    cell: (/** @type {any} */ bar) => number(bar.expected),
                },
                {
                    key: 'zoom',
                    label: t('task.do'),
                    cell: (/** @type {any} */ bar) =>
                        !bar.due &&
                        html`<button type="button" class="quiet" aria-label=${t('horizon.zoom_to', { range: range(bar) })} onClick=${() => zoom(bar.from, bar.to)}>${t('horizon.zoom')}</button>`,
                },
            ];
            return html`
                <p>${summary}${zoomed ? html` <span class="dim">${span(data.begin, data.end)}</span>` : ''}</p>
                ${rate && html`<${Backlog} row=${data.row} backlog=${backlog} />`}
                ${
                    tasks + expected + data.due === 0
                        ? html`<${Empty} title=${t('horizon.none')} text=${t('horizon.none_text')} command=${routes.curl('PUT', ['v1', 'queues', queue || 'orders', 'tasks', 'order:1'], '{"delay":"15d"}')} />`
                        : table
                          ? html`<${Table} caption=${t('horizon.title')} columns=${columns} rows=${rows} rowKey=${(/** @type {any} */ bar) => bar.from} />`
                          : html`
                        <${BarChart} bars=${views} capacity=${capacity ? [...(zoomed ? [] : [0]), ...capacity] : null} summary=${summary}
                            onPick=${(/** @type {number} */ i) => {
                                if (i < first) {
                                    if (queue) go(href('search', { queue }, { state: 'ready' }));
                                    return;
                                }
                                const bar = bars[i - first];
                                if (queue) go(list(bar.from, bar.to));
                                else zoom(bar.from, bar.to);
                            }}
                            onBrush=${(/** @type {number} */ a, /** @type {number} */ b) => zoom(bars[Math.max(0, a - first)].from, bars[Math.max(0, b - first)].to)} />
                        <p class="dim legend"><span class="key key-tasks"></span>${t('horizon.tasks')} <span class="key key-expected"></span>${t('horizon.from_schedules')}${rate ? html` <span class="key key-capacity"></span>${t('horizon.capacity', { rate: data.rate })} <span class="key key-wall"></span>${t('horizon.over')}` : ''} · ${t(queue ? 'horizon.help_queue' : 'horizon.help')}</p>`
                }
                ${data.until !== null && html`<p class="dim">${t('horizon.counted_until', { time: instant(data.until) })}</p>`}
            `;
        }}<//>
    `;
}

/** @param {number} ms @param {number} reach */
function label(ms, reach) {
    const text = instant(ms);
    if (reach <= 86_400_000) return text.slice(11, 16);
    return reach <= 31_536_000_000 ? text.slice(5, 10) : text.slice(0, 7);
}
