/** The search of a queue's tasks, and changes of all tasks that it finds. */

import { html, useEffect, useMemo, useState } from '../vendor/preact.js';
import { instant, number, t } from '../i18n/index.js';
import * as routes from '../api/routes.js';
import { FIELDS, RANGES, STATES, bulkFilter, moveOf, parameters, withZone } from '../logic/filter.js';
import { go, href, setQuery } from '../state/location.js';
import { useChanged, useLive } from '../state/live.js';
import { may, now, zone } from '../state/session.js';
import { Empty, Field, Loaded, Loading, QueueTabs, StateChip, TaskLink, Time } from '../ui/parts.js';
import { Pager, Table } from '../ui/table.js';
import { Confirm } from '../ui/dialog.js';

const LIMITS = ['50', '100', '500'];

/** @param {{queue: string, query: Record<string, string>, wrong: string[]}} props */
function Form({ queue, query, wrong }) {
    const [fields, setFields] = useState(query);
    const shown = JSON.stringify(FIELDS.map((name) => query[name] ?? ''));
    useChanged(shown, () => setFields(query));
    const [key, setKey] = useState(query.key ?? '');
    const submit = (/** @type {Event} */ event) => {
        event.preventDefault();
        if (key !== '') {
            // A key names one task, so its page is the answer.
            go(href('task', { queue, key }));
            return;
        }
        setQuery(
            {
                ...Object.fromEntries(
                    FIELDS.map((name) => [name, name.startsWith('due_') ? withZone(fields[name] ?? '', zone.get()) : (fields[name] ?? '')]),
                ),
                cursor: '',
                looked: '',
            },
            false,
        );
    };
    const change = (/** @type {string} */ name, /** @type {string} */ value) => setFields({ ...fields, [name]: value });
    const range = RANGES.find(([, from, to]) => (fields.due_from ?? '') === from && (fields.due_to ?? '') === to)?.[0] ?? '';
    const text = (/** @type {string} */ name, /** @type {string} */ placeholder = '') => html`
        <${Field} id=${`search-${name}`} label=${t(`search.${name}`)} wrong=${wrong.includes(name) ? t('search.wrong_due') : null}>
            <input id=${`search-${name}`} autocomplete="off" spellcheck=${false} placeholder=${placeholder} value=${fields[name] ?? ''} onInput=${(/** @type {any} */ e) => change(name, e.target.value)} />
        <//>`;
    return html`
        <form class="search" role="search" onSubmit=${submit}>
            <${Field} id="search-key" label=${t('search.key')}>
                <input id="search-key" data-search autocomplete="off" spellcheck=${false} placeholder="order:123" value=${key} onInput=${(/** @type {any} */ e) => setKey(e.target.value)} />
            <//>
            ${text('key_contains')}
            ${text('tag')}
            <${Field} id="search-state" label=${t('search.state')}>
                <select id="search-state" value=${fields.state ?? ''} onChange=${(/** @type {any} */ e) => change('state', e.target.value)}>
                    <option value="">${t('search.any_state')}</option>
                    ${STATES.map((state) => html`<option value=${state} selected=${fields.state === state}>${t(`state.${state}`)}</option>`)}
                </select>
            <//>
            ${text('group')}
            <${Field} id="search-range" label=${t('search.range')}>
                <select id="search-range" value=${range} onChange=${(/** @type {any} */ e) => {
                    const found = RANGES.find(([word]) => word === e.target.value);
                    setFields({ ...fields, due_from: found?.[1] ?? '', due_to: found?.[2] ?? '' });
                }}>
                    <option value="">${t('search.range_any')}</option>
                    ${RANGES.map(([word]) => html`<option value=${word} selected=${word === range}>${t(`search.range_${word}`)}</option>`)}
                </select>
            <//>
            ${text('due_from', '2030-01-31 09:00')}
            ${text('due_to', '+2h')}
            <div class="buttons">
                <button type="submit" class="primary">${t('search.go')}</button>
                ${
                    FIELDS.some((name) => query[name]) &&
                    html`<button type="button" onClick=${() => {
                        setKey('');
                        setQuery({ ...Object.fromEntries(FIELDS.map((name) => [name, ''])), cursor: '', looked: '' }, false);
                    }}>${t('search.clear')}</button>`
                }
            </div>
        </form>
    `;
}

/** The longest search for the rows of one page. Then its reader says whether it goes on. */
const SEARCH_MS = 5000;

/** The field for the new due time of many tasks. @param {{value: string, wrong: boolean, onChange: (text: string) => void}} props */
const MoveField = ({ value, wrong, onChange }) => html`
    <${Field} id="move-to" label=${t('move.many_to')} note=${t('move.many_note')} wrong=${wrong ? t('move.wrong') : null}>
        <input id="move-to" data-first autocomplete="off" value=${value} placeholder="+1h" onInput=${(/** @type {any} */ e) => onChange(e.target.value)} />
    <//>`;

/** @param {{queue: string, query: Record<string, string>}} props */
export function Search({ queue, query }) {
    const limit = LIMITS.includes(query.limit) ? query.limit : '50';
    const fieldKey = JSON.stringify(FIELDS.map((name) => query[name] ?? ''));
    // The instants of "next hour" stay while the pages of one search are turned.
    const { parameters: filter, wrong } = useMemo(() => parameters(query, now(), zone.get()), [fieldKey]);
    // The rows that are found while the search goes on.
    const [soFar, setSoFar] = useState(/** @type {any} */ (null));
    const whole = useLive(
        async (signal) => {
            setSoFar(null);
            if (wrong.length > 0) return null;
            const begun = performance.now();
            /** @type {any[]} */
            const tasks = [];
            let looked = 0;
            let cursor = query.cursor ?? '';
            for (;;) {
                const page = await routes.tasks(queue, { ...filter, limit: String(Number(limit) - tasks.length), cursor, payloads: 'false' }, signal);
                tasks.push(...page.tasks);
                looked += page.looked_at ?? 0;
                cursor = page.next_cursor;
                const data = { ...page, tasks: [...tasks] };
                // A page of the server ends after a short time, full or not.
                if (cursor && tasks.length < Number(limit) && performance.now() - begun < SEARCH_MS) {
                    setSoFar({ ...data, going: fieldKey });
                    continue;
                }
                if (page.looked_at === undefined) return data;
                // A scan says how far it is. The pages before are counted in the address.
                const all = await routes.queue(queue, signal);
                const of = all.scheduled + all.ready + all.leased;
                return { ...data, looked: Math.min(of, (Number(query.looked) || 0) + looked), of };
            }
        },
        [queue, fieldKey, limit, query.cursor],
    );
    const live = whole.data || soFar?.going !== fieldKey ? whole : { ...whole, data: soFar };
    const on = (/** @type {any} */ page) => {
        setQuery({ cursor: page.next_cursor, looked: page.looked ?? '' }, false);
        window.scrollTo(0, 0);
    };
    // A dialog counts and changes the tasks of the filter with which it opened, whatever the address says by then.
    const [opened, setOpen] = useState(/** @type {{what: string, of: string, filter: any, text: any} | null} */ (null));
    const open = opened?.of === fieldKey ? opened : null;
    useEffect(() => setOpen(null), [fieldKey]);
    const [target, setTarget] = useState('');
    const bulk = bulkFilter(filter, routes.FILTER_MEMBERS);
    const close = () => setOpen(null);
    const move = moveOf(target, now(), zone.get());
    const columns = (/** @type {any[]} */ tasks) => [
        {
            key: 'key',
            label: t('task.key'),
            head: true,
            cell: (/** @type {any} */ task) => html`<${TaskLink} queue=${queue} key_=${task.key} />`,
        },
        { key: 'due', label: t('task.due'), cell: (/** @type {any} */ task) => html`<${Time} ms=${Date.parse(task.due_at)} both />` },
        { key: 'state', label: t('task.state'), cell: (/** @type {any} */ task) => html`<${StateChip} state=${task.state} />` },
        { key: 'attempt', label: t('task.attempt'), numeric: true, cell: (/** @type {any} */ task) => number(task.attempt) },
        ...(tasks.some((task) => task.group)
            ? [
                  {
                      key: 'group',
                      label: t('task.group'),
                      cell: (/** @type {any} */ task) =>
                          task.group && html`<a class="name" href=${href('search', { queue }, { group: task.group })}>${task.group}</a>`,
                  },
              ]
            : []),
        {
            key: 'tags',
            label: t('task.tags'),
            cell: (/** @type {any} */ task) =>
                task.tags.length > 0 &&
                html`<span>${task.tags.map((/** @type {string} */ tag) => html`<a class="tag" href=${href('search', { queue }, { tag })}>${tag}</a> `)}</span>`,
        },
        { key: 'priority', label: t('task.priority'), numeric: true, cell: (/** @type {any} */ task) => number(task.priority) },
    ];
    const words = Object.entries(filter).map(
        ([name, value]) => `${t(`search.${name}`)} ${name.startsWith('due_') ? instant(Number(value)) : name === 'state' ? t(`state.${value}`) : value}`,
    );
    const text = html`<p>${words.length > 0 ? t('bulk.filter', { filter: words.join(', ') }) : t('bulk.all')}</p>`;
    const ask = (/** @type {string} */ what) => setOpen({ what, of: fieldKey, filter: bulk, text });
    return html`
        <h1 tabindex="-1"><span class="name">${queue}</span> · ${t('search.title')}</h1>
        <${QueueTabs} queue=${queue} page="search" />
        <${Form} queue=${queue} query=${query} wrong=${wrong} />
        ${
            wrong.length === 0 &&
            html`<${Loaded} live=${live}>${(/** @type {any} */ data) => html`
            ${data.going && html`<div class="going"><${Loading} /></div>`}
            ${
                data.tasks.length === 0 &&
                !data.next_cursor &&
                html`
                ${
                    words.length > 0 || query.cursor
                        ? html`<${Empty} title=${t('search.none')} text=${t('search.none_text')} />`
                        : html`<${Empty} title=${t('search.empty')} text=${t('search.empty_text')} command=${routes.curl('PUT', ['v1', 'queues', queue, 'tasks', 'order:1'], '{"delay":"1m"}')} />`
                }`
            }
            ${
                data.tasks.length === 0 &&
                data.next_cursor &&
                !data.going &&
                html`
                <div class="box"><p>${data.looked ? t('search.looked', { n: data.looked, of: data.of }) : t('search.looked_some')}</p>
                <button type="button" class="primary" onClick=${() => on(data)}>${t('search.on')}</button></div>`
            }
            ${
                data.tasks.length > 0 &&
                html`
                <div class="actions">
                    ${
                        may('produce') &&
                        bulk &&
                        html`<button type="button" class="danger" onClick=${() => ask('cancel')}>${t('bulk.cancel')}</button>
                    <button type="button" onClick=${() => {
                        setTarget('');
                        ask('move');
                    }}>${t('bulk.move')}</button>`
                    }
                    <button type="button" class="quiet" onClick=${live.reload}>${t('action.reload')}</button>
                    <label class="limit">${t('page.size')} <select value=${limit} onChange=${(/** @type {any} */ e) => setQuery({ limit: e.target.value, cursor: '', looked: '' })}>${LIMITS.map((n) => html`<option value=${n} selected=${n === limit}>${n}</option>`)}</select></label>
                </div>
                <${Table} caption=${t('search.title')} columns=${columns(data.tasks)} rows=${data.tasks} rowKey=${(/** @type {any} */ task) => task.id} />`
            }
            ${
                !data.going &&
                (query.cursor || (data.tasks.length > 0 && data.next_cursor)) &&
                html`
                <${Pager} first=${!query.cursor} more=${data.next_cursor !== null && data.tasks.length > 0} onFirst=${() => setQuery({ cursor: '', looked: '' }, false)} onNext=${() => on(data)}
                    next=${data.tasks.length < Number(limit) ? t('search.on') : undefined}
                    text=${`${t('page.tasks', { n: data.tasks.length })}${data.looked ? `, ${t('search.looked_page', { n: data.looked, of: data.of })}` : ''}`} />`
            }
        `}<//>`
        }
        ${
            open?.what === 'cancel' &&
            html`<${Confirm} title=${t('bulk.cancel_title', { queue })} text=${open.text} action=${t('action.cancel')} queue=${queue} offerRevoke onClose=${close}
            count=${() => routes.bulkCancel(queue, { filter: open.filter, dry_run: true, revoke: true })}
            run=${(/** @type {any} */ { revoke }) => routes.bulkCancel(queue, { filter: open.filter, dry_run: false, revoke })}
            done=${(/** @type {any} */ answer) => t('cancel.done', { n: answer.cancelled ?? answer.done, matched: answer.matched })} onDone=${live.reload} />`
        }
        ${
            open?.what === 'move' &&
            html`<${Confirm} title=${t('bulk.move_title', { queue })} action=${t('action.move')} queue=${queue} offerRevoke onClose=${close}
            text=${html`${open.text}<${MoveField} value=${target} wrong=${target !== '' && !move} onChange=${setTarget} />`}
            count=${() => routes.bulkMove(queue, { filter: open.filter, delay: '0s', dry_run: true, revoke: true })}
            run=${async (/** @type {any} */ { revoke }) => {
                if (!move) throw { status: 0, title: t('move.wrong'), detail: '', hint: '' };
                return routes.bulkMove(queue, { filter: open.filter, ...move, dry_run: false, revoke });
            }}
            done=${(/** @type {any} */ answer) => t('move.done', { n: answer.moved ?? answer.done, matched: answer.matched })} onDone=${live.reload} />`
        }
    `;
}
