/** Each page: with data, empty, refused, broken, and without a server. */

import assert from 'node:assert/strict';
import { SIGHTS } from './sights.js';
import { story } from './story.js';
import { tokens } from './tokens.js';
import { word } from './words.js';

const PROBLEM = {
    type: '/problems/internal',
    title: 'the server has a fault',
    status: 500,
    detail: 'the store has a bad sector at `segment-7`',
    hint: 'look into the log',
};

/** The calls that bring data; `/readyz` is not one of them. */
const DATA = /\/(v1\/|metrics$|openapi\.json$)/;

const API = /\/(v1\/|metrics$|openapi\.json$|readyz$)/;

/** @param {any} page */
async function hasOneHeading(page) {
    await page.locator('h1').first().waitFor();
    assert.equal(await page.locator('h1').count(), 1, 'a page has one h1');
    const heading = (await page.locator('h1').innerText()).replaceAll(/\s+/g, ' ').trim();
    assert.notEqual(heading, '');
}

story('every page shows its data', async ({ open, world }) => {
    const server = await world();
    const page = await open(server, '');
    for (const { path, shows } of SIGHTS) {
        await page.load(path);
        await page.locator('main').getByText(shows).first().waitFor();
        await hasOneHeading(page);
        assert.match(await page.title(), /. · Tickwheel$/);
    }
});

story('every page of an empty server says how to begin', async ({ open, serve }) => {
    const server = await serve();
    const page = await open(server, '', { refused: [404] });
    for (const { path, empty } of SIGHTS) {
        await page.show(path);
        await page.locator('main').getByText(empty, { exact: true }).first().waitFor();
        await hasOneHeading(page);
    }
});

story('every page asks for a token, and shows its data after that', async ({ open, serve }) => {
    const { file, all } = tokens();
    const server = await serve(['--memory', '--token-file', file]);
    const page = await open(server, '', { refused: [401] });
    for (const { path } of SIGHTS) {
        await page.load(path);
        await page.getByLabel(word('login.token')).waitFor();
        await hasOneHeading(page);
        assert.equal(await page.title(), `${word('login.title')} · Tickwheel`);
    }
    await page.show('jobs');
    await page.getByLabel(word('login.token')).fill('wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText(word('login.refused')).waitFor();
    await page.getByLabel(word('login.token')).fill(all);
    await page.keyboard.press('Enter');
    await page.getByText(word('jobs.none')).waitFor();
    await page.reload();
    await page.getByText(word('jobs.none')).waitFor();
    await page.getByRole('button', { name: word('shell.logout') }).click();
    await page.getByLabel(word('login.token')).waitFor();
    assert.equal(await page.evaluate(() => JSON.stringify(window.sessionStorage) + document.cookie), '{}');
});

story('every page names the right that a token has not', async ({ open, serve }) => {
    const { file, worker } = tokens();
    const server = await serve(['--memory', '--virtual-clock', '--token-file', file]);
    const page = await open(server, '', { token: worker, refused: [403] });
    for (const { path, name } of SIGHTS) {
        await page.load(path);
        if (name !== 'about') await page.getByRole('alert').getByText(word('error.forbidden')).first().waitFor();
        await hasOneHeading(page);
    }
});

story('every page waits for its data, and shows an error of the server', async ({ open, world }) => {
    const server = await world();
    const page = await open(server, '', { refused: [500] });
    for (const { path, calls, shows } of SIGHTS) {
        /** @type {() => void} */
        let answer = () => {};
        const asked = new Promise((done) => (answer = () => done(undefined)));
        await page.show('about');
        await page.route(DATA, async (/** @type {any} */ route) => {
            await asked;
            await route.fulfill({ status: 500, contentType: 'application/problem+json', body: JSON.stringify(PROBLEM) }).catch(() => {});
        });
        await page.show(path);
        if (calls) await page.locator('main').getByText(word('state.loading')).first().waitFor();
        await hasOneHeading(page);
        answer();
        if (calls) {
            const alert = page.locator('main').getByRole('alert').first();
            await alert.waitFor();
            assert.match(await alert.innerText(), /the server has a fault\s+the store has a bad sector at segment-7\s+look into the log/);
        }
        await hasOneHeading(page);
        await page.unroute(DATA);
        await page.locator('main').getByText(shows).first().waitFor();
        // The error goes when the data comes.
        await page.waitForFunction(() => document.querySelector('main [role="alert"]') === null);
    }
});

story('every page says that the server does not answer, and asks again by itself', async ({ open, world }) => {
    const server = await world();
    const page = await open(server, '', { lost: true });
    for (const { path, calls, shows } of SIGHTS) {
        await page.show('about');
        await page.route(API, (/** @type {any} */ route) => route.abort());
        await page.show(path);
        await page
            .getByRole('status')
            .getByText(/reconnecting/)
            .waitFor();
        if (calls) await page.locator('main').getByRole('alert').getByText(word('error.offline')).first().waitFor();
        await hasOneHeading(page);
        await page.unroute(API);
        await page.locator('main').getByText(shows).first().waitFor();
        await page
            .getByRole('status')
            .getByText(/reconnecting/)
            .waitFor({ state: 'detached' });
    }
});
