/** The settings of a queue as a form, with what will change before it is saved. */

import { html, useEffect, useState } from '../vendor/preact.js';
import { number, t } from '../i18n/index.js';
import * as routes from '../api/routes.js';
import { writeDuration } from '../logic/duration.js';
import { FIELDS, check, difference, patchOf, valuesOf } from '../logic/settings.js';
import { go, href } from '../state/location.js';
import { useLive } from '../state/live.js';
import { may } from '../state/session.js';
import { Failure, Field, Loaded, QueueTabs } from '../ui/parts.js';

/** The words for a member of the settings. @param {string} name */
export const settingWord = (name) => t(`setting.${name}`);

/** @param {import('../logic/settings.js').Field} field */
function limits(field) {
    const write = (/** @type {number} */ n) => (field.kind === 'duration' ? writeDuration(n) : number(n, 1));
    return { min: write(field.min ?? 0), max: write(field.max ?? 0) };
}

/** @param {{field: import('../logic/settings.js').Field, value: string, server: any, disabled: boolean, onChange: (text: string) => void}} props */
function Setting({ field, value, server, disabled, onChange }) {
    const id = `setting-${field.name}`;
    const problem = check(field, value);
    // The server names the member that it refuses: `retry.base`, or `retry` for all of it.
    const refused = server?.member === field.name ? server.detail : null;
    const wrong = problem ? t(problem, limits(field)) : refused;
    const preset = field.preset ?? t('settings.no_limit');
    return html`
        <${Field} id=${id} label=${settingWord(field.name)} note=${t(`setting.${field.name}.note`)} wrong=${wrong}>
            <div class="with-button">
                ${
                    field.kind === 'choice'
                        ? html`<select id=${id} value=${value} disabled=${disabled} onChange=${(/** @type {any} */ e) => onChange(e.target.value)}>
                        <option value="">${preset}</option>${field.choices?.map((c) => html`<option value=${c} selected=${c === value}>${c}</option>`)}
                    </select>`
                        : html`<input id=${id} value=${value} placeholder=${preset} disabled=${disabled} autocomplete="off" spellcheck=${false} inputmode=${field.kind === 'integer' ? 'numeric' : 'text'} onInput=${(/** @type {any} */ e) => onChange(e.target.value)} />`
                }
                ${may('admin') && html`<button type="button" class="quiet" disabled=${disabled || value === ''} onClick=${() => onChange('')} aria-label=${t('settings.reset_of', { name: settingWord(field.name) })}>${t('settings.reset')}</button>`}
            </div>
        <//>
    `;
}

/** @param {{queue: string}} props */
export function Settings({ queue }) {
    const live = useLive((signal) => routes.queue(queue, signal), [queue]);
    const [values, setValues] = useState(/** @type {Record<string, string> | null} */ (null));
    const [error, setError] = useState(/** @type {any} */ (null));
    const [saved, setSaved] = useState(false);
    const [busy, setBusy] = useState(false);
    useEffect(() => {
        if (live.data && values === null) setValues(valuesOf(live.data));
    }, [live.data]);
    return html`
        <h1 tabindex="-1"><span class="name">${queue}</span> · ${t('settings.title')}</h1>
        <${QueueTabs} queue=${queue} page="settings" />
        <${Loaded} live=${live}>${(/** @type {any} */ data) => {
            const before = valuesOf(data);
            const after = values ?? before;
            const changes = difference(before, after);
            const wrong = FIELDS.some((field) => check(field, after[field.name]) !== null);
            const disabled = !may('admin') || busy;
            const save = (/** @type {Event} */ event) => {
                event.preventDefault();
                if (wrong || changes.length === 0) return;
                setBusy(true);
                routes
                    .patchQueue(queue, patchOf(changes))
                    .then((answer) => {
                        live.replace(answer);
                        setValues(valuesOf(answer));
                        setError(null);
                        setSaved(true);
                    }, setError)
                    .finally(() => setBusy(false));
            };
            const change = (/** @type {string} */ name, /** @type {string} */ text) => {
                setSaved(false);
                if (error?.member === name) setError(null);
                setValues({ ...after, [name]: text });
            };
            const show = (/** @type {string} */ name, /** @type {string} */ text) =>
                text === '' ? (FIELDS.find((f) => f.name === name)?.preset ?? t('settings.no_limit')) : text;
            return html`
                <form class="settings" onSubmit=${save}>
                    ${[
                        ['', 'settings.limits'],
                        ['retry', 'settings.retry'],
                        ['history', 'settings.history'],
                    ].map(
                        ([part, word]) => html`
                        <fieldset>
                            <legend>${t(word)}</legend>
                            ${FIELDS.filter(({ name }) => (name.includes('.') ? name.split('.')[0] : '') === part).map(
                                (field) => html`
                                <${Setting} key=${field.name} field=${field} value=${after[field.name]} server=${error} disabled=${disabled} onChange=${(/** @type {string} */ text) => change(field.name, text)} />
                            `,
                            )}
                        </fieldset>
                    `,
                    )}
                    ${error && html`<${Failure} error=${error} />`}
                    <div class="save" role="group" aria-label=${t('settings.changes')}>
                        ${
                            changes.length === 0
                                ? html`<p class="dim" role="status">${saved ? t('settings.saved') : t('settings.unchanged')}</p>`
                                : html`<ul class="diff">${changes.map((c) => html`<li>${settingWord(c.name)}: <del>${show(c.name, c.before)}</del> → <ins>${show(c.name, c.after)}</ins></li>`)}</ul>`
                        }
                        <div class="buttons">
                            <button type="button" disabled=${busy} onClick=${() => (changes.length > 0 ? setValues(before) : go(href('queue', { queue })))}>${changes.length > 0 ? t('settings.undo') : t('action.back')}</button>
                            ${may('admin') && html`<button type="submit" class="primary" disabled=${busy || wrong || changes.length === 0}>${t('settings.save')}</button>`}
                        </div>
                    </div>
                </form>
            `;
        }}<//>
    `;
}
