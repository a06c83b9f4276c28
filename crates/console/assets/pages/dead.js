/** Dead tasks: by the reason of their failure first, since one cause has killed many. */

import { html, useEffect, useState } from '../vendor/preact.js';
import { number, t } from '../i18n/index.js';
import * as routes from '../api/routes.js';
import { groupsOf, isIn, redriveMany } from '../logic/failures.js';
import { href, setQuery } from '../state/location.js';
import { useLive } from '../state/live.js';
import { may } from '../state/session.js';
import { Empty, Failure, Loaded, QueueTabs, TaskLink, Time } from '../ui/parts.js';
import { Pager, Table } from '../ui/table.js';
import { Confirm, ended } from '../ui/dialog.js';

/** The newest tasks that groups are made of, where the browser makes them. */
const WINDOW = 10_000;
const PAGE = 1000;
/** A list shows this number of tasks at first. */
const SHOWN = 100;

/** @param {any} task */
const lastFailure = (task) => task.failures?.[task.failures.length - 1];

/** @param {{queue: string, group: import('../logic/failures.js').Group, onRedrive: () => void, onCancel: () => void}} props */
const GroupCard = ({ queue, group, onRedrive, onCancel }) => html`
    <article class="group">
        <div class="group-head">
            <strong class="count">${number(group.count)}</strong>
            <div>
                <h2>${t(`reason.${group.reason}`)}${group.how ? html` · ${t(`how.${group.how}`)}` : ''}</h2>
                ${group.failure ? html`<pre class="reason">${group.failure}</pre>` : html`<p class="dim">${t('dead.no_text')}</p>`}
            </div>
        </div>
        <p class="dim">${t('dead.first')} <${Time} ms=${Date.parse(group.first)} />, ${t('dead.last')} <${Time} ms=${Date.parse(group.last)} /></p>
        <ul class="examples">${group.examples.map((example) => html`<li><${TaskLink} queue=${queue} key_=${example.key} />${example.text && html` <span class="dim cut">${example.text}</span>`}</li>`)}</ul>
        <div class="buttons">
            <a class="button" href=${href('dead', { queue }, { view: 'list', group: group.id })}>${t('dead.list_group')}</a>
            ${may('admin') && routes.HAS.deadGroups === routes.HAS.deadFilter && html`<button type="button" class="primary" onClick=${onRedrive}>${t('dead.redrive_group')}</button>`}
            ${may('produce') && routes.HAS.deadFilter && html`<button type="button" class="danger" onClick=${onCancel}>${t('dead.cancel_group')}</button>`}
        </div>
    </article>
`;

/** @param {{queue: string, tasks: any[], onRedrive: (task: any) => void}} props */
const DeadTable = ({ queue, tasks, onRedrive }) => html`
    <${Table} caption=${t('dead.title')} rows=${tasks} rowKey=${(/** @type {any} */ task) => task.id} columns=${[
        {
            key: 'key',
            label: t('task.key'),
            head: true,
            cell: (/** @type {any} */ task) => html`<${TaskLink} queue=${queue} key_=${task.key} />`,
        },
        { key: 'dead_at', label: t('task.dead_at'), cell: (/** @type {any} */ task) => html`<${Time} ms=${Date.parse(task.dead_at)} />` },
        { key: 'reason', label: t('task.reason'), cell: (/** @type {any} */ task) => t(`reason.${task.reason}`) },
        {
            key: 'failure',
            label: t('dead.failure'),
            cell: (/** @type {any} */ task) =>
                html`<span class="cut">${lastFailure(task)?.reason ?? (lastFailure(task) ? t(`how.${lastFailure(task).how}`) : '–')}</span>`,
        },
        { key: 'attempt', label: t('task.attempt'), numeric: true, cell: (/** @type {any} */ task) => number(task.attempt) },
        ...(may('admin')
            ? [
                  {
                      key: 'do',
                      label: t('task.do'),
                      cell: (/** @type {any} */ task) =>
                          html`<button type="button" class="quiet" aria-label=${t('dead.redrive_one', { key: task.key })} onClick=${() => onRedrive(task)}>${t('action.redrive')}</button>`,
                  },
              ]
            : []),
    ]} />
`;

/** @param {{queue: string, query: Record<string, string>}} props */
export function Dead({ queue, query }) {
    const pages = Math.max(1, Math.min(WINDOW / PAGE, Number(query.pages) || 1));
    const live = useLive(
        async (signal) => {
            const counts = await routes.queue(queue, signal);
            if (routes.HAS.deadGroups) {
                const [groups, page] = await Promise.all([
                    routes.deadGroups(queue, signal),
                    routes.dead(
                        queue,
                        { limit: String(SHOWN), cursor: query.cursor ?? '', group_id: query.group ?? '', payloads: 'false' },
                        signal,
                    ),
                ]);
                return {
                    dead: counts.dead,
                    groups: groups.groups,
                    window: groups.looked_at,
                    part: groups.window === 'part',
                    tasks: page.tasks,
                    more: page.next_cursor,
                };
            }
            const tasks = [];
            let cursor = '';
            for (let i = 0; i < pages; i += 1) {
                const page = await routes.dead(queue, { limit: String(PAGE), cursor }, signal);
                tasks.push(...page.tasks);
                cursor = page.next_cursor ?? '';
                if (!cursor) break;
            }
            return { dead: counts.dead, groups: groupsOf(tasks), window: tasks.length, tasks, more: cursor || null };
        },
        [queue, pages, query.cursor ?? '', query.group ?? ''],
    );
    const [opened, setOpen] = useState(/** @type {{what: string, of: string, group?: any, ids?: number[]} | null} */ (null));
    const [error, setError] = useState(/** @type {any} */ (null));
    const close = () => setOpen(null);
    const at = JSON.stringify(query);
    const open = opened?.of === at ? opened : null;
    useEffect(close, [at]);
    const list = query.view === 'list';
    const one = (/** @type {any} */ task) =>
        routes.redrive(queue, { id: task.id }).then(() => {
            setError(null);
            live.reload();
        }, setError);
    const idsOf = (/** @type {any} */ group) =>
        live.data?.tasks.filter((/** @type {any} */ task) => isIn(task, group.id)).map((/** @type {any} */ task) => task.id) ?? [];
    const calls = {
        redrive: (/** @type {any} */ body) => routes.redrive(queue, body),
        list: async (/** @type {number} */ limit) =>
            (await routes.dead(queue, { limit: String(limit) }, undefined)).tasks.map((/** @type {any} */ task) => task.id),
    };
    // The list may be loaded again below a dialog, which counts and changes what was there when it opened.
    const ask = (/** @type {string} */ what, /** @type {any} */ group = undefined) =>
        setOpen({ what, of: at, group, ids: group && !routes.HAS.deadFilter ? idsOf(group) : [] });
    return html`
        <h1 tabindex="-1"><span class="name">${queue}</span> · ${t('dead.title')}</h1>
        <${QueueTabs} queue=${queue} page="dead" />
        ${error && html`<${Failure} error=${error} />`}
        <${Loaded} live=${live}>${(/** @type {any} */ data) => {
            if (data.dead === 0 && data.tasks.length === 0) return html`<${Empty} title=${t('dead.none')} text=${t('dead.none_text')} />`;
            const chosen =
                query.group && !routes.HAS.deadGroups
                    ? data.tasks.filter((/** @type {any} */ task) => isIn(task, query.group))
                    : data.tasks;
            const shown = Number(query.shown) || SHOWN;
            return html`
                <div class="actions">
                    <a class="button" aria-current=${list ? undefined : 'page'} href=${href('dead', { queue }, { pages: query.pages })}>${t('dead.groups')}</a>
                    <a class="button" aria-current=${list ? 'page' : undefined} href=${href('dead', { queue }, { view: 'list', pages: query.pages })}>${t('dead.list')}</a>
                    ${may('admin') && html`<button type="button" class="primary" onClick=${() => ask('redrive_all')}>${t('dead.redrive_all')}</button>`}
                    ${may('produce') && html`<button type="button" class="danger" onClick=${() => ask('cancel_all')}>${t('dead.cancel_all')}</button>`}
                    <button type="button" class="quiet" onClick=${live.reload}>${t('action.reload')}</button>
                </div>
                <p class="dim">${data.window >= data.dead ? t('dead.window_all', { n: data.dead }) : t(data.part ? 'dead.window_part' : routes.HAS.deadGroups ? 'dead.window_newest' : 'dead.window', { n: data.window, all: data.dead })}
                    ${!routes.HAS.deadGroups && data.more && pages < WINDOW / PAGE && html` <button type="button" onClick=${() => setQuery({ pages: pages + 1 })}>${t('search.on')}</button>`}</p>
                ${
                    list
                        ? html`
                        ${query.group && html`<p>${t('dead.of_group', { n: data.groups.find((/** @type {any} */ group) => group.id === query.group)?.count ?? chosen.length })} <a href=${href('dead', { queue }, { view: 'list' })}>${t('search.clear')}</a></p>`}
                        <${DeadTable} queue=${queue} tasks=${chosen.slice(0, shown)} onRedrive=${one} />
                        ${routes.HAS.deadGroups && html`<${Pager} first=${!query.cursor} more=${data.more !== null} onFirst=${() => setQuery({ cursor: '' }, false)} onNext=${() => setQuery({ cursor: data.more }, false)} text=${t('page.tasks', { n: data.tasks.length })} />`}
                        ${chosen.length > shown && html`<div class="pager"><button type="button" onClick=${() => setQuery({ shown: shown + SHOWN })}>${t('page.more')}</button></div>`}`
                        : html`<div class="groups">${data.groups.map(
                              (/** @type {any} */ group) => html`
                        <${GroupCard} key=${group.id} queue=${queue} group=${group} onRedrive=${() => ask('redrive', group)} onCancel=${() => ask('cancel', group)} />`,
                          )}</div>`
                }
            `;
        }}<//>
        ${
            open?.what === 'redrive' &&
            html`<${Confirm} title=${t('dead.redrive_group')} text=${html`<p>${t('dead.redrive_text')}</p><pre class="reason">${open.group.failure}</pre>`} action=${t('action.redrive')} queue=${queue} onClose=${close}
            count=${async () => (routes.HAS.deadFilter ? routes.redrive(queue, { filter: { group_id: open.group.id }, dry_run: true }) : { matched: open.ids?.length ?? 0 })}
            run=${(/** @type {any} */ { stopped }) =>
                routes.HAS.deadFilter
                    ? routes
                          .redrive(queue, { filter: { group_id: open.group.id }, dry_run: false })
                          .then((job) => ended(job, () => {}, stopped))
                    : redriveMany(calls, { ids: open.ids ?? [], stopped })}
            done=${(/** @type {any} */ answer) => t('dead.redriven', { n: answer.redriven ?? answer.done, matched: answer.matched })} onDone=${live.reload} />`
        }
        ${
            open?.what === 'redrive_all' &&
            html`<${Confirm} title=${t('dead.redrive_all')} text=${html`<p>${t('dead.redrive_text')}</p>`} action=${t('action.redrive')} queue=${queue} onClose=${close}
            count=${async () => (routes.HAS.deadFilter ? routes.redrive(queue, { filter: {}, dry_run: true }) : { matched: (await routes.queue(queue, undefined)).dead })}
            run=${(/** @type {any} */ { matched, stopped }) => (routes.HAS.deadFilter ? routes.redrive(queue, { filter: {}, dry_run: false }) : redriveMany(calls, { most: matched, stopped }))}
            done=${(/** @type {any} */ answer) => t('dead.redriven', { n: answer.redriven ?? answer.done, matched: answer.matched })} onDone=${live.reload} />`
        }
        ${
            open?.what === 'cancel_all' &&
            html`<${Confirm} title=${t('dead.cancel_all')} text=${html`<p>${t('dead.cancel_text')}</p>`} action=${t('action.cancel')} queue=${queue} onClose=${close}
            count=${() => routes.bulkCancel(queue, { filter: { state: 'dead' }, dry_run: true, revoke: false })}
            run=${() => routes.bulkCancel(queue, { filter: { state: 'dead' }, dry_run: false, revoke: false })}
            done=${(/** @type {any} */ answer) => t('cancel.done', { n: answer.cancelled, matched: answer.matched })} onDone=${live.reload} />`
        }
        ${
            open?.what === 'cancel' &&
            html`<${Confirm} title=${t('dead.cancel_group')} text=${html`<p>${t('dead.cancel_text')}</p><pre class="reason">${open.group.failure}</pre>`} action=${t('action.cancel')} queue=${queue} onClose=${close}
            count=${() => routes.bulkCancel(queue, { filter: { state: 'dead', group_id: open.group.id }, dry_run: true, revoke: false })}
            run=${() => routes.bulkCancel(queue, { filter: { state: 'dead', group_id: open.group.id }, dry_run: false, revoke: false })}
            done=${(/** @type {any} */ answer) => t('cancel.done', { n: answer.cancelled, matched: answer.matched })} onDone=${live.reload} />`
        }
    `;
}
