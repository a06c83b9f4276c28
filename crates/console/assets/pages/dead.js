/** Dead tasks: by the reason of their failure first, since one cause has killed many. */

import { html, useEffect, useState } from '../vendor/preact.js';
import { number, t } from '../i18n/index.js';
import * as routes from '../api/routes.js';
import { href, setQuery } from '../state/location.js';
import { useChanged, useLive } from '../state/live.js';
import { may } from '../state/session.js';
import { Empty, Failure, Field, Loaded, QueueTabs, TaskLink, Time } from '../ui/parts.js';
import { Pager, Table } from '../ui/table.js';
import { Confirm } from '../ui/dialog.js';

const LIMIT = 100;
const REASONS = ['max_attempts', 'expired', 'buried', 'refused', 'template', 'too_large'];
/** The members of a filter of dead tasks. */
const MEMBERS = ['group_id', 'reason', 'failure', 'tag', 'key_contains'];

/** @param {any} task */
const lastFailure = (task) => task.failures?.[task.failures.length - 1];

/** @param {{queue: string, group: any, onRedrive: () => void, onCancel: () => void}} props */
const GroupCard = ({ queue, group, onRedrive, onCancel }) => html`
    <article class="group">
        <div class="group-head">
            <strong class="count">${number(group.count)}</strong>
            <div>
                <h2>${t(`reason.${group.reason}`)}${group.how ? html` · ${t(`how.${group.how}`)}` : ''}</h2>
                ${group.failure ? html`<pre class="reason">${group.failure}</pre>` : group.how && html`<p class="dim">${t('dead.no_text')}</p>`}
            </div>
        </div>
        <p>${t('dead.first')} <${Time} ms=${Date.parse(group.first)} both /><br />${t('dead.last')} <${Time} ms=${Date.parse(group.last)} both /></p>
        <ul class="examples">${group.examples.map((/** @type {any} */ example) => html`<li><${TaskLink} queue=${queue} key_=${example.key} />${example.text && html` <span class="dim cut">${example.text}</span>`}</li>`)}</ul>
        <div class="buttons">
            <a class="button" href=${href('dead', { queue }, { view: 'list', group_id: group.id })}>${t('dead.list_group')}</a>
            ${may('admin') && html`<button type="button" class="primary" onClick=${onRedrive}>${t('dead.redrive_group')}</button>`}
            ${may('produce') && html`<button type="button" class="danger" onClick=${onCancel}>${t('dead.cancel_group')}</button>`}
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
        {
            key: 'dead_at',
            label: t('task.dead_at'),
            cell: (/** @type {any} */ task) => html`<${Time} ms=${Date.parse(task.dead_at)} both />`,
        },
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

/** The fields of the list. @param {{queue: string, query: Record<string, string>}} props */
function Form({ queue, query }) {
    const [fields, setFields] = useState(query);
    const shown = JSON.stringify(MEMBERS.map((name) => query[name] ?? ''));
    useChanged(shown, () => setFields(query));
    const change = (/** @type {string} */ name, /** @type {string} */ value) => setFields({ ...fields, [name]: value });
    const text = (/** @type {string} */ name, /** @type {string} */ label) => html`
        <${Field} id=${`dead-${name}`} label=${t(label)}>
            <input id=${`dead-${name}`} data-search=${name === 'failure'} autocomplete="off" spellcheck=${false} value=${fields[name] ?? ''} onInput=${(/** @type {any} */ e) => change(name, e.target.value)} />
        <//>`;
    return html`
        <form class="search" role="search" onSubmit=${(/** @type {Event} */ event) => {
            event.preventDefault();
            setQuery({ ...Object.fromEntries(MEMBERS.map((name) => [name, fields[name] ?? ''])), cursor: '' }, false);
        }}>
            ${text('failure', 'dead.failure_contains')}
            <${Field} id="dead-reason" label=${t('task.reason')}>
                <select id="dead-reason" value=${fields.reason ?? ''} onChange=${(/** @type {any} */ e) => change('reason', e.target.value)}>
                    <option value="">${t('search.any_state')}</option>
                    ${REASONS.map((reason) => html`<option value=${reason} selected=${fields.reason === reason}>${t(`reason.${reason}`)}</option>`)}
                </select>
            <//>
            ${text('tag', 'search.tag')}${text('key_contains', 'search.key_contains')}
            <div class="buttons">
                <button type="submit" class="primary">${t('search.go')}</button>
                ${MEMBERS.some((name) => query[name]) && html`<a class="button" href=${href('dead', { queue }, { view: 'list' })}>${t('search.clear')}</a>`}
            </div>
        </form>
    `;
}

/** @param {{queue: string, query: Record<string, string>}} props */
export function Dead({ queue, query }) {
    const list = query.view === 'list';
    /** @type {Record<string, string>} */
    const filter = Object.fromEntries(MEMBERS.filter((name) => list && query[name]).map((name) => [name, query[name]]));
    const at = JSON.stringify([list, filter]);
    const live = useLive(
        async (signal) => {
            const [{ dead }, groups, page] = await Promise.all([
                routes.queue(queue, signal),
                // A group's failure is the title of its list.
                !list || filter.group_id ? routes.deadGroups(queue, signal) : null,
                list ? routes.dead(queue, { ...filter, limit: String(LIMIT), cursor: query.cursor ?? '', payloads: 'false' }, signal) : null,
            ]);
            return { dead, groups, page };
        },
        [queue, at, query.cursor ?? ''],
    );
    // The page may be loaded again below a dialog, which counts and changes what was there when it opened.
    const [opened, setOpen] = useState(/** @type {{what: string, of: string, filter: Record<string, string>, text: any} | null} */ (null));
    const open = opened?.of === at ? opened : null;
    const close = () => setOpen(null);
    useEffect(close, [at]);
    const [error, setError] = useState(/** @type {any} */ (null));
    const one = (/** @type {any} */ task) =>
        routes.redrive(queue, { id: task.id }).then(() => {
            setError(null);
            live.reload();
        }, setError);
    /** @param {Record<string, string>} of */
    const words = (of) => {
        const group = live.data?.groups?.groups.find((/** @type {any} */ g) => g.id === of.group_id);
        const others = MEMBERS.filter((name) => name !== 'group_id' && of[name]).map(
            (name) =>
                `${t({ reason: 'task.reason', failure: 'dead.failure_contains', tag: 'search.tag', key_contains: 'search.key_contains' }[name] ?? name)}: ${name === 'reason' ? t(`reason.${of[name]}`) : of[name]}`,
        );
        return html`${of.group_id && html`<pre class="reason">${group ? group.failure || t(`reason.${group.reason}`) : of.group_id}</pre>`}${others.length > 0 && html`<p>${t('bulk.filter', { filter: others.join(', ') })}</p>`}`;
    };
    const ask = (/** @type {string} */ what, /** @type {Record<string, string>} */ of) => setOpen({ what, of: at, filter: of, text: words(of) });
    const some = Object.keys(filter).length > 0;
    const dead = { ...open?.filter, state: 'dead' };
    return html`
        <h1 tabindex="-1"><span class="name">${queue}</span> · ${t('dead.title')}</h1>
        <${QueueTabs} queue=${queue} page="dead" />
        ${list && html`<${Form} queue=${queue} query=${query} />`}
        ${error && html`<${Failure} error=${error} />`}
        <${Loaded} live=${live}>${(/** @type {any} */ data) => {
            if (data.dead === 0) return html`<${Empty} title=${t('dead.none')} text=${t('dead.none_text')} />`;
            const { groups, page } = data;
            return html`
                <div class="actions">
                    <nav class="switch" aria-label=${t('dead.view')}>
                        <a class="button" aria-current=${list ? undefined : 'page'} href=${href('dead', { queue })}>${t('dead.groups')}</a>
                        <a class="button" aria-current=${list ? 'page' : undefined} href=${href('dead', { queue }, { view: 'list' })}>${t('dead.list')}</a>
                    </nav>
                    ${may('admin') && html`<button type="button" onClick=${() => ask('redrive', filter)}>${t(some ? 'dead.redrive_these' : 'dead.redrive_all')}</button>`}
                    ${may('produce') && html`<button type="button" class="danger" onClick=${() => ask('cancel', filter)}>${t(some ? 'bulk.cancel' : 'dead.cancel_all')}</button>`}
                    <button type="button" class="quiet" onClick=${live.reload}>${t('action.reload')}</button>
                </div>
                ${
                    list
                        ? html`
                        ${filter.group_id && words({ group_id: filter.group_id })}
                        ${page.tasks.length === 0 ? html`<${Empty} title=${t('search.none')} />` : html`<${DeadTable} queue=${queue} tasks=${page.tasks} onRedrive=${one} />`}
                        ${(query.cursor || page.next_cursor) && html`<${Pager} first=${!query.cursor} more=${page.next_cursor !== null} onFirst=${() => setQuery({ cursor: '' }, false)} onNext=${() => setQuery({ cursor: page.next_cursor }, false)}
                            next=${page.tasks.length < LIMIT ? t('search.on') : undefined} text=${t('page.tasks', { n: page.tasks.length })} />`}`
                        : html`
                        <p class="dim">${groups.window === 'all' ? t('dead.window_all', { n: groups.looked_at }) : t(`dead.window_${groups.window}`, { n: groups.looked_at, all: data.dead })} ${t('dead.hash')}</p>
                        <div class="groups">${groups.groups.map(
                            (/** @type {any} */ group) => html`
                        <${GroupCard} key=${group.id} queue=${queue} group=${group} onRedrive=${() => ask('redrive', { group_id: group.id })} onCancel=${() => ask('cancel', { group_id: group.id })} />`,
                        )}</div>`
                }
            `;
        }}<//>
        ${
            open?.what === 'redrive' &&
            html`<${Confirm} title=${t('dead.redrive_title', { queue })} text=${html`${open.text}<p>${t('dead.redrive_text')}</p>`} action=${t('action.redrive')} queue=${queue} onClose=${close}
            count=${() => routes.redrive(queue, { filter: open.filter, dry_run: true })}
            run=${() => routes.redrive(queue, { filter: open.filter })}
            done=${(/** @type {any} */ answer) => t('dead.redriven', { n: answer.redriven ?? answer.done, matched: answer.matched })} onDone=${live.reload} />`
        }
        ${
            open?.what === 'cancel' &&
            html`<${Confirm} title=${t('dead.cancel_title', { queue })} text=${html`${open.text}<p>${t('dead.cancel_text')}</p>`} action=${t('action.cancel')} queue=${queue} onClose=${close}
            count=${() => routes.bulkCancel(queue, { filter: dead, dry_run: true, revoke: false })}
            run=${() => routes.bulkCancel(queue, { filter: dead, dry_run: false, revoke: false })}
            done=${(/** @type {any} */ answer) => t('cancel.done', { n: answer.cancelled ?? answer.done, matched: answer.matched })} onDone=${live.reload} />`
        }
    `;
}
