/** The target of a queue, from its making to its end, with a receiver that the story owns. */

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { story } from './story.js';
import { folder } from './tokens.js';
import { word } from './words.js';

/** A receiver on a free port, whose status the story sets. @param {(undo: () => any) => void} atEnd */
async function receiver(atEnd) {
    const state = { status: 204, keys: /** @type {string[]} */ ([]), address: '' };
    const http = createServer((request, response) => {
        request.resume();
        state.keys.push(decodeURIComponent(String(request.headers['tickwheel-key'])));
        response.statusCode = state.status;
        response.end(state.status === 204 ? undefined : 'the shop is closed');
    });
    await new Promise((done) => http.listen(0, '127.0.0.1', () => done(undefined)));
    const { port } = /** @type {import('node:net').AddressInfo} */ (http.address());
    state.address = `127.0.0.1:${port}`;
    atEnd(() => {
        http.close();
        http.closeAllConnections();
    });
    return state;
}

/** @param {string} address */
function options(address) {
    const file = `${folder()}/keys`;
    writeFileSync(file, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
    return ['--memory', '--push-allow', address, '--secret-key-file', file];
}

story('a target is made, gets tasks, is tested, paused, and deleted', async ({ open, serve, atEnd }) => {
    const shop = await receiver(atEnd);
    const server = await serve(options(shop.address));
    const page = await open(server, 'q/hooks/target', { refused: [400, 404] });
    const main = page.locator('main');
    const button = (/** @type {string} */ key) => main.getByRole('button', { name: word(key), exact: true });
    const dialog = page.getByRole('dialog');
    const press = (/** @type {string} */ key) => dialog.getByRole('button', { name: word(key), exact: true }).click();
    const tile = (/** @type {string} */ key) =>
        main
            .locator('.tile')
            .filter({ hasText: word(key) })
            .locator('dd');

    const state = page.locator('h1 .chip');

    await main.getByText(word('target.none')).waitFor();
    await button('target.new').click();
    await dialog.getByLabel(word('settings.title')).fill('{"kind": "webhook"');
    assert.ok(await dialog.getByRole('button', { name: word('settings.save') }).isDisabled(), 'this is no JSON');
    await dialog.getByLabel(word('settings.title')).fill('{"kind": "webhook"}');
    await press('settings.save');
    await dialog.getByRole('alert').locator('code').getByText('url', { exact: true }).first().waitFor();
    await dialog.getByLabel(word('settings.title')).fill(JSON.stringify({ kind: 'webhook', url: `http://${shop.address}/{queue}` }));
    await press('settings.save');
    await state.filter({ hasText: word('target.closed') }).waitFor();

    await server.put('hooks', 'order:1', { payload: { order: 1 } });
    await main.getByRole('rowheader', { name: 'order:1' }).waitFor();
    await tile('target.acked').filter({ hasText: /^1$/ }).waitFor();
    assert.deepEqual(shop.keys, ['order:1']);

    shop.status = 500;
    await button('target.test').click();
    await dialog.getByText(word('target.failed'), { exact: true }).waitFor();
    await dialog.getByText('the shop is closed', { exact: true }).waitFor();
    await press('action.close');
    shop.status = 204;

    await button('action.pause').click();
    await state.filter({ hasText: word('target.paused') }).waitFor();
    await button('action.resume').click();
    await state.filter({ hasText: word('target.closed') }).waitFor();

    await button('target.edit').click();
    const text = dialog.getByLabel(word('settings.title'));
    const settings = JSON.parse(await text.inputValue());
    assert.equal(settings.url, `http://${shop.address}/{queue}`);
    assert.equal(settings.state, undefined, 'the state is no setting');
    await text.fill(JSON.stringify({ ...settings, concurrency: 3 }));
    await press('settings.save');
    await main.locator('.facts').getByText('concurrency').waitFor();

    await page.show('targets');
    await main.getByRole('link', { name: 'hooks' }).click();
    await page.waitForURL(/q\/hooks\/target$/);
    await button('target.delete_ask').click();
    await press('target.delete');
    await main.getByText(word('target.none')).waitFor();
    await page.show('targets');
    await main.getByText(word('target.none_at_all')).waitFor();
});

story('a new secret is shown once, and another change of the target is not lost', async ({ open, serve, atEnd }) => {
    const shop = await receiver(atEnd);
    const server = await serve(options(shop.address));
    const target = { kind: 'webhook', url: `http://${shop.address}/` };
    await server.call('PUT', '/v1/queues/hooks/target', target);
    const page = await open(server, 'q/hooks/target', { refused: [412] });
    const main = page.locator('main');
    const dialog = page.getByRole('dialog');
    await main.getByRole('button', { name: word('target.rotate_ask') }).click();
    await dialog.getByLabel(word('target.overlap')).fill('31d');
    assert.ok(await dialog.getByRole('button', { name: word('target.rotate') }).isDisabled(), 'this is too long');
    await dialog.getByLabel(word('target.overlap')).fill('2h');
    await dialog.getByRole('button', { name: word('target.rotate') }).click();
    const secret = await dialog
        .locator('pre')
        .getByText(/^whsec_/)
        .innerText();
    await dialog.getByRole('button', { name: word('action.copy') }).waitFor();
    await dialog.getByRole('button', { name: word('action.close') }).click();
    await main
        .locator('.facts')
        .getByText(/^secret: •••/)
        .waitFor();
    assert.ok(!(await page.content()).includes(secret), 'the secret is not shown again');

    await main.getByRole('button', { name: word('target.edit') }).click();
    await server.call('PUT', '/v1/queues/hooks/target', { ...target, concurrency: 7 });
    await dialog.getByLabel(word('settings.title')).fill(JSON.stringify({ ...target, concurrency: 3 }));
    await dialog.getByRole('button', { name: word('settings.save') }).click();
    await dialog.getByRole('alert').waitFor();
    assert.equal((await server.call('GET', '/v1/queues/hooks/target')).concurrency, 7);
});
