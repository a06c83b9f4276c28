/** The schedules of all queues. */

import { html, useState } from '../vendor/preact.js';
import { number, t } from '../i18n/index.js';
import * as routes from '../api/routes.js';
import { go, href, setQuery } from '../state/location.js';
import { useLive } from '../state/live.js';
import { may } from '../state/session.js';
import { Chip, Empty, Field, Loaded, QueueLink, Time } from '../ui/parts.js';
import { Dialog } from '../ui/dialog.js';
import { Pager, Table } from '../ui/table.js';

/** The rule of a schedule in one line. @param {any} schedule */
export const ruleOf = (schedule) =>
    schedule.cron
        ? `${schedule.cron} ${schedule.tz ?? 'UTC'}`
        : schedule.every
          ? t('schedule.every_rule', { length: schedule.every })
          : t('schedule.fixed_rule', { length: schedule.fixed_delay ?? '' });

/** The next instant of a schedule. One that counts from the end of its task has none while the task is live. @param {any} schedule */
export const nextOf = (schedule) =>
    schedule.next_at
        ? html`<${Time} ms=${Date.parse(schedule.next_at)} />`
        : t(schedule.fixed_delay && !(schedule.made >= schedule.count) ? 'schedule.next_after' : 'schedule.never');

/** @param {{onClose: () => void}} props */
function NewSchedule({ onClose }) {
    const [queue, setQueue] = useState('');
    const [name, setName] = useState('');
    return html`<${Dialog} title=${t('schedule.new')} onClose=${onClose}>
        <form onSubmit=${(/** @type {Event} */ e) => {
            e.preventDefault();
            if (queue && name) {
                onClose();
                go(href('schedule', { queue, name }, { new: '1' }));
            }
        }}>
            <${Field} id="new-queue" label=${t('queue.word')}><input id="new-queue" data-first autocomplete="off" placeholder="reports" value=${queue} onInput=${(/** @type {any} */ e) => setQueue(e.target.value)} /><//>
            <${Field} id="new-name" label=${t('schedule.name')}><input id="new-name" autocomplete="off" placeholder="nightly" value=${name} onInput=${(/** @type {any} */ e) => setName(e.target.value)} /><//>
            <div class="buttons"><button type="button" onClick=${onClose}>${t('action.keep')}</button><button type="submit" class="primary" disabled=${!queue || !name}>${t('action.continue')}</button></div>
        </form>
    <//>`;
}

/** The order in which the server gives the pages: the rows of a page are sorted here. @param {string | undefined} column */
const orderOfPages = (column) => (column === 'name' || column === 'queue' ? 'name' : 'next');

/** @param {{query: Record<string, string>}} props */
export function Schedules({ query }) {
    const [prefix, name] = [query.prefix ?? '', query.name ?? ''];
    const live = useLive(
        (signal) =>
            routes.schedules(
                {
                    limit: '500',
                    cursor: query.cursor ?? '',
                    prefix,
                    name_contains: name,
                    sort: orderOfPages(query.sort),
                },
                signal,
            ),
        [query.cursor ?? '', prefix, name, orderOfPages(query.sort)],
        10_000,
    );
    const [adding, setAdding] = useState(false);
    const columns = [
        {
            key: 'name',
            label: t('schedule.name'),
            sortable: true,
            head: true,
            cell: (/** @type {any} */ s) => html`<a class="name" href=${href('schedule', { queue: s.queue, name: s.name })}>${s.name}</a>`,
        },
        { key: 'queue', label: t('queue.word'), sortable: true, cell: (/** @type {any} */ s) => html`<${QueueLink} queue=${s.queue} />` },
        { key: 'rule', label: t('schedule.rule'), cell: (/** @type {any} */ s) => html`<code>${ruleOf(s)}</code>` },
        {
            key: 'next_at',
            label: t('schedule.next'),
            sortable: true,
            cell: nextOf,
        },
        {
            key: 'last_at',
            label: t('schedule.last'),
            sortable: true,
            cell: (/** @type {any} */ s) => (s.last_at ? html`<${Time} ms=${Date.parse(s.last_at)} />` : '–'),
        },
        { key: 'made', label: t('schedule.made'), numeric: true, sortable: true, cell: (/** @type {any} */ s) => number(s.made) },
        { key: 'skipped', label: t('schedule.skipped'), numeric: true, sortable: true, cell: (/** @type {any} */ s) => number(s.skipped) },
        {
            key: 'overlap',
            label: t('schedule.overlap'),
            cell: (/** @type {any} */ s) =>
                html`<span title=${t(`overlap.${s.overlap}`)}><${Chip} kind="plain">${s.overlap}<//>${s.waiting > 0 && html` <small>${t('schedule.waiting', { n: s.waiting })}</small>`}</span>`,
        },
    ];
    const key = query.sort ?? 'next_at';
    const down = query.order === 'down';
    const order = (/** @type {any} */ a, /** @type {any} */ b) => {
        // A schedule that never runs again is last.
        const [x, y] = [a[key] ?? '￿', b[key] ?? '￿'];
        return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
    };
    return html`
        <div class="bar-of-fields">
            <h1 tabindex="-1">${t('schedules.title')}</h1>
            <input type="search" data-search aria-label=${t('schedules.filter')} placeholder=${t('schedules.filter')} value=${name} onInput=${(/** @type {any} */ e) => setQuery({ name: e.target.value, cursor: '' })} />
            <input type="search" aria-label=${t('schedules.prefix')} placeholder=${t('schedules.prefix')} value=${prefix} onInput=${(/** @type {any} */ e) => setQuery({ prefix: e.target.value, cursor: '' })} />
            ${may('produce') && html`<button type="button" class="primary" onClick=${() => setAdding(true)}>${t('schedule.new')}</button>`}
        </div>
        <${Loaded} live=${live}>${(/** @type {any} */ data) => {
            const rows = data.schedules
                .filter((/** @type {any} */ s) => s.name.includes(name) && s.queue.startsWith(prefix))
                .sort(order);
            if (data.schedules.length === 0 && !query.cursor && !name && !prefix)
                return html`<${Empty} title=${t('schedules.none')} text=${t('schedules.none_text')} command=${routes.curl('PUT', ['v1', 'queues', 'reports', 'schedules', 'nightly'], '{"cron":"30 2 * * *","tz":"Europe/Berlin"}')} />`;
            return html`
                ${rows.length === 0 ? html`<${Empty} title=${t('schedules.none_of', { name: name || prefix })} />` : html`<${Table} caption=${t('schedules.title')} columns=${columns} rows=${rows} rowKey=${(/** @type {any} */ s) => `${s.queue} ${s.name}`} sort=${{ key, down }} onSort=${(/** @type {string} */ k) => setQuery({ sort: k, order: k === key && !down ? 'down' : '', ...(orderOfPages(k) === orderOfPages(key) ? {} : { cursor: '' }) })} />`}
                ${(query.cursor || data.next_cursor) && html`<${Pager} first=${!query.cursor} more=${data.next_cursor !== null} onFirst=${() => setQuery({ cursor: '' }, false)} onNext=${() => setQuery({ cursor: data.next_cursor }, false)} text=${t('schedules.page', { n: data.schedules.length })} />`}
            `;
        }}<//>
        ${adding && html`<${NewSchedule} onClose=${() => setAdding(false)} />`}
    `;
}
