/** Jobs: changes of many tasks that go on after their call was answered. */

import { html, useState } from '../vendor/preact.js';
import { length, number, t } from '../i18n/index.js';
import * as routes from '../api/routes.js';
import { useLive, useStream } from '../state/live.js';
import { may } from '../state/session.js';
import { Chip, Empty, Failure, Loaded, QueueLink } from '../ui/parts.js';
import { Confirm, Progress } from '../ui/dialog.js';
import { Table } from '../ui/table.js';

/** When a job was first seen, to reckon how long the rest takes. @type {Map<number, {at: number, looked: number}>} */
const firstSeen = new Map();

/** @param {any} job */
function timeLeft(job) {
    if (job.state !== 'running') return '';
    const first = firstSeen.get(job.id);
    if (!first) {
        firstSeen.set(job.id, { at: Date.now(), looked: job.looked_at });
        return '';
    }
    const done = job.looked_at - first.looked;
    const passed = Date.now() - first.at;
    if (done <= 0 || passed < 1000) return '';
    return t('jobs.left', { length: length(((job.of - job.looked_at) / done) * passed), rate: number((done * 1000) / passed) });
}

export function Jobs() {
    const streams = useStream(
        (onEvent, onProblem) => routes.events({ topics: 'jobs' }, onEvent, onProblem),
        [],
        (event, data) => event === 'jobs' && live.replace(data),
    );
    const live = useLive((signal) => routes.jobs(signal), [], streams ? null : 1000);
    const [stopping, setStopping] = useState(/** @type {any} */ (null));
    const [error, setError] = useState(/** @type {any} */ (null));
    const columns = [
        {
            key: 'id',
            label: t('jobs.job'),
            head: true,
            cell: (/** @type {any} */ job) =>
                html`${t(`jobs.kind_${job.kind}`)} <span class="dim">#${job.id}</span>${job.dry_run && html` <${Chip} kind="dry">${t('jobs.dry')}<//>`}`,
        },
        { key: 'queue', label: t('queue.word'), cell: (/** @type {any} */ job) => html`<${QueueLink} queue=${job.queue} />` },
        {
            key: 'state',
            label: t('task.state'),
            cell: (/** @type {any} */ job) => html`<${Chip} kind=${`job-${job.state}`}>${t(`jobs.state_${job.state}`)}<//>`,
        },
        {
            key: 'progress',
            label: t('jobs.progress'),
            cell: (/** @type {any} */ job) => html`<${Progress} job=${job} note=${timeLeft(job)} />`,
        },
        { key: 'matched', label: t('jobs.matched'), numeric: true, cell: (/** @type {any} */ job) => number(job.matched) },
        {
            key: 'done',
            label: t('jobs.done'),
            numeric: true,
            cell: (/** @type {any} */ job) =>
                html`<span>${number(job.done)}${
                    job.skipped &&
                    html`<br /><small class="dim">${Object.entries(job.skipped)
                        .map(([why, n]) => t(`jobs.skipped_${why}`, { n: Number(n) }))
                        .join(', ')}</small>`
                }${job.error && html`<br /><small class="wrong">${job.error}</small>`}</span>`,
        },
        ...(may('produce')
            ? [
                  {
                      key: 'do',
                      label: t('task.do'),
                      cell: (/** @type {any} */ job) =>
                          job.state === 'running' &&
                          html`<button type="button" onClick=${() => setStopping(job)}>${t('jobs.stop')}</button>`,
                  },
              ]
            : []),
    ];
    return html`
        <h1 tabindex="-1">${t('jobs.title')}</h1>
        <p class="dim">${t('jobs.text')}</p>
        ${error && html`<${Failure} error=${error} />`}
        <${Loaded} live=${live}>${(/** @type {any} */ data) =>
            data.jobs.length === 0
                ? html`<${Empty} title=${t('jobs.none')} text=${t('jobs.none_text')} command=${routes.curl('POST', ['v1', 'queues', 'orders', 'cancel'], '{"filter":{"tag":"shop:7"},"dry_run":true}')} />`
                : html`<${Table} caption=${t('jobs.title')} columns=${columns} rows=${data.jobs} rowKey=${(/** @type {any} */ job) => job.id} />`}<//>
        ${
            stopping &&
            html`<${Confirm} title=${t('jobs.stop_title', { id: String(stopping.id) })} text=${t('jobs.stop_text')} action=${t('jobs.stop')} queue=${stopping.queue} onClose=${() => setStopping(null)}
            run=${() => routes.stopJob(stopping.id)} onDone=${() => {
                setError(null);
                live.reload();
            }} />`
        }
    `;
}
