/** The console: draws the page that the address names. */

import { html, render, useEffect, useErrorBoundary, useRef } from './vendor/preact.js';
import { t } from './i18n/index.js';
import * as routes from './api/routes.js';
import { href, useView } from './state/location.js';
import { connection } from './api/client.js';
import { caller, language, login, server, showLanguage, showTheme, theme, virtualNow, zone } from './state/session.js';
import { useLive, useStore } from './state/live.js';
import { Banners, Header, Keyboard, Login } from './ui/shell.js';
import { Failure } from './ui/parts.js';
import { Overview } from './pages/overview.js';
import { Horizon } from './pages/horizon.js';
import { Queue } from './pages/queue.js';
import { Settings } from './pages/settings.js';
import { Search } from './pages/search.js';
import { Task } from './pages/task.js';
import { Dead } from './pages/dead.js';
import { Schedules } from './pages/schedules.js';
import { Schedule } from './pages/schedule.js';
import { Jobs } from './pages/jobs.js';
import { Leases } from './pages/leases.js';
import { Target, Targets } from './pages/target.js';
import { About, Clock, Wheel } from './pages/server.js';

/** @type {Record<string, any>} */
const PAGES = {
    overview: Overview,
    horizon: Horizon,
    queue: Queue,
    settings: Settings,
    search: Search,
    task: Task,
    dead: Dead,
    schedules: Schedules,
    schedule: Schedule,
    jobs: Jobs,
    leases: Leases,
    target: Target,
    targets: Targets,
    clock: Clock,
    wheel: Wheel,
    about: About,
};

const Missing = () => html`
    <h1 tabindex="-1">${t('missing.title')}</h1>
    <p>${t('missing.text')} <a href=${href('overview')}>${t('overview.title')}</a></p>
`;

/** A page, or the error that its code had. @param {{view: import('./state/location.js').View}} props */
function Page({ view }) {
    const [error, reset] = useErrorBoundary();
    // Ranges from now on are of another time when it turns out that the server's clock is virtual, so the page begins again.
    const time = useStore(virtualNow) === null ? '' : ' virtual';
    const at = `${view.page} ${JSON.stringify(view.params)}${time}`;
    const broken = useRef(at);
    useEffect(() => {
        if (error && broken.current !== at) reset();
        broken.current = at;
    }, [at]);
    if (error) return html`<h1 tabindex="-1">${t('error.page')}</h1><${Failure} error=${error} onRetry=${reset} />`;
    // `key` is no property of a component.
    const { key: key_, ...params } = view.params;
    return html`<${PAGES[view.page] ?? Missing} key=${at} ...${params} key_=${key_} query=${view.query} />`;
}

/** The title of the page is its heading. */
function useTitle() {
    useEffect(() => {
        const show = () => {
            const heading = document.querySelector('h1')?.textContent?.trim();
            document.title = heading ? `${heading} · Tickwheel` : 'Tickwheel';
        };
        show();
        const watch = new MutationObserver(show);
        watch.observe(document.body, { childList: true, subtree: true });
        return () => watch.disconnect();
    }, []);
}

/** The server's time, at least to the second. @param {AbortSignal} signal @returns {Promise<string>} */
async function timeOf(signal) {
    const { scopes } = caller.get() ?? (await routes.whoami(signal));
    // A forecast of all queues is refused to a token with a scope. Else the begin of its first bucket is the time.
    return scopes.length > 0 ? routes.timeOfScoped(signal) : (await routes.forecast({ bucket: '1s', span: '1s' }, signal)).from;
}

/** Asks every 5 s what the server says of itself, and for the instant of a virtual clock. It draws nothing, so that an equal answer draws nothing. */
function Watch() {
    const live = useLive((signal) => routes.ready(signal), [], 5000);
    const isVirtual = useStore(server)?.virtual_clock ?? false;
    // A call of its own, so that it is made again soon if it failed.
    useLive(
        async (signal) => {
            const from = await timeOf(signal);
            const known = virtualNow.get();
            if (known === null || Math.abs(Date.parse(from) - known) >= 1000) virtualNow.set(Date.parse(from));
        },
        [isVirtual],
        isVirtual ? 5000 : null,
    );
    const needed = useStore(login) !== null;
    const asked = useLive(
        async (signal) => (needed ? null : routes.whoami(signal)),
        [needed],
        60_000,
    );
    useEffect(() => {
        if (asked.data && JSON.stringify(asked.data) !== JSON.stringify(caller.get())) caller.set(asked.data);
    }, [asked.data]);
    useEffect(() => {
        if (live.data && JSON.stringify(live.data) !== JSON.stringify(server.get())) server.set(live.data);
    }, [live.data]);
    return null;
}

function App() {
    const view = useView();
    const needed = useStore(login);
    const { ok } = useStore(connection);
    useStore(server);
    useStore(caller);
    // A change of these draws everything again.
    useStore(language);
    useStore(zone);
    const isVirtual = useStore(virtualNow) !== null;
    useStore(theme);
    useTitle();
    const at = `${view.page} ${JSON.stringify(view.params)}`;
    const first = useRef(true);
    useEffect(() => {
        // A screen reader reads the heading of a new page.
        if (!first.current) document.querySelector('h1')?.focus?.();
        first.current = false;
    }, [at]);
    // A page that begins again has another heading. It has the focus if the one before had it.
    const wasOnHeading = useRef(false);
    wasOnHeading.current = document.activeElement?.tagName === 'H1';
    useEffect(() => {
        if (wasOnHeading.current) document.querySelector('h1')?.focus?.();
    }, [isVirtual]);
    if (needed) return html`<${Watch} /><${Header} page="" /><${Banners} /><${Login} />`;
    return html`
        <${Watch} />
        <${Header} page=${view.page} />
        <${Banners} />
        <main id="main" class=${ok ? '' : 'lost'}><${Page} view=${view} /></main>
        <${Keyboard} />
    `;
}

function start() {
    // The address of the icon is relative to the page, and a browser reads it again when the page has another address.
    const icon = /** @type {HTMLLinkElement | null} */ (document.querySelector('link[rel="icon"]'));
    if (icon) icon.href = String(icon.href);
    showTheme();
    showLanguage();
    // A changed token may have other rights.
    login.watch((problem) => {
        if (!problem) caller.set(null);
    });
    const root = document.getElementById('console');
    if (root) render(html`<${App} />`, root);
}

start();
