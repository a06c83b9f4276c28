/** Pages of the console, each in a context of its own, and all that goes wrong on them. */

import { readFileSync } from 'node:fs';

/**
 * @typedef {object} Options
 * @property {string} [token]
 * @property {'light' | 'dark'} [theme]
 * @property {'en' | 'zh'} [language]
 * @property {number} [width]
 * @property {number[]} [refused] Statuses of refusals that the story brings about.
 * @property {boolean} [lost] Whether the story takes the server away.
 * @property {string} [script] It runs in each document before the page's own.
 */

/** `PATIENCE=5` waits five times as long, on a machine that is busy with other things. */
export const PATIENCE = Number(process.env.PATIENCE ?? 1);

const TYPES = { js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml', html: 'text/html', txt: 'text/plain' };

/** `ASSETS=crates/console/assets` gives the browser the files of this folder, so that a change of them needs no build. @param {any} context */
async function fromFolder(context) {
    const folder = process.env.ASSETS;
    if (!folder) return;
    await context.route(/\/console\/a\/[0-9a-f]+\//, async (/** @type {any} */ route) => {
        const name = new URL(route.request().url()).pathname.replace(/^.*\/console\/a\/[0-9a-f]+\//, '');
        const type = TYPES[/** @type {keyof typeof TYPES} */ (name.split('.').pop())];
        await route.fulfill({ body: readFileSync(`${folder}/${name}`), contentType: type });
    });
}

/**
 * Opens a page.
 * @param {any} browser
 * @param {string} url Of the console, such as `http://127.0.0.1:8463/console/horizon`.
 * @param {Options} options
 */
export async function open(browser, url, options) {
    const { theme = 'light', language = 'en', width = 1280 } = options;
    const context = await browser.newContext({
        viewport: { width, height: 900 },
        colorScheme: theme,
        locale: language === 'zh' ? 'zh-CN' : 'en-US',
        timezoneId: 'Europe/Berlin',
    });
    context.setDefaultTimeout(15_000 * PATIENCE);
    /** @type {string[]} */
    const faults = [];
    const { origin } = new URL(url);
    await context.exposeBinding('reportFault', (/** @type {any} */ _, /** @type {string} */ text) => void faults.push(text));
    await context.addInitScript(() => {
        document.addEventListener('securitypolicyviolation', (e) => {
            /** @type {any} */ (window).reportFault(
                `the policy ${e.violatedDirective} was broken by ${e.blockedURI} ${e.sample} at ${e.sourceFile}:${e.lineNumber}`,
            );
        });
    });
    if (options.token) {
        await context.addInitScript((/** @type {string} */ token) => {
            // The empty page before the first one has no storage.
            if (!window.location.protocol.startsWith('http')) return;
            if (!window.sessionStorage.getItem('tickwheel.tested')) window.sessionStorage.setItem('tickwheel.token', token);
            window.sessionStorage.setItem('tickwheel.tested', 'yes');
        }, options.token);
    }
    if (options.script) await context.addInitScript({ content: options.script });
    context.on('request', (/** @type {any} */ request) => {
        const to = new URL(request.url());
        if (to.origin !== origin && to.protocol !== 'data:' && to.protocol !== 'blob:') faults.push(`a request went to ${to.href}`);
    });
    context.on('console', (/** @type {any} */ message) => {
        if (!['error', 'warning'].includes(message.type())) return;
        const text = message.text();
        const status = /^Failed to load resource: the server responded with a status of (\d+)/.exec(text)?.[1];
        if (status && options.refused?.includes(Number(status))) return;
        // Pages of other stories ask for forecasts, too, and the server makes one at a time. The page asks again.
        if (status === '429' && message.location().url.includes('/v1/forecast')) return;
        if (options.lost && text.startsWith('Failed to load resource: net::')) return;
        faults.push(`the browser's console says: ${text} (${message.location().url})`);
    });
    context.on('weberror', (/** @type {any} */ error) => faults.push(`an error was not caught: ${error.error().stack}`));
    await fromFolder(context);
    const page = await context.newPage();
    await page.goto(url);
    return { context, page, faults };
}

/** The address of a path of the console. @param {string} base The server's, or a proxy's. @param {string} path */
export const at = (base, path) => `${base}/console/${path}`;
