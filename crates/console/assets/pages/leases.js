/** Leases: which worker has which task, and until when. */

import { html, useState } from '../vendor/preact.js';
import { instant, length, number, t } from '../i18n/index.js';
import * as routes from '../api/routes.js';
import { setQuery } from '../state/location.js';
import { useLive } from '../state/live.js';
import { may, now } from '../state/session.js';
import { Empty, Loaded, QueueLink, TaskLink, Time } from '../ui/parts.js';
import { Confirm } from '../ui/dialog.js';
import { Pager, Table } from '../ui/table.js';

/** Takes the task away from its worker, if it still has the lease that was shown: a later lease is of another attempt. @param {any} lease */
async function take(lease) {
    const { task } = await routes.task(lease.queue, lease.key, undefined);
    if (task.state !== 'leased' || task.attempt !== lease.attempt) throw { status: 0, title: t('leases.ended'), detail: '', hint: '' };
    return routes.releaseTask(lease.queue, lease.key, task.version);
}

/** Asks before a task is taken from its worker. @param {{lease: any, onClose: () => void, onDone: () => void}} props */
export const Take = ({ lease, onClose, onDone }) => html`
    <${Confirm} title=${lease.worker ? t('leases.take_from', { key: lease.key, worker: lease.worker }) : t('leases.take_one', { key: lease.key })}
        text=${t('leases.take_text')} action=${t('action.take')} queue=${lease.queue} onClose=${onClose} run=${() => take(lease)} onDone=${onDone} />
`;

/** @param {{query: Record<string, string>}} props */
export function Leases({ query }) {
    const live = useLive(
        (signal) => routes.leases({ queue: query.queue ?? '', worker: query.worker ?? '', cursor: query.cursor ?? '' }, signal),
        [query.queue ?? '', query.worker ?? '', query.cursor ?? ''],
        5000,
    );
    const [taken, setTaken] = useState(/** @type {any} */ (null));
    const columns = [
        {
            key: 'key',
            label: t('task.key'),
            head: true,
            cell: (/** @type {any} */ lease) => html`<${TaskLink} queue=${lease.queue} key_=${lease.key} />`,
        },
        { key: 'queue', label: t('queue.word'), cell: (/** @type {any} */ lease) => html`<${QueueLink} queue=${lease.queue} />` },
        { key: 'worker', label: t('leases.worker'), cell: (/** @type {any} */ lease) => lease.worker ?? '–' },
        { key: 'attempt', label: t('task.attempt'), numeric: true, cell: (/** @type {any} */ lease) => number(lease.attempt) },
        {
            key: 'held',
            label: t('leases.held'),
            cell: (/** @type {any} */ lease) =>
                lease.since
                    ? html`<span title=${instant(Date.parse(lease.since))}>${length(Math.max(0, now() - Date.parse(lease.since)))}</span>`
                    : '–',
        },
        {
            key: 'until',
            label: t('leases.until'),
            cell: (/** @type {any} */ lease) => {
                const [since, until] = [Date.parse(lease.since ?? lease.until), Date.parse(lease.until)];
                return html`<div class="progress"><progress max="100" value=${Math.max(0, Math.min(100, ((now() - since) / Math.max(1, until - since)) * 100))} aria-label=${t('leases.until')}></progress><small><${Time} ms=${until} both /></small></div>`;
            },
        },
        ...(may('produce')
            ? [
                  {
                      key: 'do',
                      label: t('task.do'),
                      cell: (/** @type {any} */ lease) =>
                          html`<button type="button" aria-label=${`${t('action.take_ask')} ${lease.key}`} onClick=${() => setTaken(lease)}>${t('action.take_ask')}</button>`,
                  },
              ]
            : []),
    ];
    return html`
        <h1 tabindex="-1">${t('leases.title')}</h1>
        <form class="inline" role="search" onSubmit=${(/** @type {any} */ e) => {
            e.preventDefault();
            setQuery({ queue: e.target.queue.value.trim(), worker: e.target.worker.value.trim(), cursor: '' }, false);
        }}>
            <input name="queue" type="search" data-search aria-label=${t('queue.word')} placeholder=${t('queue.word')} defaultValue=${query.queue ?? ''} />
            <input name="worker" type="search" aria-label=${t('leases.worker')} placeholder=${t('leases.worker')} defaultValue=${query.worker ?? ''} />
            <button type="submit">${t('search.go')}</button>
        </form>
        <${Loaded} live=${live}>${(/** @type {any} */ data) => html`
            ${
                data.leases.length === 0
                    ? html`<${Empty} title=${t('leases.none')} text=${t('leases.none_text')} command=${routes.curl('POST', ['v1', 'queues', query.queue || 'orders', 'lease'], '{"wait":"20s"}')} />`
                    : html`<${Table} caption=${t('leases.title')} columns=${columns} rows=${data.leases} rowKey=${(/** @type {any} */ lease) => `${lease.queue} ${lease.key}`} />`
            }
            ${(query.cursor || data.next_cursor) && html`<${Pager} first=${!query.cursor} more=${data.next_cursor !== null} onFirst=${() => setQuery({ cursor: '' }, false)} onNext=${() => setQuery({ cursor: data.next_cursor }, false)} text="" />`}
        `}<//>
        ${taken && html`<${Take} lease=${taken} onClose=${() => setTaken(null)} onDone=${live.reload} />`}
    `;
}
