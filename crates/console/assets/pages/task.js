/** A task: its story, why it does not run yet, its payload, and what its owner can do with it. */

import { html, useEffect, useMemo, useState } from '../vendor/preact.js';
import { instant, length, number, relative, size, span, t } from '../i18n/index.js';
import * as routes from '../api/routes.js';
import { Problem } from '../api/client.js';
import { dueText, moveTask } from '../logic/filter.js';
import { base64Of, describePayload, pretty, rawMember } from '../logic/payload.js';
import { eventsOf, whyNot, withInstants } from '../logic/story.js';
import { href } from '../state/location.js';
import { useLive } from '../state/live.js';
import { language, may, now, zone } from '../state/session.js';
import { Copy, Empty, Failure, Field, Loaded, Marked, StateChip, Time, download } from '../ui/parts.js';
import { Confirm, Dialog } from '../ui/dialog.js';
import { Take } from './leases.js';

const HOUR = 3_600_000;

/** @param {any} values */
const withTimes = (values) => ({
    ...values,
    due: values.due ? instant(values.due) : '',
    until: values.until ? instant(values.until) : '',
    n: values.n ?? 0,
});

/** @param {{told: any}} props */
function Story({ told }) {
    const all = eventsOf(told);
    // The instant of a change is not known, so a change is no point of the line.
    const events = all.filter(({ what }) => what !== 'changed');
    return html`
        <ol class="story">
            ${events.map((event, i) => {
                const above = events[i - 1]?.at ?? null;
                const gap = event.at !== null && above !== null ? event.at - above : 0;
                return html`<li class=${event.future ? 'future' : ''}>
                    ${gap > 0 && html`<span class="gap">${t('story.after', { length: length(gap) })}</span>`}
                    <strong>${t(`story.${event.what}`, { n: event.attempt ?? 0 })}</strong>
                    ${event.at !== null && html` <${Time} ms=${event.at} both />`}
                    ${event.by && html` <small>${t('leases.worker')} ${event.by}</small>`}
                    ${event.reason && html`<pre class="reason">${event.what === 'dead' ? t(`reason.${event.reason}`) : event.reason}</pre>`}
                </li>`;
            })}
        </ol>
        ${(events.length < all.length || !told.complete) && html`<p class="dim">${t(events.length < all.length ? 'story.changed' : 'story.incomplete')}</p>`}
    `;
}

/** @param {{task: any, payload: ReturnType<typeof describePayload>}} props */
function Payload({ task, payload }) {
    const name = `${task.key.replace(/[^\w.-]+/g, '_').slice(0, 80)}.${payload.kind === 'json' ? 'json' : payload.kind === 'text' ? 'txt' : 'bin'}`;
    return html`
        <div class="bar-of-fields">
            <h2>${t('task.payload')} <small class="dim">${payload.type} · ${size(payload.size)}</small></h2>
            <div class="buttons">
                <${Copy} text=${payload.full} label=${payload.kind === 'binary' ? t('payload.copy_base64') : undefined} />
                <button type="button" class="quiet" onClick=${() => download(name, payload.bytes, payload.type)}>${t('payload.download')}</button>
            </div>
        </div>
        ${task.payload_invalid === true && html`<p class="note">${t('payload.invalid')}</p>`}
        ${payload.kind === 'binary' && html`<p class="dim">${t('payload.binary')}</p>`}
        <pre class="payload" tabindex="0" role="region" aria-label=${t('task.payload')}><code>${payload.shown}</code></pre>
        ${payload.cut && html`<p class="note">${t('payload.cut', { size: size(payload.size) })}</p>`}
    `;
}

/** The text of a payload as it is edited, and whether it is JSON. @param {any} task @param {string} text */
function editable(task, text) {
    const payload = describePayload(task, rawMember(text, 'payload'));
    if (payload.kind === 'binary') return null;
    return { json: payload.kind === 'json', type: payload.type, text: payload.kind === 'json' ? pretty(payload.full) : payload.full };
}

/** @param {string} text */
function isJson(text) {
    try {
        JSON.parse(text);
        return true;
    } catch {
        return false;
    }
}

/** @param {{loaded: {task: any, text: string}, onClose: () => void, onDone: () => void}} props */
function EditPayload({ loaded, onClose, onDone }) {
    const { task } = loaded;
    // The edited values: the type of the payload goes with its text.
    const [first, setFirst] = useState(() => editable(task, loaded.text));
    const [text, setText] = useState(first?.text ?? '');
    const [version, setVersion] = useState(task.version);
    const [theirs, setTheirs] = useState(/** @type {{payload: ReturnType<typeof editable>} | null} */ (null));
    const [error, setError] = useState(/** @type {any} */ (null));
    const [busy, setBusy] = useState(false);
    if (!first) return null;
    const wrong = first.json && !isJson(text) ? t('payload.no_json') : null;
    const submit = async (/** @type {Event} */ event) => {
        event.preventDefault();
        setBusy(true);
        setError(null);
        try {
            // The text of the payload is sent as it is typed; a parsed one would have other numbers.
            const body = first.json
                ? `{"payload":${text}}`
                : JSON.stringify({ payload_base64: base64Of(new TextEncoder().encode(text)), content_type: first.type });
            await routes.patchTask(task.queue, task.key, body, { version });
            onDone();
            onClose();
        } catch (failure) {
            if (failure instanceof Problem && failure.status === 412) {
                const now_ = await routes.task(task.queue, task.key, undefined).catch((e) => {
                    setError(e);
                    return null;
                });
                if (now_) {
                    setTheirs({ payload: editable(now_.task, now_.text) });
                    setVersion(now_.task.version);
                }
            } else setError(failure);
        }
        setBusy(false);
    };
    return html`<${Dialog} title=${t('payload.edit')} onClose=${onClose}>
        <form onSubmit=${submit}>
            ${theirs !== null && html`<div class="box failure" role="alert"><strong>${t('payload.changed')}</strong><p>${t('payload.changed_text', { version: String(version) })}</p></div>`}
            <div class=${theirs === null ? '' : 'both'}>
                <${Field} id="payload-text" label=${theirs === null ? t('task.payload') : t('payload.mine')} wrong=${wrong}>
                    <textarea id="payload-text" data-first rows="14" spellcheck=${false} value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)}></textarea>
                <//>
                ${theirs?.payload && html`<${Field} id="payload-theirs" label=${t('payload.theirs', { version: String(version) })}><textarea id="payload-theirs" rows="14" readonly value=${theirs.payload.text}></textarea><//>`}
                ${theirs !== null && !theirs.payload && html`<p>${t('payload.binary_theirs')}</p>`}
            </div>
            ${error && html`<${Failure} error=${error} />`}
            <div class="buttons">
                <button type="button" onClick=${onClose}>${t('action.keep')}</button>
                ${
                    theirs?.payload &&
                    html`<button type="button" onClick=${() => {
                        setFirst(theirs.payload);
                        setText(theirs.payload?.text ?? '');
                        setTheirs(null);
                    }}>${t('payload.take_theirs')}</button>`
                }
                <button type="submit" class="primary" disabled=${busy || wrong !== null}>${theirs === null ? t('payload.save') : t('payload.save_mine')}</button>
            </div>
        </form>
    <//>`;
}

/** The old and the new due time of a move that is typed. @param {{due: number, at: number | null}} props */
function Preview({ due, at }) {
    if (at === null || at === due) return html`<p class="moved dim" role="status">${t('task.due')} ${instant(due)}</p>`;
    const words = t(at < due ? 'move.earlier' : 'move.later', { length: length(Math.abs(at - due)) });
    return html`<p class=${`moved ${at <= now() ? 'note' : ''}`} role="status"><strong>${span(due, at, '→')}, ${words}</strong><br />${at <= now() ? t('move.at_once') : relative(at)}</p>`;
}

/** @param {{task: any, onClose: () => void, onDone: () => void}} props */
function Move({ task, onClose, onDone }) {
    const [text, setText] = useState(() => dueText(Date.parse(task.due_at), zone.get()));
    const [error, setError] = useState(/** @type {any} */ (null));
    const [changed, setChanged] = useState(/** @type {any} */ (null));
    const { version, due_at } = changed ?? task;
    const due = Date.parse(due_at);
    const move = moveTask(text, due, now(), zone.get());
    const at = move?.at ?? null;
    const still = at === null || at === due;
    const shift = (/** @type {number} */ by) => setText(dueText(Math.max(0, (at ?? due) + by), zone.get()));
    const submit = async (/** @type {Event} */ event) => {
        event.preventDefault();
        if (!move || still) return;
        try {
            await routes.patchTask(task.queue, task.key, move.body, { version });
            onDone();
            onClose();
        } catch (failure) {
            setError(failure);
            if (failure instanceof Problem && failure.status === 412) {
                await routes.task(task.queue, task.key, undefined).then((loaded) => {
                    setChanged(loaded.task);
                    setError(null);
                }, setError);
            }
        }
    };
    return html`<${Dialog} title=${t('move.title', { key: task.key })} onClose=${onClose}>
        <form class="move" onSubmit=${submit}>
            ${changed && html`<div class="box failure" role="alert"><strong>${t('payload.changed')}</strong><p>${t('move.changed', { due: instant(due), version: String(version) })}</p></div>`}
            <${Field} id="move-at" label=${t('move.to')} note=${t('move.note', { zone: zone.get() })} wrong=${at === null ? t('move.wrong') : null}>
                <input id="move-at" data-first autocomplete="off" value=${text} onFocus=${(/** @type {any} */ e) => e.target.select()} onInput=${(/** @type {any} */ e) => setText(e.target.value)} />
            <//>
            <div class="shifts">
                <button type="button" class="quiet" onClick=${() => shift(-HOUR)}>${t('move.earlier', { length: length(HOUR) })}</button>
                <button type="button" class="quiet" onClick=${() => shift(HOUR)}>${t('move.later', { length: length(HOUR) })}</button>
            </div>
            <${Preview} due=${due} at=${at} />
            ${error && html`<${Failure} error=${error} />`}
            <div class="buttons">
                <button type="button" onClick=${onClose}>${t('action.keep')}</button>
                <button type="submit" class="primary" disabled=${still}>${changed ? t('move.anyway') : t('action.move')}</button>
            </div>
        </form>
    <//>`;
}

/** @param {{queue: string, key_: string, problem: any, onRetry: () => void}} props */
function Gone({ queue, key_, problem, onRetry }) {
    if (problem?.kind === 'done') return html`<${Empty} title=${t('task.done')} text=${t('task.done_text')} />`;
    if (problem?.kind === 'not-found') {
        return html`<${Empty} title=${t('task.none')} text=${t('task.none_text')} command=${routes.curl('PUT', ['v1', 'queues', queue, 'tasks', key_], '{"delay":"1m"}')} />`;
    }
    return html`<${Failure} error=${problem} onRetry=${onRetry} />`;
}

/** @param {{queue: string, task: any, text: string, told: any, reload: () => void}} props */
function Whole({ queue, task, text, told, reload }) {
    const around = useLive((signal) => routes.queue(queue, signal), [queue], 5000);
    // The page loads the task again below an open dialog, which changes the version that it showed, and that only.
    const [open, setOpen] = useState(/** @type {{what: string, task: any, text: string, leased: boolean} | null} */ (null));
    const ask = (/** @type {string} */ what) => setOpen({ what, task, text, leased: task.state === 'leased' });
    const [error, setError] = useState(/** @type {any} */ (null));
    const close = () => setOpen(null);
    const why = whyNot(task, around.data, now(), told.target);
    const isDead = task.state === 'dead';
    const redrive = () =>
        routes
            .redrive(queue, { id: task.id })
            .then(() => setError(null), setError)
            .then(reload);
    // A dead task is cancelled by its key among the dead ones, so a dialog about it must not outlive its death.
    useEffect(() => {
        if (!isDead && open?.task.state === 'dead') close();
    }, [isDead]);
    const isLeased = task.state === 'leased';
    const hasTimeline = (task.timeline ?? []).length > 0;
    // A megabyte is decoded once, and not each time that something else of the page changes.
    const payload = useMemo(() => describePayload(task, rawMember(text, 'payload')), [text]);
    const facts = [
        ['task.due', html`<${Time} ms=${Date.parse(task.due_at)} both />`],
        ['task.lease_until', task.lease_until && html`<${Time} ms=${Date.parse(task.lease_until)} both />`],
        ['task.attempt', number(task.attempt)],
        ['task.priority', number(task.priority)],
        ['task.group', task.group && html`<a class="name" href=${href('search', { queue }, { group: task.group })}>${task.group}</a>`],
        [
            'task.tags',
            task.tags.length > 0 &&
                task.tags.map((/** @type {string} */ tag) => html`<a class="tag" href=${href('search', { queue }, { tag })}>${tag}</a> `),
        ],
        ['task.expires', task.expire_at && html`<${Time} ms=${Date.parse(task.expire_at)} both />`],
        ['task.dead_at', task.dead_at && html`<${Time} ms=${Date.parse(task.dead_at)} both />`],
        ['task.reason', task.reason && t(`reason.${task.reason}`)],
        ['task.retry', task.retry && html`<code>${JSON.stringify(task.retry)}</code>`],
        ['task.trace', task.traceparent && html`<code>${task.traceparent}</code> <${Copy} text=${task.traceparent} />`],
        ['task.version', String(task.version)],
        ['task.id', String(task.id)],
    ];
    return html`
        <p class=${`why why-${task.state}`}>
            ${language.get() === 'en' ? html`<${Marked} text=${withInstants(told.why, instant)} />` : t(why.key, withTimes(why.values))}
            ${task.state === 'ready' && told.why.includes('(`max_in_flight_per_group`).') && html` <a href=${href('search', { queue }, { group: task.group, state: 'leased' })}>${t('why.group_leased')}</a>`}
        </p>
        ${error && html`<${Failure} error=${error} />`}
        <div class="actions actions-bottom">
            ${
                may('produce') &&
                !isDead &&
                html`
                ${task.state === 'scheduled' && html`<button type="button" onClick=${() => ask('run')}>${t('action.run_ask')}</button>`}
                ${!isLeased && !hasTimeline && html`<button type="button" onClick=${() => ask('move')}>${t('action.move_to')}</button>`}
                ${!isLeased && !hasTimeline && payload.kind !== 'binary' && html`<button type="button" onClick=${() => ask('payload')}>${t('payload.edit')}</button>`}
                ${isLeased && html`<button type="button" onClick=${() => ask('take')}>${t('action.take_ask')}</button>`}`
            }
            ${isDead && may('admin') && html`<button type="button" class="primary" onClick=${redrive}>${t('action.redrive')}</button>`}
            ${may('produce') && html`<button type="button" class="danger" onClick=${() => ask('cancel')}>${isLeased ? t('action.revoke_task') : t('action.cancel_task')}</button>`}
        </div>
        <div class="halves">
            <section>
                <h2>${t('task.story')}</h2>
                <${Story} told=${told} />
            </section>
            <section>
                <h2>${t('task.facts')}</h2>
                <dl class="facts">${facts.filter(([, value]) => value).map(([word, value]) => html`<div><dt>${t(String(word))}</dt><dd>${value}</dd></div>`)}</dl>
                ${hasTimeline && html`<p class="dim">${t('task.timeline_note')}</p>`}
            </section>
        </div>
        <${Payload} task=${task} payload=${payload} />
        ${open?.what === 'move' && html`<${Move} task=${open.task} onClose=${close} onDone=${reload} />`}
        ${open?.what === 'payload' && html`<${EditPayload} loaded=${open} onClose=${close} onDone=${reload} />`}
        ${
            open?.what === 'run' &&
            html`<${Confirm} title=${t('run.title', { key: open.task.key })} text=${t('run.text', { due: instant(Date.parse(open.task.due_at)) })} action=${t('action.run')} queue=${queue} onClose=${close}
            run=${async () => void (await routes.run(queue, open.task.key, open.task.version))} onDone=${reload} />`
        }
        ${open?.what === 'take' && html`<${Take} lease=${{ ...open.task, worker: told.events.findLast((/** @type {any} */ e) => e.what === 'leased')?.by }} onClose=${close} onDone=${reload} />`}
        ${
            open?.what === 'cancel' &&
            html`<${Confirm} title=${open.leased ? t('cancel.title_leased') : t('cancel.title_one')} text=${html`<p class="name">${open.task.key}</p><p>${open.leased ? t('cancel.text_leased') : t('cancel.text_one')}</p>`}
            action=${open.leased ? t('action.revoke') : t('action.cancel')} queue=${queue} onClose=${close}
            run=${async () => {
                if (open.task.state !== 'dead') return routes.cancel(queue, open.task.key, { version: open.task.version, revoke: open.leased });
                const filter = { state: 'dead', key: open.task.key };
                const answer = await routes.bulkCancel(queue, { filter, dry_run: false, revoke: false });
                if (answer.matched === 0) throw { status: 0, title: t('payload.changed'), detail: '', hint: '' };
                return answer;
            }} onDone=${reload} />`
        }
    `;
}

/** @param {{queue: string, key_: string}} props */
export function Task({ queue, key_ }) {
    // A long payload is not read again and again.
    const [heavy, setHeavy] = useState(false);
    const live = useLive(
        async (signal) => {
            const [loaded, told] = await Promise.all([
                routes.task(queue, key_, signal),
                routes.story(queue, key_, signal),
            ]);
            return { ...loaded, told };
        },
        [queue, key_],
        heavy ? 0 : 3000,
    );
    const gone = live.error && /** @type {any} */ (live.error).status === 404;
    useEffect(() => {
        if (live.data && live.data.text.length > 65_536) setHeavy(true);
    }, [live.data]);
    return html`
        <nav class="crumbs" aria-label=${t('task.where')}><a class="name" href=${href('queue', { queue })}>${queue}</a> / <a href=${href('search', { queue })}>${t('search.title')}</a></nav>
        <h1 tabindex="-1" class=${`name ${key_.length > 60 ? 'long' : ''}`}>${key_} ${live.data && !gone && html`<${StateChip} state=${live.data.task.state} />`}</h1>
        ${
            gone
                ? html`<${Gone} queue=${queue} key_=${key_} problem=${live.error} onRetry=${live.reload} />`
                : html`<${Loaded} live=${live}>${(/** @type {any} */ data) => html`<${Whole} queue=${queue} task=${data.task} text=${data.text} told=${data.told} reload=${live.reload} />`}<//>`
        }
    `;
}
