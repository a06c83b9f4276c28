/** The overview: is the server well, and which queue is not. */

import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { compact, length, number, rate, size, t } from '../i18n/index.js';
import * as routes from '../api/routes.js';
import { ageAt, percentile, rates, statsOf, streamedStats } from '../logic/events.js';
import { href, setQuery } from '../state/location.js';
import { useChanged, useLive, useStore, useStream } from '../state/live.js';
import { server } from '../state/session.js';
import { Empty, Loaded, QueueChips, QueueLink, StateChip, TaskLink, Tile, Time } from '../ui/parts.js';
import { Table } from '../ui/table.js';
import { Sparkline } from '../ui/chart.js';

const PAGE = 100;
/** More queues than this are asked for every 10 s, and not every 2 s. */
const QUEUES_QUICK = 1000;
const HISTORY = 60;
const HISTORY_MS = 300_000;

/** The number of ready tasks of each queue at the last 60 looks. @type {Map<string, number[]>} */
const readyHistory = new Map();
/** @type {import('../logic/events.js').Stats[]} */
const statsHistory = [];

/** @param {any[]} rows */
function remember(rows) {
    const seen = new Set();
    for (const row of rows) {
        seen.add(row.queue);
        const past = readyHistory.get(row.queue) ?? [];
        past.push(row.ready);
        if (past.length > HISTORY) past.shift();
        readyHistory.set(row.queue, past);
    }
    for (const name of readyHistory.keys()) if (!seen.has(name)) readyHistory.delete(name);
}

/** @param {import('../logic/events.js').Stats} stats */
function rememberStats(stats) {
    const last = statsHistory[statsHistory.length - 1];
    // The counters begin again at zero after a restart.
    if (last && stats.counters.put < last.counters.put) statsHistory.length = 0;
    statsHistory.push(stats);
    while (stats.at - statsHistory[0].at > HISTORY_MS) statsHistory.shift();
}

/** Whether the token may not read the metrics, which is asked once. */
let metricsRefused = false;

/** @param {AbortSignal} signal */
async function polledStats(signal) {
    if (metricsRefused) return null;
    try {
        return statsOf(await routes.metrics(signal), Date.now());
    } catch (error) {
        const { status } = /** @type {any} */ (error);
        if (status !== 403 && status !== 404) throw error;
        metricsRefused = true;
        return null;
    }
}

/**
 * The queues whose names begin so, and the state of the whole server: from the stream of events, or asked for.
 * @param {string} prefix
 * @returns {{live: import('../state/live.js').Live<{queues: any[], more: boolean}>, stats: import('../logic/events.js').Stats | null}}
 */
function useServer(prefix) {
    const [stats, setStats] = useState(/** @type {import('../logic/events.js').Stats | null} */ (null));
    const [slow, setSlow] = useState(false);
    const rows = useRef(/** @type {{of: string, by: Map<string, any>}} */ ({ of: prefix, by: new Map() }));
    const take = (/** @type {import('../logic/events.js').Stats | null} */ next) => {
        if (next) rememberStats(next);
        setStats(next);
    };
    const streams = useStream(
        (onEvent, onProblem) => routes.events({ topics: 'stats,queues', prefix }, onEvent, onProblem),
        [prefix],
        (event, data) => {
            if (event === 'stats') take(streamedStats(data, Date.now()));
            if (event !== 'queues') return;
            if (data.whole || rows.current.of !== prefix) rows.current = { of: prefix, by: new Map() };
            const { by } = rows.current;
            for (const row of data.queues) by.set(row.queue, row);
            for (const name of data.removed) by.delete(name);
            const queues = [...by.values()];
            remember(queues);
            live.replace({ queues, more: data.more });
        },
    );
    const live = useLive(
        async (signal) => {
            const answer = await routes.allQueues(prefix, signal);
            remember(answer.queues);
            setSlow(answer.queues.length > QUEUES_QUICK);
            return answer;
        },
        [prefix],
        streams ? null : slow ? 10_000 : 2000,
    );
    const asked = useLive(polledStats, [], streams ? null : 5000);
    useEffect(() => {
        if (asked.data) take(asked.data);
    }, [asked.data]);
    return { live, stats };
}

/** @param {{rows: any[], stats: import('../logic/events.js').Stats | null, more: boolean, prefix: string}} props */
function Tiles({ rows, stats, more, prefix }) {
    const state = useStore(server);
    const by = (/** @type {string} */ sort) => href('overview', {}, { prefix, sort });
    const totals = stats?.totals;
    const sum = (/** @type {string} */ name) => totals?.[name] ?? rows.reduce((all, row) => all + row[name], 0);
    const note = more && !totals ? t('overview.of_first', { n: rows.length }) : '';
    const minute = statsHistory.find((s) => stats && stats.at - s.at <= 65_000);
    const bound = (/** @type {'lateness' | 'commit'} */ name, /** @type {number} */ share) => {
        if (!stats || !minute || minute === stats) return '–';
        const ms = percentile(minute[name] ?? [], stats[name] ?? [], share);
        return ms === null
            ? '–'
            : ms === Infinity
              ? t('overview.beyond')
              : ms === 0
                ? '0 ms'
                : `≤ ${ms < 1000 ? `${number(ms, 2)} ms` : length(ms)}`;
    };
    return html`
        <dl class="tiles">
            <${Tile} label=${t('state.ready')} value=${compact(sum('ready'))} note=${note} link=${by('ready')} />
            <${Tile} label=${t('state.scheduled')} value=${compact(sum('scheduled'))} note=${note} link=${href('horizon')} />
            <${Tile} label=${t('state.leased')} value=${compact(sum('leased'))} note=${note} link=${href('leases')} />
            <${Tile} label=${t('state.dead')} value=${compact(sum('dead'))} note=${note} link=${by('dead')} tone=${sum('dead') > 0 ? 'bad' : ''} />
            ${
                stats &&
                html`
                <${Tile} label=${t('overview.oldest')} value=${stats.oldestDueMs ? length(stats.oldestDueMs) : '–'} link=${by('age')} tone=${(stats.oldestDueMs ?? 0) > 60_000 ? 'warn' : ''} />
                <${Tile} label=${t('overview.lateness')} value=${bound('lateness', 0.5)} note=${t('overview.p99', { value: bound('lateness', 0.99) })} />
                ${stats.commit && html`<${Tile} label=${t('overview.commit')} value=${bound('commit', 0.99)} note=${state ? t(`durability.${state.durability}`) : ''} />`}
                ${stats.roomBytes !== null && html`<${Tile} label=${t('overview.room')} value=${size(stats.roomBytes)} />`}
            `
            }
        </dl>
    `;
}

function Rates() {
    const known = rates(statsHistory);
    const last = statsHistory[statsHistory.length - 1];
    if (!last) return null;
    const span = last.at - statsHistory[0].at;
    return html`
        <h2>${t('overview.rates')} <small class="dim">${known ? t('overview.rates_over', { length: length(span) }) : t('overview.rates_wait')}</small></h2>
        <dl class="tiles tiles-small">
            ${['put', 'fired', 'delivered', 'acked', 'nacked', 'cancelled', 'dead'].map((word) => html`<${Tile} label=${t(`rate.${word}`)} value=${known ? rate(known[word]) : '–'} />`)}
        </dl>
    `;
}

/**
 * @param {any[]} rows
 * @param {string} key
 * @param {boolean} down
 * @param {(row: any) => number} ageOf
 */
function sorted(rows, key, down, ageOf) {
    const value = (/** @type {any} */ row) => (key === 'age' ? ageOf(row) : row[key]);
    const compare = (/** @type {any} */ a, /** @type {any} */ b) => {
        if (key === 'worst') return ageOf(b) - ageOf(a) || b.ready - a.ready || b.dead - a.dead;
        const [x, y] = [value(a), value(b)];
        return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
    };
    return [...rows].sort((a, b) => compare(a, b) || (a.queue < b.queue ? -1 : 1));
}

/** The order of the queues changes at most this often, and not under the reader's hand. */
const ORDER_MS = 10_000;

/**
 * The rows in an order that stands still for a while, and while the pointer or the focus is in their table.
 * @param {any[]} rows
 * @param {(rows: any[]) => any[]} sort
 * @param {string} of What the order depends on.
 */
function useSteady(rows, sort, of) {
    const kept = useRef({ of: '', at: 0, names: /** @type {string[]} */ ([]) });
    const box = useRef(/** @type {HTMLElement | null} */ (null));
    const held = box.current?.matches(':hover, :focus-within') ?? false;
    if (kept.current.of !== of || (!held && Date.now() - kept.current.at >= ORDER_MS))
        kept.current = { of, at: Date.now(), names: sort(rows).map((row) => row.queue) };
    const left = new Map(rows.map((row) => [row.queue, row]));
    const steady = [];
    for (const name of kept.current.names) {
        const row = left.get(name);
        if (row) steady.push(row);
        left.delete(name);
    }
    return { box, rows: [...steady, ...sort([...left.values()])] };
}

/** The field that finds a key in all queues. @param {{wanted: string}} props */
function Find({ wanted }) {
    const [typed, setTyped] = useState(wanted);
    useChanged(wanted, setTyped);
    return html`
        <form class="inline" role="search" onSubmit=${(/** @type {Event} */ e) => {
            e.preventDefault();
            setQuery({ key: typed.trim() }, false);
        }}>
            <input type="search" aria-label=${t('overview.find')} placeholder=${t('overview.find')} value=${typed} onInput=${(/** @type {any} */ e) => setTyped(e.target.value)} />
            <button type="submit">${t('search.go')}</button>
        </form>
    `;
}

/** The tasks of a key in all queues. @param {{wanted: string}} props */
function Found({ wanted }) {
    const live = useLive((signal) => routes.tasksOfKey(wanted, signal), [wanted]);
    return html`
        <div class="bar-of-fields">
            <h2>${t('overview.found', { key: wanted })}</h2>
            <button type="button" onClick=${() => setQuery({ key: '' }, false)}>${t('action.close')}</button>
        </div>
        <${Loaded} live=${live}>${(/** @type {any} */ data) => html`
            ${
                data.tasks.length === 0
                    ? html`<${Empty} title=${t('search.none')} />`
                    : html`<${Table} caption=${t('overview.find')} rows=${data.tasks} rowKey=${(/** @type {any} */ task) => `${task.queue} ${task.id}`} columns=${[
                          {
                              key: 'key',
                              label: t('task.key'),
                              head: true,
                              cell: (/** @type {any} */ task) => html`<${TaskLink} queue=${task.queue} key_=${task.key} />`,
                          },
                          {
                              key: 'queue',
                              label: t('queue.word'),
                              cell: (/** @type {any} */ task) => html`<${QueueLink} queue=${task.queue} />`,
                          },
                          {
                              key: 'state',
                              label: t('task.state'),
                              cell: (/** @type {any} */ task) => html`<${StateChip} state=${task.state} />`,
                          },
                          {
                              key: 'due',
                              label: t('task.due'),
                              cell: (/** @type {any} */ task) => html`<${Time} ms=${Date.parse(task.due_at)} both />`,
                          },
                      ]} />`
            }
            ${data.truncated && html`<p class="dim">${t('overview.find_truncated')}</p>`}`}<//>
    `;
}

/** @param {{query: Record<string, string>}} props */
export function Overview({ query }) {
    const prefix = query.prefix ?? '';
    const { live: asked, stats } = useServer(prefix);
    // Until the queues of another filter come, those that are there are filtered: the field that the user types into has to stay.
    const last = useRef(asked.data);
    if (asked.data !== null) last.current = asked.data;
    const kept = last.current && { ...last.current, queues: last.current.queues.filter((row) => row.queue.startsWith(prefix)) };
    const live = { ...asked, data: asked.data ?? (asked.error ? null : kept) };
    const [typed, setTyped] = useState(prefix);
    // The filter of the address is shown, unless it is what was typed a moment ago: the letters behind it would be lost.
    const sent = useRef(prefix);
    useEffect(() => {
        if (prefix !== sent.current) setTyped(prefix);
        sent.current = prefix;
    }, [prefix]);
    const timer = useRef(0);
    const filter = (/** @type {string} */ text) => {
        setTyped(text);
        window.clearTimeout(timer.current);
        timer.current = window.setTimeout(() => {
            sent.current = text;
            setQuery({ prefix: text, page: '' });
        }, 250);
    };
    useEffect(() => () => window.clearTimeout(timer.current), []);
    const key = query.sort ?? 'worst';
    const down = query.order !== 'up';
    const sort = (/** @type {string} */ name) => setQuery({ sort: name, order: name === key && down ? 'up' : '', page: '' });
    // An unchanged row does not come again, so its age is reckoned at the newest time that the server has named.
    const ageOf = (/** @type {any} */ row) =>
        (stats?.now && row.oldest_due ? ageAt(row.oldest_due, stats.now) : stats?.oldestByQueue[row.queue]) ?? 0;
    const steady = useSteady(
        live.data?.queues ?? [],
        (rows) => sorted(rows, key, down, ageOf),
        JSON.stringify([prefix, key, down, live.data === null]),
    );
    const still = window.matchMedia('(prefers-reduced-motion: reduce)').matches;
    const count = (/** @type {string} */ name) => ({
        key: name,
        label: t(`state.${name}`),
        numeric: true,
        sortable: true,
        cell: (/** @type {any} */ row) => number(row[name]),
    });
    const columns = [
        {
            key: 'queue',
            label: t('queue.word'),
            sortable: true,
            head: true,
            cell: (/** @type {any} */ row) => html`<${QueueLink} queue=${row.queue} /> <${QueueChips} queue=${row} />`,
        },
        count('ready'),
        count('scheduled'),
        count('leased'),
        {
            ...count('dead'),
            cell: (/** @type {any} */ row) =>
                row.dead > 0 ? html`<a class="bad" href=${href('dead', { queue: row.queue })}>${number(row.dead)}</a>` : '0',
        },
        ...(stats
            ? [
                  {
                      key: 'age',
                      label: t('overview.oldest'),
                      numeric: true,
                      sortable: true,
                      cell: (/** @type {any} */ row) => (ageOf(row) > 0 ? length(ageOf(row)) : '–'),
                  },
              ]
            : []),
        ...(still
            ? []
            : [
                  {
                      key: 'spark',
                      label: t('overview.trend'),
                      cell: (/** @type {any} */ row) =>
                          html`<${Sparkline} values=${readyHistory.get(row.queue) ?? []} label=${t('overview.trend_of', { queue: row.queue })} />`,
                  },
              ]),
    ];
    return html`
        <div class="bar-of-fields">
            <h1 tabindex="-1">${t('overview.title')}</h1>
            <${Find} wanted=${query.key ?? ''} />
        </div>
        ${query.key && html`<${Found} wanted=${query.key} />`}
        <${Loaded} live=${live}>${(/** @type {any} */ data) => {
            const { rows } = steady;
            const pages = Math.max(1, Math.ceil(rows.length / PAGE));
            const page = Math.min(pages, Math.max(1, Number(query.page) || 1));
            return html`
                ${(prefix !== '' || rows.length > 0) && html`<${Tiles} rows=${rows} stats=${stats} more=${data.more} prefix=${prefix} />`}
                ${rows.length > 0 && html`<${Rates} />`}
                <div class="bar-of-fields">
                    <h2>${t('overview.queues')} <small class="dim">${data.more ? t('overview.first', { n: rows.length }) : t('overview.count', { n: rows.length })}</small></h2>
                    ${(prefix !== '' || rows.length > 0) && html`<input type="search" aria-label=${t('overview.prefix')} placeholder=${t('overview.prefix')} value=${typed} data-search onInput=${(/** @type {any} */ e) => filter(e.target.value)} />`}
                </div>
                ${
                    rows.length === 0
                        ? prefix !== ''
                            ? html`<${Empty} title=${t('overview.none_of_prefix', { prefix })} />`
                            : html`<${Empty} title=${t('overview.none')} text=${t('overview.none_text')}
                            command=${routes.curl('PUT', ['v1', 'queues', 'orders', 'tasks', 'order:1'], '{"delay":"1m","payload":{"order":1}}')} />`
                        : html`<div ref=${steady.box}><${Table} caption=${t('overview.queues')} columns=${columns} rows=${rows.slice((page - 1) * PAGE, page * PAGE)} rowKey=${(/** @type {any} */ row) => row.queue}
                        sort=${key === 'worst' ? undefined : { key, down }} onSort=${sort} /></div>`
                }
                ${
                    pages > 1 &&
                    html`
                    <div class="pager">
                        <span class="dim">${t('page.of', { page, pages })}</span>
                        <button type="button" disabled=${page === 1} onClick=${() => setQuery({ page: page - 1 }, false)}>${t('page.previous')}</button>
                        <button type="button" disabled=${page === pages} onClick=${() => setQuery({ page: page + 1 }, false)}>${t('page.next')}</button>
                    </div>`
                }
            `;
        }}<//>
    `;
}
