/** Dialogs. One that destroys names the number of tasks first, and wants the queue's name where they are many. */

import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { number, t } from '../i18n/index.js';
import { href } from '../state/location.js';
import * as routes from '../api/routes.js';
import { endedBadly } from '../logic/filter.js';
import { Failure, Loading } from './parts.js';

/** From this number of tasks on, the queue's name is typed. */
export const TYPED_FROM = 1000;

/**
 * @param {{title: string, onClose: () => void, children: any}} props
 */
export function Dialog({ title, onClose, children }) {
    const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
    useEffect(() => {
        const dialog = box.current;
        if (dialog && !dialog.open) {
            dialog.showModal();
            /** @type {HTMLElement | null} */ (dialog.querySelector('[data-first]'))?.focus();
        }
        return () => dialog?.close();
    }, []);
    useEffect(() => {
        // A button that went with the step before took the focus with it.
        if (document.activeElement === document.body)
            /** @type {HTMLElement | null} */ (box.current?.querySelector('[data-first]') ?? null)?.focus();
    });
    return html`
        <dialog ref=${box} aria-labelledby="dialog-title" onCancel=${(/** @type {Event} */ e) => {
            e.preventDefault();
            onClose();
        }}
            onClick=${(/** @type {Event} */ e) => {
                if (e.target === box.current) onClose();
            }}>
            <div class="dialog">
                <h2 id="dialog-title">${title}</h2>
                ${children}
            </div>
        </dialog>
    `;
}

/** How far a job is. @param {{job: any, note?: any}} props */
export const Progress = ({ job, note }) => html`
    <div class="progress">
        <progress max=${Math.max(1, job.of)} value=${job.state === 'done' ? Math.max(1, job.of) : job.looked_at} aria-label=${t('jobs.progress')}></progress>
        <small>${t('jobs.looked', { looked: job.looked_at, of: job.of })} ${note}</small>
    </div>
`;

/**
 * Waits for a job that was begun by a call. An answer that is no job passes. A job that did not get to its end is an error: its numbers
 * are of a part.
 * @param {any} answer
 * @param {(job: any) => void} onProgress
 * @param {() => boolean} stopped
 */
export async function ended(answer, onProgress, stopped) {
    let job = answer;
    while (job && job.id !== undefined && job.state === 'running' && !stopped()) {
        onProgress(job);
        await new Promise((done) => setTimeout(done, 500));
        job = await routes.job(job.id);
    }
    if (endedBadly(job))
        throw Object.assign(new Error(), {
            status: 0,
            title: t('confirm.job_ended', { id: String(job.id) }),
            detail: job.error ?? job.detail ?? t(`jobs.state_${job.state}`),
            hint: '',
        });
    return job;
}

/**
 * Asks before something is done that cannot be undone.
 * @param {object} props
 * @param {string} props.title
 * @param {any} props.text
 * @param {string} props.action The word of the button.
 * @param {string} props.queue
 * @param {() => Promise<any>} [props.count] A dry run; answers `matched` or a job that has it.
 * @param {number} [props.known] The number of tasks, if there is no dry run.
 * @param {boolean} [props.offerRevoke] Whether leased tasks may be included.
 * @param {(options: {revoke: boolean, matched: number, stopped: () => boolean}) => Promise<any>} props.run What is done. `matched` is the number that was shown, and `stopped` says whether the dialog was closed.
 * @param {(answer: any) => any} [props.done] The words for the answer.
 * @param {() => void} props.onClose
 * @param {(closed: boolean) => void} [props.onDone] `closed` says whether the dialog was closed during the call.
 */
export function Confirm({ title, text, action, queue, count, known, offerRevoke, run, done, onClose, onDone }) {
    const [matched, setMatched] = useState(/** @type {number | null} */ (count ? null : (known ?? 1)));
    const [error, setError] = useState(/** @type {any} */ (null));
    const [typed, setTyped] = useState('');
    const [revoke, setRevoke] = useState(false);
    const [busy, setBusy] = useState(false);
    const [answer, setAnswer] = useState(/** @type {any} */ (null));
    const [job, setJob] = useState(/** @type {any} */ (null));
    const [work, setWork] = useState(/** @type {any} */ (null));
    const closed = useRef(false);
    useEffect(() => {
        if (count) {
            count()
                .then((first) => ended(first, setJob, () => closed.current))
                .then((result) => {
                    if (closed.current) return;
                    setJob(null);
                    setMatched(result.matched);
                })
                .catch(setError);
        }
        return () => {
            closed.current = true;
        };
    }, []);
    const mustType = (matched ?? 0) > TYPED_FROM;
    useEffect(() => {
        // The field comes with the number. A reader who is in another field by then stays there.
        if (mustType && !document.activeElement?.matches('dialog input')) document.getElementById('confirm-name')?.focus();
    }, [mustType]);
    const go = async (/** @type {Event} */ event) => {
        event.preventDefault();
        setBusy(true);
        setError(null);
        try {
            const first = await run({ revoke, matched: matched ?? 0, stopped: () => closed.current });
            const last = await ended(first, setWork, () => closed.current);
            setAnswer(last ?? {});
            // A dialog that was closed during the call leads the reader nowhere, and closes no later one.
            onDone?.(closed.current);
            if (!done && !closed.current) onClose();
        } catch (failure) {
            setError(failure);
        }
        setWork(null);
        setBusy(false);
    };
    if (answer && done) {
        return html`<${Dialog} title=${title} onClose=${onClose}>
            <p role="status">${done(answer)}</p>
            <div class="buttons"><button type="button" data-first onClick=${onClose}>${t('action.close')}</button></div>
        <//>`;
    }
    if (work) {
        return html`<${Dialog} title=${title} onClose=${onClose}>
            <p>${t('confirm.job', { id: String(work.id) })} <a href=${href('jobs')}>${t('jobs.title')}</a></p>
            <${Progress} job=${work} />
            <div class="buttons">
                <button type="button" class="danger" onClick=${() => routes.stopJob(work.id).catch(setError)}>${t('jobs.stop_now')}</button>
                <button type="button" data-first onClick=${onClose}>${t('action.close')}</button>
            </div>
        <//>`;
    }
    return html`<${Dialog} title=${title} onClose=${onClose}>
        <form onSubmit=${go}>
            <div>${text}</div>
            ${
                count &&
                (matched === null
                    ? !error &&
                      (job
                          ? html`<p role="status">${t('confirm.counting', { looked: job.looked_at, of: job.of })}</p>`
                          : html`<${Loading} />`)
                    : html`<p class="count" role="status">${t('confirm.count', { n: matched })}</p>`)
            }
            ${offerRevoke && html`<label class="check"><input type="checkbox" checked=${revoke} onChange=${(/** @type {any} */ e) => setRevoke(e.target.checked)} />${t('confirm.revoke')}</label>`}
            ${
                mustType &&
                html`
                <div class="field">
                    <label for="confirm-name">${t('confirm.type', { queue })}</label>
                    <input id="confirm-name" data-first autocomplete="off" spellcheck=${false} value=${typed} onInput=${(/** @type {any} */ e) => setTyped(e.target.value)} />
                </div>`
            }
            ${error && html`<${Failure} error=${error} />`}
            <div class="buttons">
                <button type="button" data-first onClick=${onClose}>${t('action.keep')}</button>
                <button type="submit" class="danger" disabled=${busy || matched === null || matched === 0 || (mustType && typed !== queue)}>
                    ${action}${count && matched ? ` (${number(matched)})` : ''}
                </button>
            </div>
        </form>
    <//>`;
}
