/** The target of a queue, and the targets and connections of all queues. */

import { html, useState } from '../vendor/preact.js';
import { length, number, t } from '../i18n/index.js';
import * as routes from '../api/routes.js';
import { parseDuration } from '../logic/duration.js';
import { settingsOf, shownMember } from '../logic/settings.js';
import { href } from '../state/location.js';
import { useLive } from '../state/live.js';
import { may } from '../state/session.js';
import { Chip, Command, Copy, Empty, Failure, Field, Loaded, Marked, QueueTabs, Tile, Time } from '../ui/parts.js';
import { Confirm, Dialog } from '../ui/dialog.js';
import { Table } from '../ui/table.js';

/** The look of each state of a target or a connection, and of each outcome. @type {Record<string, string>} */
const LOOKS = {
    closed: 'job-done',
    up: 'job-done',
    acked: 'job-done',
    half_open: 'job-running',
    paused: 'paused',
    given_back: 'job-stopped',
    unused: 'plain',
};
const OUTCOMES = ['acked', 'failed', 'dead', 'given_back', 'blocked'];

/** @param {{word: string}} props */
const Word = ({ word }) => html`<${Chip} kind=${LOOKS[word] ?? 'job-failed'}>${t(`target.${word}`)}<//>`;

/** @param {{text?: string}} props */
const Reason = ({ text }) => text && html`<${Marked} text=${text} />`;

const EXAMPLE = { kind: 'webhook', url: 'http://localhost:8080/hooks/{queue}' };

/** The settings as JSON, which are saved as a whole. @param {{queue: string, view: any, onClose: () => void, onDone: (view: any) => void}} props */
function Edit({ queue, view, onClose, onDone }) {
    const [text, setText] = useState(() => JSON.stringify(view ? settingsOf(view) : EXAMPLE, null, 2));
    const [error, setError] = useState(/** @type {any} */ (null));
    const [busy, setBusy] = useState(false);
    let wrong = null;
    try {
        JSON.parse(text);
    } catch {
        wrong = t('payload.no_json');
    }
    const submit = (/** @type {Event} */ event) => {
        event.preventDefault();
        setBusy(true);
        routes.putTarget(queue, text, view?.version).then(
            (answer) => {
                onDone(answer);
                onClose();
            },
            (failure) => {
                setError(failure);
                setBusy(false);
            },
        );
    };
    return html`<${Dialog} title=${t('target.of', { queue })} onClose=${onClose}>
        <form onSubmit=${submit}>
            <${Field} id="target-text" label=${t('settings.title')} note=${t('target.edit_note')} wrong=${wrong}>
                <textarea id="target-text" data-first rows="14" spellcheck=${false} value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)}></textarea>
            <//>
            ${error && html`<${Failure} error=${error} />`}
            <div class="buttons">
                <button type="button" onClick=${onClose}>${t('action.keep')}</button>
                <button type="submit" class="primary" disabled=${busy || wrong !== null}>${t('settings.save')}</button>
            </div>
        </form>
    <//>`;
}

/** @param {{queue: string, onClose: () => void, onDone: () => void}} props */
function Rotate({ queue, onClose, onDone }) {
    const [overlap, setOverlap] = useState('24h');
    const [error, setError] = useState(/** @type {any} */ (null));
    const [made, setMade] = useState(/** @type {any} */ (null));
    const [busy, setBusy] = useState(false);
    const wrong = (parseDuration(overlap) ?? Infinity) > 2_592_000_000 ? t('settings.wrong.duration', { min: '0s', max: '30d' }) : null;
    const submit = (/** @type {Event} */ event) => {
        event.preventDefault();
        if (wrong || busy) return;
        setBusy(true);
        routes
            .rotateTarget(queue, overlap.trim())
            .then((answer) => {
                setMade(answer);
                onDone();
            }, setError)
            .finally(() => setBusy(false));
    };
    const title = t('target.rotate_title', { queue });
    if (made) {
        return html`<${Dialog} title=${title} onClose=${onClose}>
            <p role="status">${t('target.rotated')} <${Time} ms=${Date.parse(made.until)} both /></p>
            <${Command} text=${made.secret} />
            <div class="buttons"><button type="button" data-first onClick=${onClose}>${t('action.close')}</button></div>
        <//>`;
    }
    return html`<${Dialog} title=${title} onClose=${onClose}>
        <form onSubmit=${submit}>
            <${Field} id="target-overlap" label=${t('target.overlap')} note=${t('target.overlap_note')} wrong=${wrong}>
                <input id="target-overlap" data-first autocomplete="off" value=${overlap} onInput=${(/** @type {any} */ e) => setOverlap(e.target.value)} />
            <//>
            ${error && html`<${Failure} error=${error} />`}
            <div class="buttons">
                <button type="button" onClick=${onClose}>${t('action.keep')}</button>
                <button type="submit" class="primary" disabled=${busy || wrong !== null}>${t('target.rotate')}</button>
            </div>
        </form>
    <//>`;
}

/** The result of an attempt. @param {{of: any}} props */
const Result = ({ of }) => html`
    <${Word} word=${of.outcome} /> ${of.status ?? ''} <span class="dim">${of.took}</span>
    ${of.reason && html`<br /><${Reason} text=${of.reason} />`}
    ${of.answer && of.outcome !== 'acked' && html`<pre class="reason" tabindex="0">${of.answer}</pre>`}
`;

/** @param {{attempts: any[]}} props */
const Attempts = ({ attempts }) =>
    attempts.length === 0
        ? html`<p class="dim">${t('target.no_attempts')}</p>`
        : html`<${Table} caption=${t('target.attempts')} rows=${attempts} rowKey=${(/** @type {any} */ a) => `${a.id} ${a.attempt} ${a.at}`} columns=${[
              // A task that was acked has no page, so its key is no link.
              { key: 'key', label: t('task.key'), head: true, cell: (/** @type {any} */ a) => html`<span class="name">${a.key}</span>` },
              { key: 'at', label: t('target.at'), cell: (/** @type {any} */ a) => html`<${Time} ms=${Date.parse(a.at)} />` },
              { key: 'attempt', label: t('target.attempt'), numeric: true, cell: (/** @type {any} */ a) => number(a.attempt) },
              { key: 'outcome', label: t('target.outcome'), cell: (/** @type {any} */ a) => html`<div><${Result} of=${a} /></div>` },
          ]} />`;

/** @param {{queue: string}} props */
export function Target({ queue }) {
    const live = useLive((signal) => routes.target(queue, signal), [queue], 3000);
    const none = /** @type {any} */ (live.error)?.kind === 'no-target';
    const tried = useLive((signal) => routes.attempts(queue, signal), [queue, none], none ? null : 3000);
    const name = live.data?.connection;
    const around = useLive(async (signal) => (name ? (await routes.targets(signal)).connections : []), [name ?? ''], 5000);
    const connection = around.data?.find((/** @type {any} */ row) => row.name === name);
    const [open, setOpen] = useState(/** @type {{what: string, view?: any} | null} */ (null));
    const [error, setError] = useState(/** @type {any} */ (null));
    const close = () => setOpen(null);
    const act = (/** @type {Promise<any>} */ call, /** @type {(answer: any) => void} */ done) =>
        call.then((answer) => {
            setError(null);
            done(answer);
        }, setError);
    const test = () => act(routes.testTarget(queue), (view) => setOpen({ what: 'test', view }));
    const draw = (/** @type {any} */ view) => html`
        <dl class="tiles">
            <${Tile} label=${t('setting.max_in_flight')} value=${number(view.in_flight)} />
            ${OUTCOMES.map((word) => html`<${Tile} label=${t(`target.${word}`)} value=${number(view.attempts[word])} />`)}
        </dl>
        ${view.reason && html`<p class=${`why ${view.state === 'closed' ? '' : 'why-dead'}`}><${Reason} text=${view.reason} /></p>`}
        ${view.since && html`<p>${t('target.since')} <${Time} ms=${Date.parse(view.since)} both /></p>`}
        ${connection && html`<p>${t('target.connection')} <span class="name">${name}</span> <${Word} word=${connection.state} /> ${connection.since && html`<${Time} ms=${Date.parse(connection.since)} both />`} <${Reason} text=${connection.reason} /></p>`}
        ${error && html`<${Failure} error=${error} />`}
        <div class="actions">
            ${
                may('admin') &&
                html`
                ${
                    ['paused', 'disabled'].includes(view.state)
                        ? html`<button type="button" class="primary" onClick=${() => act(routes.resumeTarget(queue), live.replace)}>${t('action.resume')}</button>`
                        : html`<button type="button" onClick=${() => act(routes.pauseTarget(queue), live.replace)}>${t('action.pause')}</button>`
                }
                <button type="button" onClick=${test}>${t('target.test')}</button>
                ${view.kind === 'webhook' && html`<button type="button" onClick=${() => setOpen({ what: 'rotate' })}>${t('target.rotate_ask')}</button>`}
                <button type="button" onClick=${() => setOpen({ what: 'edit', view })}>${t('target.edit')}</button>
                <button type="button" class="danger" onClick=${() => setOpen({ what: 'delete', view })}>${t('target.delete_ask')}</button>`
            }
        </div>
        <h2>${t('target.attempts')}</h2>
        <${Loaded} live=${tried}>${(/** @type {any} */ data) => html`<${Attempts} attempts=${data.attempts} />`}<//>
        <h2>${t('settings.title')}</h2>
        <dl class="facts">${Object.entries(settingsOf(view)).map(([member, value]) => html`<div><dt>${member}</dt><dd><code>${shownMember(value)}</code></dd></div>`)}</dl>
    `;
    return html`
        <h1 tabindex="-1"><span class="name">${queue}</span> · ${t('target.title')} ${live.data && !none && html`<${Word} word=${live.data.state} />`}</h1>
        <${QueueTabs} queue=${queue} page="target" />
        ${
            none
                ? html`<${Empty} title=${t('target.none')} text=${t('target.none_text')} command=${routes.curl('PUT', ['v1', 'queues', queue, 'target'], JSON.stringify(EXAMPLE))} />
                    ${may('admin') && html`<div class="actions"><button type="button" class="primary" onClick=${() => setOpen({ what: 'edit' })}>${t('target.new')}</button></div>`}`
                : html`<${Loaded} live=${live}>${draw}<//>`
        }
        ${open?.what === 'edit' && html`<${Edit} queue=${queue} view=${open.view} onClose=${close} onDone=${live.replace} />`}
        ${open?.what === 'rotate' && html`<${Rotate} queue=${queue} onClose=${close} onDone=${live.reload} />`}
        ${
            open?.what === 'test' &&
            html`<${Dialog} title=${t('target.tested')} onClose=${close}>
            <div role="status"><${Result} of=${open.view} /></div>
            <div class="buttons"><button type="button" data-first onClick=${close}>${t('action.close')}</button></div>
        <//>`
        }
        ${
            open?.what === 'delete' &&
            html`<${Confirm} title=${t('target.delete_title', { queue })} text=${t('target.delete_text')} action=${t('target.delete')} queue=${queue} onClose=${close}
            run=${() => routes.deleteTarget(queue, open.view.version)} onDone=${live.reload} />`
        }
    `;
}

export function Targets() {
    const live = useLive((signal) => routes.targets(signal), [], 5000);
    const count = (/** @type {string} */ word) => ({
        key: word,
        label: t(`target.${word}`),
        numeric: true,
        cell: (/** @type {any} */ row) => number(row.attempts[word]),
    });
    const state = {
        key: 'state',
        label: t('task.state'),
        cell: (/** @type {any} */ row) =>
            html`<div><${Word} word=${row.state} />${row.reason && html`<br /><small><${Reason} text=${row.reason} /></small>`}</div>`,
    };
    const since = {
        key: 'since',
        label: t('target.since'),
        cell: (/** @type {any} */ row) => (row.since ? html`<${Time} ms=${Date.parse(row.since)} />` : '–'),
    };
    const columns = [
        {
            key: 'queue',
            label: t('queue.word'),
            head: true,
            cell: (/** @type {any} */ row) => html`<a class="name" href=${href('target', { queue: row.queue })}>${row.queue}</a>`,
        },
        {
            key: 'to',
            label: t('target.to'),
            cell: (/** @type {any} */ row) => html`<div class="name"><span class="dim">${row.kind}</span> ${row.to}</div>`,
        },
        state,
        since,
        { key: 'flight', label: t('setting.max_in_flight'), numeric: true, cell: (/** @type {any} */ row) => number(row.in_flight) },
        ...OUTCOMES.slice(0, 4).map(count),
    ];
    return html`
        <h1 tabindex="-1">${t('target.all')}</h1>
        <${Loaded} live=${live}>${(/** @type {any} */ { targets, connections }) => html`
            ${
                targets.length === 0
                    ? html`<${Empty} title=${t('target.none_at_all')} text=${t('target.none_text')} command=${routes.curl('PUT', ['v1', 'queues', 'orders', 'target'], JSON.stringify(EXAMPLE))} />`
                    : html`<${Table} caption=${t('target.all')} columns=${columns} rows=${targets} rowKey=${(/** @type {any} */ row) => row.queue} />`
            }
            ${
                connections.length > 0 &&
                html`<h2>${t('target.connections')}</h2>
                <${Table} caption=${t('target.connections')} rows=${connections} rowKey=${(/** @type {any} */ row) => row.name} columns=${[
                    {
                        key: 'name',
                        label: t('target.connection'),
                        head: true,
                        cell: (/** @type {any} */ row) => html`<span class="name">${row.name}</span>`,
                    },
                    { key: 'kind', label: t('target.kind'), cell: (/** @type {any} */ row) => row.kind },
                    state,
                    since,
                ]} />`
            }`}<//>
    `;
}
