/** A server that is killed and comes back, and one behind a proxy. */

import assert from 'node:assert/strict';
import { SIGHTS } from './sights.js';
import { PATIENCE } from './page.js';
import { proxy } from './proxy.js';
import { story } from './story.js';
import { folder } from './tokens.js';
import { word } from './words.js';

/** A page has recovered by itself after at most this time. */
const RECOVERY_MS = 5000 * PATIENCE;

story('a page keeps its data while the server is gone, and goes on by itself', async ({ open, serve }) => {
    const data = `${folder()}/data`;
    const server = await serve(['--data', data]);
    const address = server.url.slice('http://'.length);
    await server.put('orders', 'order:1', { delay: '1h' });
    const pages = [];
    for (const path of ['', 'q/orders', 'q/orders/t/order:1', 'horizon', 'jobs']) {
        const page = await open(server, path, { lost: true });
        await page.locator('main .loading').first().waitFor({ state: 'detached' });
        pages.push(page);
    }
    const [overview, queue, task] = pages;
    await overview.getByRole('link', { name: 'orders' }).waitFor();
    await server.kill();
    for (const page of pages) {
        await page
            .getByRole('status')
            .getByText(/^As of \d\d:\d\d:\d\d/)
            .waitFor();
        assert.equal(await page.locator('main.lost').count(), 1);
    }
    // The data stays, greyed, and it is said to be old.
    assert.equal(await overview.getByRole('link', { name: 'orders' }).count(), 1);
    assert.equal(await task.locator('.why').count(), 1);
    await server.start(['--data', data], address);
    const begun = Date.now();
    await Promise.all(pages.map((page) => page.locator('main.lost').waitFor({ state: 'detached', timeout: RECOVERY_MS })));
    assert.ok(Date.now() - begun <= RECOVERY_MS);
    await server.put('orders', 'order:2', { delay: '1h' });
    await queue
        .locator('.tile')
        .filter({ hasText: word('state.scheduled') })
        .getByText('2', { exact: true })
        .waitFor();
});

story('the console works below the path of a proxy', async ({ open, world, atEnd }) => {
    const server = await world();
    const front = await proxy(server.url, '/internal/queue');
    atEnd(front.close);
    const page = await open(front, '');
    for (const { path, shows } of SIGHTS) {
        await page.load(path);
        await page.locator('main').getByText(shows).first().waitFor();
    }
    await page.load('');
    await page.getByRole('link', { name: 'orders/close' }).click();
    await page.waitForURL(`${front.url}/console/q/orders%2Fclose`);
    await page.getByRole('link', { name: word('search.title'), exact: true }).click();
    await page.getByRole('rowheader').first().getByRole('link').click();
    await page.waitForURL(`${front.url}/console/q/orders%2Fclose/t/**`);
    await page.reload();
    await page.locator('.payload').waitFor();
    await page.getByRole('link', { name: word('about.title'), exact: true }).click();
    await page.getByText(`${front.url}/`, { exact: true }).waitFor();
    for (const link of await page.locator('main a[href]').all()) {
        const href = await link.evaluate((/** @type {HTMLAnchorElement} */ e) => e.href);
        assert.ok(href.startsWith(`${front.url}/`), href);
        assert.equal((await fetch(href)).status, 200, href);
    }
    assert.deepEqual(front.strays, [], 'calls beside the path');
});

/** Lets a story say whether the tab is looked at, and counts the streams of the page. */
const LOOKED_AT = `
window.away = true;
window.begun = 0;
window.ended = 0;
Object.defineProperty(document, 'hidden', { get: () => window.away });
const own = window.fetch;
window.fetch = (url, options) => {
    if (String(url).includes('/v1/events')) {
        window.begun += 1;
        options.signal.addEventListener('abort', () => (window.ended += 1));
    }
    return own(url, options);
};`;

story('a tab has a stream while it is looked at', async ({ open, serve }) => {
    const server = await serve();
    await server.put('first', 'a', { delay: '1h' });
    const page = await open(server, '', { script: LOOKED_AT });
    const look = (/** @type {boolean} */ away) =>
        page.evaluate((/** @type {boolean} */ value) => {
            /** @type {any} */ (window).away = value;
            document.dispatchEvent(new Event('visibilitychange'));
        }, away);
    await page.getByRole('rowheader').getByText('first').waitFor();
    assert.equal(await page.evaluate(() => /** @type {any} */ (window).begun), 0, 'a tab in the background asks');
    await look(false);
    await server.put('second', 'a', { delay: '1h' });
    await page.getByRole('rowheader').getByText('second').waitFor();
    assert.equal(await page.evaluate(() => /** @type {any} */ (window).begun - /** @type {any} */ (window).ended), 1);
    await look(true);
    await page.waitForFunction(() => /** @type {any} */ (window).begun === /** @type {any} */ (window).ended);
});
