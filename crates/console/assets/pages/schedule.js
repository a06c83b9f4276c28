/** A schedule: its progress, its editor, and when it runs next. */

import { html, useEffect, useMemo, useState } from '../vendor/preact.js';
import { instant, number, t } from '../i18n/index.js';
import * as routes from '../api/routes.js';
import { Problem } from '../api/client.js';
import { parseDuration } from '../logic/duration.js';
import { clockChanges, wallsOf } from '../logic/instant.js';
import { rawMember } from '../logic/payload.js';
import { readTags, repeatsWithinAnHour, tasksAYear, writeTags, yearStrip } from '../logic/recurrence.js';
import { go, href } from '../state/location.js';
import { useChanged, useLive } from '../state/live.js';
import { may, now, offerZone } from '../state/session.js';
import { Empty, Failure, Field, Loaded, Loading, Tile, Time } from '../ui/parts.js';
import { Confirm } from '../ui/dialog.js';
import { Table } from '../ui/table.js';
import { nextOf } from './schedules.js';

const KINDS = ['cron', 'every', 'fixed_delay'];
/** Members that are edited as text. */
const TEXTS = [
    'cron',
    'tz',
    'every',
    'fixed_delay',
    'start',
    'end',
    'count',
    'jitter',
    'catch_up',
    'overlap',
    'priority',
    'group',
    'expire_after',
];
/** Instants of a preview. */
const PREVIEW = 1000;
const DURATIONS = ['every', 'fixed_delay', 'jitter', 'expire_after'];
/** Members that the form does not show and gives back as they are. */
const KEPT = ['payload_base64', 'content_type', 'retry'];

/**
 * @param {any} spec
 * @param {string | null} payload The JSON text.
 * @returns {Record<string, string>}
 */
function formOf(spec, payload) {
    /** @type {Record<string, string>} */
    const form = {
        kind: spec.every ? 'every' : spec.fixed_delay ? 'fixed_delay' : 'cron',
        tags: writeTags(spec.tags ?? []),
        payload: payload ?? 'null',
    };
    for (const name of TEXTS) form[name] = spec[name] === undefined || spec[name] === null ? '' : String(spec[name]);
    return form;
}

/**
 * The body of the schedule as JSON text; the payload stands in it as it was typed.
 * @param {Record<string, string>} form
 * @param {any} stored
 */
function bodyOf(form, stored) {
    /** @type {Record<string, any>} */
    const spec = {};
    for (const name of TEXTS) {
        const text = form[name].trim();
        const other = KINDS.includes(name) ? name !== form.kind : name === 'tz' && form.kind !== 'cron';
        if (text !== '' && !other) spec[name] = name === 'count' || name === 'priority' ? Number(text) : text;
    }
    const tags = readTags(form.tags, stored?.tags ?? []);
    if (tags.length > 0) spec.tags = tags;
    for (const name of KEPT) if (stored?.[name] !== undefined) spec[name] = stored[name];
    const body = JSON.stringify(spec);
    return spec.payload_base64 !== undefined || form.payload.trim() === ''
        ? body
        : `${body.slice(0, -1)}${body === '{}' ? '' : ','}"payload":${form.payload}}`;
}

/** @param {Record<string, string>} form @returns {Record<string, string>} The fields that are wrong, with why. */
function wrongOf(form) {
    /** @type {Record<string, string>} */
    const wrong = {};
    for (const name of DURATIONS)
        if (form[name].trim() !== '' && parseDuration(form[name]) === null) wrong[name] = t('schedule.wrong_duration');
    for (const name of ['count', 'priority'])
        if (form[name].trim() !== '' && !/^\d+$/.test(form[name].trim())) wrong[name] = t('schedule.wrong_number');
    try {
        JSON.parse(form.payload.trim() || 'null');
    } catch {
        wrong.payload = t('payload.no_json');
    }
    if (form[form.kind].trim() === '') wrong[form.kind] = t('schedule.missing');
    return wrong;
}

/** @param {string} queue @param {string} name */
const exists = (queue, name) =>
    routes.schedule(queue, name, undefined).then(
        () => true,
        (error) => {
            if (error.kind === 'no-schedule') return false;
            throw error;
        },
    );

/** The next instants, and what the zone's clocks do. @param {{spec: any, live: import('../state/live.js').Live<any>}} props */
function Preview({ spec, live }) {
    const zone = spec.tz || 'UTC';
    const changes = useMemo(() => {
        try {
            return clockChanges(zone, now(), now() + 400 * 86_400_000).slice(0, 2);
        } catch {
            return [];
        }
    }, [zone]);
    if (live.data === null) return live.error ? html`<${Failure} error=${live.error} onRetry=${live.reload} />` : html`<${Loading} />`;
    const occurrences = live.data.occurrences;
    const instants = occurrences.map((/** @type {any} */ o) => Date.parse(o.at));
    // A rule that ends within its preview has a number of tasks to come, and none a year. A fixed delay is known to its next instant only.
    const ends = (spec.count || spec.end) && !spec.fixed_delay && instants.length < PREVIEW;
    const cost = instants.length === 0 ? null : ends ? instants.length : tasksAYear(spec, instants);
    const strip = yearStrip(instants, now());
    const last = instants[instants.length - 1] ?? now();
    const busy = strip.filter((n) => n > 0).length;
    return html`
        ${cost !== null && html`<p>${t(ends ? 'schedule.left' : 'schedule.cost', { n: cost })}</p>`}
        ${
            spec.cron &&
            changes.length > 0 &&
            html`<ul class="changes">${changes.map((change) => {
                return html`<li>${t(change.after > change.before ? 'schedule.forward' : 'schedule.back', { zone, ...wallsOf(change) })}</li>`;
            })}</ul>`
        }
        ${repeatsWithinAnHour(spec.cron) && changes.some((c) => c.after < c.before) && html`<p class="note">${t('schedule.twice')}</p>`}
        ${
            occurrences.length === 0
                ? html`<p class="dim">${live.data.note ?? t('schedule.never')}</p>`
                : html`
                <${Table} caption=${t('schedule.preview')} rows=${occurrences.slice(0, 10)} rowKey=${(/** @type {any} */ o) => o.at} columns=${[
                    {
                        key: 'local',
                        label: t('schedule.local', { zone }),
                        head: true,
                        cell: (/** @type {any} */ o) => html`<span class="mono">${o.local.replace('T', ' ')}</span>`,
                    },
                    {
                        key: 'utc',
                        label: 'UTC',
                        cell: (/** @type {any} */ o) => html`<span class="mono">${o.at.slice(0, 19).replace('T', ' ')}</span>`,
                    },
                    { key: 'away', label: t('schedule.away'), cell: (/** @type {any} */ o) => html`<${Time} ms=${Date.parse(o.at)} />` },
                    ...(occurrences.slice(0, 10).some((/** @type {any} */ o) => o.note)
                        ? [{ key: 'note', label: t('schedule.note'), cell: (/** @type {any} */ o) => o.note ?? '' }]
                        : []),
                ]} />
                <svg class="year" viewBox="0 0 371 49" role="img" aria-label=${t('schedule.year', { n: busy, until: instant(last) })}>
                    ${strip.map((n, i) => html`<rect class=${n > 0 ? 'on' : 'off'} x=${Math.floor(i / 7) * 7} y=${(i % 7) * 7} width="5" height="5" />`)}
                </svg>
                <p class="dim">${t('schedule.year', { n: busy, until: instant(last) })}</p>`
        }
        ${live.data.note && occurrences.length > 0 && html`<p class="dim">${live.data.note}</p>`}
    `;
}

/** @param {{queue: string, name: string, stored: any, text: string, reload: () => void}} props */
function Editor({ queue, name, stored, text, reload }) {
    const first = useMemo(() => formOf(stored ?? {}, stored ? rawMember(text, 'payload') : null), [stored?.version]);
    const [form, setForm] = useState(first);
    const [error, setError] = useState(/** @type {any} */ (null));
    const [busy, setBusy] = useState(false);
    const [deleting, setDeleting] = useState(false);
    const [saved, setSaved] = useState(false);
    useChanged(first, setForm);
    const wrong = wrongOf(form);
    const changed = JSON.stringify(form) !== JSON.stringify(first);
    const body = Object.keys(wrong).length === 0 ? bodyOf(form, stored) : '';
    const [asked, setAsked] = useState(body);
    useEffect(() => {
        const timer = window.setTimeout(() => setAsked(body), 300);
        return () => window.clearTimeout(timer);
    }, [body]);
    const unsaved = asked !== '';
    const preview = useLive(
        async (signal) => {
            if (unsaved) return routes.previewUnsaved(JSON.parse(asked), PREVIEW, signal);
            return stored ? routes.preview(queue, name, PREVIEW, signal) : null;
        },
        [queue, name, stored?.version ?? 0, unsaved ? asked : ''],
    );
    const set = (/** @type {string} */ member, /** @type {string} */ value) => {
        setSaved(false);
        if (error?.member === member) setError(null);
        setForm((before) => ({ ...before, [member]: value }));
    };
    const save = (/** @type {Event} */ event) => {
        event.preventDefault();
        if (body === '') return;
        setBusy(true);
        const put = async () => {
            // The API has no condition for a schedule that must be new, so the page looks before it puts one.
            if (!stored && (await exists(queue, name)))
                throw new Problem({ status: 412, title: t('schedule.exists'), detail: t('schedule.exists_text') });
            await routes.putSchedule(queue, name, body, stored?.version ?? null);
            setError(null);
            setSaved(true);
            if (!stored) go(href('schedule', { queue, name }), true);
            reload();
        };
        put()
            .catch(setError)
            .finally(() => setBusy(false));
    };
    const field = (/** @type {string} */ member, /** @type {string} */ placeholder = '') => html`
        <${Field} id=${`schedule-${member}`} label=${t(`schedule.${member}`)} note=${routesNote(member)} wrong=${(stored || changed ? wrong[member] : null) ?? (error?.member === member ? error.detail : null)}>
            <input id=${`schedule-${member}`} autocomplete="off" spellcheck=${false} placeholder=${placeholder} value=${form[member]} disabled=${!may('produce')} onInput=${(/** @type {any} */ e) => set(member, e.target.value)} />
        <//>`;
    const choice = (/** @type {string} */ member, /** @type {string[]} */ choices, /** @type {string} */ preset) => html`
        <${Field} id=${`schedule-${member}`} label=${t(`schedule.${member}`)} note=${t(`schedule.${member}.note`)}>
            <select id=${`schedule-${member}`} value=${form[member] || preset} disabled=${!may('produce')} onChange=${(/** @type {any} */ e) => set(member, e.target.value)}>
                ${choices.map((c) => html`<option value=${c} selected=${(form[member] || preset) === c}>${t(`${member}.${c}`)}</option>`)}
            </select>
        <//>`;
    return html`
        ${
            stored &&
            html`<dl class="tiles">
            <${Tile} label=${t('schedule.next')} value=${nextOf(stored)} />
            <${Tile} label=${t('schedule.last')} value=${stored.last_at ? html`<${Time} ms=${Date.parse(stored.last_at)} />` : '–'} />
            <${Tile} label=${t('schedule.made')} value=${number(stored.made)} />
            <${Tile} label=${t('schedule.skipped')} value=${number(stored.skipped)} note=${stored.waiting > 0 ? t('schedule.waiting', { n: stored.waiting }) : ''} />
        </dl>`
        }
        <div class="halves">
            <form class="editor" onSubmit=${save}>
                <fieldset class="kinds">
                    <legend>${t('schedule.rule')}</legend>
                    ${KINDS.map((kind) => html`<label class="check"><input type="radio" name="kind" value=${kind} checked=${form.kind === kind} disabled=${!may('produce')} onChange=${() => set('kind', kind)} />${t(`schedule.kind_${kind}`)}</label>`)}
                </fieldset>
                ${form.kind === 'cron' ? html`${field('cron', '30 2 * * *')}${field('tz', 'Europe/Berlin')}` : field(form.kind, '1h')}
                <details>
                    <summary>${t('schedule.more')}</summary>
                    ${field('start', '2030-01-01T00:00:00Z')}${field('end', '2031-01-01T00:00:00Z')}${field('count')}${field('jitter', '30s')}
                    ${choice('catch_up', ['skip', 'once', 'all'], 'once')}${choice('overlap', ['skip', 'queue', 'allow'], 'allow')}
                    <${Field} id="schedule-tags" label=${t('schedule.tags')}>
                        <textarea id="schedule-tags" rows="2" spellcheck=${false} placeholder="nightly" value=${form.tags} disabled=${!may('produce')} onInput=${(/** @type {any} */ e) => set('tags', e.target.value)}></textarea>
                    <//>
                    ${field('priority', '1024')}${field('group')}${field('expire_after', '1h')}
                </details>
                ${
                    stored?.payload_base64 === undefined &&
                    html`
                    <${Field} id="schedule-payload" label=${t('task.payload')} wrong=${wrong.payload ?? null}>
                        <textarea id="schedule-payload" rows="5" spellcheck=${false} value=${form.payload} disabled=${!may('produce')} onInput=${(/** @type {any} */ e) => set('payload', e.target.value)}></textarea>
                    <//>`
                }
                ${error && html`<${Failure} error=${error} />`}
                ${
                    error instanceof Problem &&
                    error.status === 412 &&
                    html`<button type="button" onClick=${() => {
                        setError(null);
                        reload();
                    }}>${t('schedule.take_theirs')}</button>`
                }
                ${
                    may('produce') &&
                    html`<div class="buttons">
                    ${stored && html`<button type="button" class="danger" onClick=${() => setDeleting(true)}>${t('schedule.delete')}</button>`}
                    ${changed && html`<button type="button" onClick=${() => setForm(first)}>${t('settings.undo')}</button>`}
                    <button type="submit" class="primary" disabled=${busy || body === '' || (stored !== null && !changed)}>${t('schedule.save')}</button>
                </div>`
                }
                <p role="status" class="dim">${saved && !changed ? t('schedule.saved') : ''}</p>
            </form>
            <section>
                <h2>${t('schedule.preview')}</h2>
                ${!unsaved && (!stored || changed) && html`<p class="dim">${t(stored ? 'schedule.preview_old' : 'schedule.preview_new')}</p>`}
                ${(stored || unsaved) && html`<${Preview} spec=${unsaved ? JSON.parse(asked) : stored} live=${preview} />`}
            </section>
        </div>
        ${
            deleting &&
            html`<${Confirm} title=${t('schedule.delete_title', { name })} text=${t('schedule.delete_text')} action=${t('schedule.delete')} queue=${queue} onClose=${() => setDeleting(false)}
            run=${() => routes.deleteSchedule(queue, name, stored.version)} onDone=${(/** @type {boolean} */ closed) => (closed ? reload() : go(href('schedules')))} />`
        }
    `;
}

/** @param {string} member */
const routesNote = (member) => (['cron', 'tz', 'jitter', 'start', 'expire_after'].includes(member) ? t(`schedule.${member}.note`) : '');

/** @param {{queue: string, name: string, query: Record<string, string>}} props */
export function Schedule({ queue, name, query }) {
    const live = useLive(
        async (signal) => {
            try {
                return await routes.schedule(queue, name, signal);
            } catch (error) {
                if (error instanceof Problem && error.kind === 'no-schedule' && query.new) return { schedule: null, text: '' };
                throw error;
            }
        },
        [queue, name, query.new ?? ''],
    );
    const tz = live.data?.schedule?.tz;
    useEffect(() => (tz ? offerZone(tz) : undefined), [tz]);
    const gone = live.error instanceof Problem && live.error.kind === 'no-schedule';
    return html`
        <nav class="crumbs" aria-label=${t('task.where')}><a href=${href('schedules')}>${t('schedules.title')}</a> / <a class="name" href=${href('queue', { queue })}>${queue}</a></nav>
        <h1 tabindex="-1" class="name">${name}</h1>
        ${
            gone
                ? html`<${Empty} title=${t('schedule.none')} text=${/** @type {any} */ (live.error).detail} /><p><a class="button" href=${href('schedule', { queue, name }, { new: '1' })}>${t('schedule.new')}</a></p>`
                : html`<${Loaded} live=${live}>${(/** @type {any} */ data) => html`<${Editor} queue=${queue} name=${name} stored=${data.schedule} text=${data.text} reload=${live.reload} />`}<//>`
        }
    `;
}
