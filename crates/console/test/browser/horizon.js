/** The views of the horizon that buttons choose. */

import assert from 'node:assert/strict';
import { BEGIN } from './server.js';
import { story } from './story.js';
import { word } from './words.js';

const HOUR = 3_600_000;

story('a button of the horizon is lit for the time that it names, and for no other', async ({ open, serve }) => {
    const server = await serve();
    const now = Date.parse(BEGIN);
    await server.put('orders', 'order:1', { delay: '90m' });
    const page = await open(server, `horizon?from=${now + HOUR}&to=${now + 2 * HOUR}`);
    const main = page.locator('main');
    const lit = () => main.locator('button[aria-pressed="true"]').allInnerTexts();
    await main.getByText(/^1 task to come/).waitFor();
    assert.deepEqual(await lit(), [], 'this hour is not the next one');
    const next = main.getByRole('button', { name: word('horizon.next', { length: '1h' }), exact: true });
    await next.click();
    await main
        .getByText(/^0 tasks to come/)
        .or(main.getByText(word('horizon.none')))
        .first()
        .waitFor();
    assert.deepEqual(await lit(), [await next.innerText()]);
    // The next hour moves on with the clock, and so does its address.
    await server.advance('1h');
    await page.reload();
    await main.getByText(/^1 task to come/).waitFor();
    assert.deepEqual(await lit(), [await next.innerText()]);
    await main.getByRole('button', { name: word('horizon.all'), exact: true }).click();
    await main.getByText(/^1 task to come/).waitFor();
    assert.deepEqual(await lit(), [word('horizon.all')]);
});
