/** Tokens that may not change anything: nothing that changes is drawn, and the server refuses each such call. */

import assert from 'node:assert/strict';
import { VIRTUAL } from './server.js';
import { SIGHTS } from './sights.js';
import { story } from './story.js';
import { tokens } from './tokens.js';
import { word } from './words.js';
import { fill } from './world.js';

/** Buttons that change nothing on the server. */
const HARMLESS = [
    'about.metrics',
    'about.openapi',
    'action.copy',
    'action.reload',
    'action.retry',
    'horizon.table',
    'horizon.all',
    'horizon.zoom',
    'page.first',
    'page.next',
    'payload.download',
    'search.clear',
    'search.go',
    'search.on',
    'settings.undo',
    'action.back',
    'shell.logout',
].map((key) => word(key));

/** The calls of the console that change something. @type {[string, string, object?][]} */
const CHANGES = [
    ['PUT', 'queues/orders%2Fclose/tasks/new', {}],
    ['PATCH', 'queues/orders%2Fclose/tasks/order:10421', { delay: '0s' }],
    ['DELETE', 'queues/orders%2Fclose/tasks/order:10421'],
    ['POST', 'queues/orders%2Fclose/tasks/order:10421/run', {}],
    ['POST', 'queues/orders%2Fclose/tasks/order:10421/release', {}],
    ['PATCH', 'queues/orders%2Fclose', { rate: null }],
    ['POST', 'queues/orders%2Fclose/pause', {}],
    ['POST', 'queues/orders%2Fclose/drain', {}],
    ['POST', 'queues/orders%2Fclose/resume', {}],
    ['POST', 'queues/orders%2Fclose/cancel', { filter: {} }],
    ['POST', 'queues/orders%2Fclose/move', { filter: {}, by: '1h' }],
    ['POST', 'queues/orders%2Fclose/dead/redrive', { keys: ['a'] }],
    ['DELETE', 'queues/orders%2Fclose'],
    ['PUT', 'queues/orders%2Fclose/schedules/nightly', { every: '1h' }],
    ['DELETE', 'queues/orders%2Fclose/schedules/nightly'],
    ['PUT', 'queues/orders%2Fclose/target', { kind: 'webhook', url: 'https://shop.example' }],
    ['DELETE', 'queues/orders%2Fclose/target'],
    ...['pause', 'resume', 'rotate', 'test'].map(
        (verb) => /** @type {[string, string, object]} */ (['POST', `queues/orders%2Fclose/target/${verb}`, {}]),
    ),
    ['DELETE', 'jobs/1'],
    ['POST', 'clock/advance', { by: '1s' }],
];

/** @param {any} page @param {import('./sights.js').Sight[]} sights */
async function drawsNoChange(page, sights) {
    for (const { path, shows, name } of sights) {
        await page.show(path);
        await page.locator('main').getByText(shows).first().waitFor();
        const buttons = await page.locator('main button:visible:not(.sort)').all();
        for (const button of buttons) {
            const words = (await button.innerText()).trim();
            assert.ok(HARMLESS.includes(words) || /^Next \S+$/.test(words), `${name} has the button “${words}”`);
        }
        for (const field of await page.locator('main form:not([role="search"]) :is(input, textarea, select)').all()) {
            assert.ok(await field.isDisabled(), `${name} has a form that can be filled in`);
        }
    }
}

story('a read-only console draws nothing that changes, whatever the caller may do', async ({ open, serve }) => {
    const server = await serve([...VIRTUAL, '--console', 'read-only']);
    await fill(server);
    const page = await open(server, '', { refused: [404] });
    await page.getByText(word('shell.read_only'), { exact: true }).waitFor();
    await drawsNoChange(page, SIGHTS);
});

for (const who of /** @type {const} */ (['reader', 'scoped'])) {
    story(`a token that may look only finds no button: ${who}`, async ({ open, serve }) => {
        const secrets = tokens();
        const server = await serve([...VIRTUAL, '--token-file', secrets.file]);
        server.token = secrets.all;
        await fill(server);
        const page = await open(server, '', { token: secrets[who], refused: [403, 404] });
        const sights = who === 'reader' ? SIGHTS : SIGHTS.filter(({ scoped }) => scoped);
        assert.ok(sights.length > 3);
        await drawsNoChange(page, sights);
        for (const [method, path, body] of CHANGES) {
            const status = await page.evaluate(
                async (/** @type {any[]} */ [method, url, body, token]) =>
                    (await fetch(url, { method, headers: { authorization: `Bearer ${token}` }, body: body && JSON.stringify(body) }))
                        .status,
                [method, `${server.url}/v1/${path}`, body, secrets[who]],
            );
            assert.equal(status, 403, `${method} ${path}`);
        }
    });
}

story('a token with a scope sees its queues and no others', async ({ open, serve }) => {
    const secrets = tokens();
    const server = await serve([...VIRTUAL, '--token-file', secrets.file]);
    server.token = secrets.all;
    await fill(server);
    const page = await open(server, '', { token: secrets.scoped, refused: [403, 404] });
    // Its pages reckon with the time of the server, too, and begin again when they know it.
    await page.locator('.banner').getByText(/2030-/).waitFor();
    await page.getByRole('rowheader').first().waitFor();
    assert.deepEqual((await page.getByRole('rowheader').allInnerTexts()).map((/** @type {string} */ text) => text.trim()).sort(), [
        'orders/close',
        'orders/confirm',
    ]);
    for (const path of ['q/mail%2Fsend', 'q/mail%2Fsend/dead', 'q/reports/schedules/nightly', 'q/mail%2Fsend/t/mail:now-1']) {
        await page.show(path);
        await page.locator('main .box').first().waitFor();
        assert.ok(!/SMTP|Welcome|Europe\/Berlin/.test(await page.locator('main').innerText()), path);
    }
});

story('a token with all rights in a scope may not move the clock of all queues', async ({ open, serve }) => {
    const secrets = tokens();
    const server = await serve([...VIRTUAL, '--token-file', secrets.file]);
    server.token = secrets.all;
    await server.put('orders/close', 'a', { delay: '1h' });
    const page = await open(server, 'q/orders%2Fclose', { token: secrets.owner, refused: [403] });
    await page.getByRole('button', { name: word('action.pause_for') }).waitFor();
    await page.show('clock');
    await page.locator('.big-time').waitFor();
    assert.equal(await page.locator('main').getByRole('button', { name: /^\+/ }).count(), 0);
    const all = await open(server, 'clock', { token: secrets.all });
    await all.getByRole('button', { name: '+15d' }).waitFor();
});
