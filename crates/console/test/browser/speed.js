/** Measures the pages of the console on a full server; `scripts/measure/console_speed` calls it with the program. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { at, open } from './page.js';
import { Server } from './server.js';
import { launch } from './tools.js';

const PROGRAM = process.argv[2];
const [TASKS = 10_000_000, QUEUES = 1_000, SCHEDULES = 100, ROUNDS = 20] = process.argv.slice(3).map(Number);
const name = (/** @type {number} */ n) => `shop/${String(n).padStart(4, '0')}`;
/** The queue that the pages of one queue show. */
const MIDDLE = QUEUES >> 1;
const EVENTS = 30_000;

/** @param {Server} server */
async function fill(server) {
    const each = Math.ceil(TASKS / QUEUES);
    for (let n = 0; n < QUEUES; n += 1) {
        const task = (/** @type {number} */ i) => ({
            key: `order:${n * each + i}`,
            // One in a hundred is due already; the others are due in the next 30 days.
            delay: i % 100 === 0 ? '0s' : `${((i * 7919 + n * 104_729) % 2_592_000) + 60}s`,
            tags: i % 100 === 1 ? ['vip'] : [],
            payload: { order: n * each + i, total: 19.9 },
        });
        await server.putAll(name(n), Array.from({ length: each }, (_, i) => task(i)));
        if (n % 50 === 49) console.error(`${(n + 1) * each} tasks`);
    }
    for (let n = 0; n < SCHEDULES; n += 1) {
        const path = `/v1/queues/${encodeURIComponent(name(n))}/schedules/nightly`;
        await server.call('PUT', path, { cron: `${n % 60} ${n % 24} * * *`, tz: 'Europe/Berlin' });
    }
}

/** Notes when a selector is there and nothing is loading, in milliseconds since the begin of the document, as `window.seen`. */
const WATCH = `
window.watchFor = (selector) => {
    window.seen = null;
    const look = () => {
        if (document.querySelector(selector) && (selector.includes('.going') || !document.querySelector('main .loading'))) window.seen = performance.now();
        else requestAnimationFrame(look);
    };
    look();
};
window.longest = 0;
new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration); }).observe({ type: 'longtask' });
`;

const isSeen = () => typeof (/** @type {any} */ (window).seen) === 'number';
const seenAt = () => /** @type {any} */ (window).seen;

/** @param {number[]} values */
function spread(values) {
    const sorted = [...values].sort((a, b) => a - b);
    const middle = sorted.length >> 1;
    const median = sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    return `${median.toFixed(0).padStart(6)} (${sorted[0].toFixed(0)} to ${sorted[sorted.length - 1].toFixed(0)})`;
}

/** @param {string} what @param {string} goal @param {number[]} page @param {number[]} [plain] */
const row = (what, goal, page, plain = []) =>
    console.log(`${what.padEnd(30)} ${goal.padEnd(14)} ${spread(page).padEnd(26)} ${plain.length ? spread(plain) : ''}`);

/** The time of calls by a plain client (ms). @param {Server} server @param {string[]} paths */
async function plain(server, paths) {
    const begun = performance.now();
    await Promise.all(paths.map((path) => server.call('GET', path)));
    return performance.now() - begun;
}

/** The first events of a stream. @param {Server} server @param {string} topics @param {number} count */
async function events(server, topics, count) {
    const answer = await fetch(`${server.url}/v1/events?topics=${topics}`);
    let text = '';
    for await (const piece of /** @type {any} */ (answer.body).pipeThrough(new TextDecoderStream())) {
        text += piece;
        if (text.split('\n\n').length > count + 1) break;
    }
    return text.split('\n\n').filter((one) => one.startsWith('event: '));
}

/** The first paint and the whole overview, in a new browser profile and again in the same one. @param {any} browser @param {Server} server */
async function loads(browser, server) {
    /** @type {Record<string, number[]>} */
    const seen = { cold: [], warm: [], whole: [], plain: [] };
    const paint = () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0;
    for (let n = 0; n < ROUNDS; n += 1) {
        const script = `${WATCH} document.addEventListener('DOMContentLoaded', () => window.watchFor('main tbody tr'));`;
        const { page, context } = await open(browser, at(server.url, ''), { script });
        await page.waitForFunction(isSeen);
        seen.cold.push(await page.evaluate(paint));
        seen.whole.push(await page.evaluate(seenAt));
        await page.reload();
        await page.waitForFunction(isSeen);
        seen.warm.push(await page.evaluate(paint));
        await context.close();
        const begun = performance.now();
        await events(server, 'stats,queues', 2);
        seen.plain.push(performance.now() - begun);
    }
    row('first paint, cold', '300', seen.cold);
    row('first paint, warm', '100', seen.warm);
    row('overview complete', '500', seen.whole, seen.plain);
}

/** A page that is shown as a link shows it. @param {any} page @param {Server} server @param {string} path @param {string} selector */
async function shown(page, server, path, selector) {
    await page.evaluate(
        ([address, wanted]) => {
            window.history.pushState(null, '', address);
            const begun = performance.now();
            window.dispatchEvent(new PopStateEvent('popstate'));
            // The page before is gone in the next frame.
            requestAnimationFrame(() => requestAnimationFrame(() => /** @type {any} */ (window).watchFor(wanted)));
            /** @type {any} */ (window).begun = begun;
            /** @type {any} */ (window).seen = null;
        },
        [at(server.url, path), selector],
    );
    await page.waitForFunction(isSeen, null, { timeout: 120_000 });
    return page.evaluate(() => /** @type {any} */ (window).seen - /** @type {any} */ (window).begun);
}

/** @param {any} browser @param {Server} server */
async function views(browser, server) {
    const { page, context } = await open(browser, at(server.url, 'about'), { script: WATCH });
    const queue = encodeURIComponent(name(MIDDLE));
    const key = `order:${MIDDLE * Math.ceil(TASKS / QUEUES) + 77}`;
    const tasks = `/v1/queues/${queue}/tasks?limit=50&payloads=false`;
    /** @type {[string, string, string, string, string[]][]} */
    const list = [
        ['a key', '50', `q/${queue}/tasks?key=${key}`, 'main tbody tr', [`${tasks}&key=${key}`]],
        ['a tag: rows or progress', '250', `q/${queue}/tasks?tag=vip`, 'main tbody tr, main .going', [`${tasks}&tag=vip`]],
        ['a tag: all of the page', '', `q/${queue}/tasks?tag=vip`, 'main tbody tr, main .box', [`${tasks}&tag=vip`]],
        ['a page of a state', '200', `q/${queue}/tasks?state=ready`, 'main tbody tr', [`${tasks}&state=ready`]],
        ['a task', '', `q/${queue}/t/${key}`, 'main .payload', [`/v1/queues/${queue}/tasks/${key}`, `/v1/queues/${queue}/tasks/${key}/story`]],
        ['horizon of a queue', 'a spinner', `horizon?queue=${queue}`, 'main .chart svg', [`/v1/forecast?scale=log&schedules=true&queue=${queue}`]],
        ['horizon of all', '500', 'horizon', 'main .chart svg', ['/v1/forecast?scale=log&schedules=true', '/v1/queues']],
        ['schedules', '', 'schedules', 'main tbody tr', ['/v1/schedules?sort=next&limit=100']],
    ];
    for (const [what, goal, path, selector, paths] of list) {
        const [pages, calls] = [/** @type {number[]} */ ([]), /** @type {number[]} */ ([])];
        const begun = performance.now();
        // A page that takes very long is measured less often.
        for (let n = 0; n < ROUNDS && performance.now() - begun < 120_000; n += 1) {
            await shown(page, server, 'about', 'main h1');
            pages.push(await shown(page, server, path, selector));
            calls.push(await plain(server, paths));
        }
        row(what, goal, pages, calls);
    }
    await shown(page, server, `q/${queue}/tasks?limit=500`, 'main tbody tr:nth-child(500)');
    const longest = [];
    for (let n = 0; n < ROUNDS; n += 1) {
        await page.evaluate(() => void (/** @type {any} */ (window).longest = 0));
        await page.mouse.move(600, 500);
        for (let step = 0; step < 10; step += 1) await page.mouse.wheel(0, step < 5 ? 1_200 : -1_200);
        await page.waitForTimeout(500);
        longest.push(await page.evaluate(() => /** @type {any} */ (window).longest));
    }
    row('500 rows: longest script task', '50', longest);
    await context.close();
}

/** Events of 8 hours, played in as fast as the page takes them. @param {any} browser @param {Server} server */
async function growth(browser, server) {
    const [stats, queues] = await events(server, 'stats,queues', 2);
    // A stream that says nothing until `play`, and stays open after that.
    const script = `
        const real = window.fetch;
        window.fetch = (url, options) => {
            if (!String(url).includes('/v1/events')) return real(url, options);
            const start = (stream) => {
                const send = (text) => stream.enqueue(new TextEncoder().encode(text + '\\n\\n'));
                send(${JSON.stringify(queues)});
                send(${JSON.stringify(stats)});
                const one = (n) => ${JSON.stringify(stats)}.replace(/id: \\d+/, 'id: ' + n).replace(/"dead":\\d+/, '"dead":' + n);
                window.play = () => { for (let n = 1; n <= ${EVENTS}; n += 1) send(one(n)); };
            };
            return Promise.resolve(new Response(new ReadableStream({ start }), { headers: { 'content-type': 'text/event-stream' } }));
        };`;
    const { page, context } = await open(browser, at(server.url, ''), { script });
    const cdp = await context.newCDPSession(page);
    const heap = async () => {
        await cdp.send('HeapProfiler.collectGarbage');
        return (await cdp.send('Runtime.getHeapUsage')).usedSize;
    };
    await page.waitForTimeout(2_000);
    const before = await heap();
    await page.evaluate(() => /** @type {any} */ (window).play());
    await page.locator('.tile dd').getByText(/^30(,000|K)$/).waitFor({ timeout: 120_000 });
    await page.waitForTimeout(2_000);
    const grown = (await heap()) - before;
    console.log(`${'heap after 30,000 events'.padEnd(30)} ${'50 MB more'.padEnd(14)} ${(grown / 1e6).toFixed(1)} MB more`);
    await context.close();
}

const folder = mkdtempSync(`${tmpdir()}/tickwheel-speed-`);
const server = new Server(PROGRAM);
try {
    await server.start(['--data', folder]);
    const begun = performance.now();
    await fill(server);
    console.error(`filled in ${((performance.now() - begun) / 1000).toFixed(0)} s`);
    const browser = await launch();
    console.log(`${'(ms)'.padEnd(30)} ${'goal'.padEnd(14)} ${`page, ${ROUNDS} times`.padEnd(26)} its calls alone`);
    await loads(browser, server);
    await views(browser, server);
    await growth(browser, server);
    await browser.close();
} finally {
    await server.kill();
    rmSync(folder, { recursive: true });
}
