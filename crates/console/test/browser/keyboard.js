/** The console without a mouse. */

import assert from 'node:assert/strict';
import { SIGHTS } from './sights.js';
import { story } from './story.js';
import { word } from './words.js';
import { fill } from './world.js';

/** Elements that a reader reaches with the Tab key, in the order of the document. */
const REACHABLE =
    'a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), textarea:not(:disabled), summary, [tabindex="0"]';

/** Numbers the elements that Tab reaches, from 0, and returns how many there are. @param {string} selector */
function number(selector) {
    for (const e of document.querySelectorAll('[data-tab]')) e.removeAttribute('data-tab');
    const seen = [...document.querySelectorAll(selector)].filter(
        (e) => e.checkVisibility() && !(e.closest('details:not([open])') && !e.closest('summary')),
    );
    // One radio button of a group is reached, and the arrows choose among them.
    const reached = seen.filter((e) => !(e instanceof HTMLInputElement && e.type === 'radio' && !e.checked));
    for (const [i, e] of reached.entries()) e.setAttribute('data-tab', String(i));
    return reached.length;
}

/** The numbers in the document. An element that was drawn anew has none. */
const numbers = () => [...document.querySelectorAll('[data-tab]')].map((e) => e.getAttribute('data-tab')).join();

story('Tab reaches everything on every page, and shows where it is', async ({ open, world }) => {
    const server = await world();
    const page = await open(server, '');
    await page.evaluate(() => {
        const look = (/** @type {HTMLElement} */ e) => {
            const style = window.getComputedStyle(e);
            const box = e.getBoundingClientRect();
            // The label of a box is a part of its target, and a link inside of a text may be smaller.
            const target = ((e.matches('input[type=checkbox], input[type=radio]') && e.closest('label')) || e).getBoundingClientRect();
            /** @type {any} */ (window.walk ??= []).push({
                tab: Number(e.getAttribute('data-tab') ?? -1),
                html: e.outerHTML.slice(0, 160),
                outlined: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
                large: style.display === 'inline' || (target.width >= 24 && target.height >= 24),
                seen: box.bottom > 0 && box.top < window.innerHeight,
            });
        };
        // The browser has scrolled to the element when the event comes.
        document.addEventListener('focusin', (event) => look(/** @type {HTMLElement} */ (event.target)));
    });
    for (const { name, path, shows } of SIGHTS) {
        await page.show(path);
        await page.locator('main').getByText(shows).first().waitFor();
        // The answer of a call may come during a walk. Then the page is walked once more.
        let [wanted, walk, changed] = [0, /** @type {any[]} */ ([]), true];
        for (let walks = 0; changed; walks += 1) {
            assert.ok(walks < 20, `${name}: the page changes all the time`);
            wanted = await page.evaluate(number, REACHABLE);
            await page.evaluate(() => /** @type {any} */ (window.walk = []));
            await page.locator('.skip').focus();
            // Long lists are alike, so the first 40 are enough.
            for (let i = 0; i < Math.min(wanted, 40); i += 1) await page.keyboard.press('Tab');
            walk = await page.evaluate(() => /** @type {any} */ (window).walk);
            const before = await page.evaluate(numbers);
            await page.evaluate(number, REACHABLE);
            changed = before !== (await page.evaluate(numbers));
        }
        assert.ok(wanted > 5, name);
        for (const at of walk) {
            assert.ok(at.outlined, `${name}: the focus is not to be seen at ${at.html}`);
            assert.ok(at.large, `${name}: the target is too small: ${at.html}`);
            assert.ok(at.seen, `${name}: the focus is out of sight at ${at.html}`);
        }
        const reached = new Set(walk.map((/** @type {any} */ at) => at.tab));
        for (let i = 0; i < Math.min(wanted, 35); i += 1)
            assert.ok(
                reached.has(i),
                `${name}: Tab does not reach element ${i}: ${await page.locator(`[data-tab="${i}"]`).evaluateAll((/** @type {Element[]} */ all) => all[0]?.outerHTML.slice(0, 160))}`,
            );
    }
});

story('a queue is found, paused for a time and resumed without a mouse', async ({ open, serve }) => {
    const server = await serve();
    await fill(server);
    const page = await open(server, '');
    await page.getByText('orders/close').first().waitFor();
    const { keyboard } = page;
    // The first key of a page skips its header.
    await keyboard.press('Tab');
    await keyboard.press('Enter');
    await keyboard.press('/');
    // Slower than the filter waits for the next letter.
    await keyboard.type('orders/cl', { delay: 400 });
    await page.waitForURL(/prefix=orders/);
    await page.getByText('mail/send').waitFor({ state: 'detached' });
    const tabTo = async (/** @type {string} */ text) => {
        for (let i = 0; i < 40; i += 1) {
            await keyboard.press('Tab');
            if ((await page.evaluate(() => document.activeElement?.textContent?.trim())) === text) return;
        }
        assert.fail(`Tab does not reach “${text}”`);
    };
    await tabTo('orders/close');
    await keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'orders/close' }).waitFor();
    // A screen reader begins at the heading of the new page.
    await page.waitForFunction(() => document.activeElement?.tagName === 'H1');
    await tabTo(word('action.pause_for'));
    await keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await keyboard.type('30m');
    await keyboard.press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByText(/^Paused until/).waitFor();
    await tabTo(word('action.resume'));
    await keyboard.press('Enter');
    await page.getByText(/^Paused until/).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: word('action.pause_for') }).waitFor();
});

story('Esc closes a dialog, and the focus is where it was', async ({ open, world }) => {
    const server = await world();
    const page = await open(server, 'q/orders%2Fconfirm/t/order:123');
    for (const name of [word('action.move_to'), word('payload.edit'), word('action.cancel_task')]) {
        const button = page.getByRole('button', { name });
        await button.focus();
        await page.keyboard.press('Enter');
        await page.getByRole('dialog').waitFor();
        // The dialog keeps the focus.
        for (let i = 0; i < 12; i += 1) {
            await page.keyboard.press('Tab');
            assert.ok(
                await page.evaluate(() => document.activeElement === document.body || document.activeElement?.closest('dialog') !== null),
                name,
            );
        }
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({ state: 'detached' });
        assert.ok(await button.evaluate((/** @type {Element} */ e) => e === document.activeElement), `the focus is back on “${name}”`);
    }
});

story('a heading keeps the focus when the page learns of a virtual clock and begins again', async ({ open, world }) => {
    const page = await open(await world(), 'about');
    let answer = () => {};
    const held = new Promise((resolve) => void (answer = () => resolve(null)));
    await page.route(/\/v1\/forecast/, async (/** @type {any} */ route) => {
        await held;
        await route.continue();
    });
    await page.load('about');
    await page.locator('h1').waitFor();
    await page.show('targets');
    assert.equal(await page.locator('.banner').getByText(/2030-/).count(), 0);
    answer();
    await page.locator('.banner').getByText(/2030-/).waitFor();
    await page.waitForFunction(() => document.activeElement?.tagName === 'H1');
});

story('keys go to the pages', async ({ open, world }) => {
    const server = await world();
    const page = await open(server, '');
    await page.getByText('orders/close').first().waitFor();
    for (const [keys, heading] of [
        ['gh', word('horizon.title')],
        ['gs', word('schedules.title')],
        ['gj', word('jobs.title')],
        ['go', word('overview.title')],
    ]) {
        for (const key of keys) await page.keyboard.press(key);
        await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor();
    }
    await page.keyboard.press('g');
    await page.keyboard.press('h');
    await page
        .getByText(/tasks to come/)
        .first()
        .waitFor();
    await page.keyboard.press('t');
    await page.getByRole('table').waitFor();
    await page.keyboard.press('t');
    await page.getByRole('table').waitFor({ state: 'detached' });
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: word('key.title') }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    // Letters that are typed into a field are letters.
    await page.keyboard.press('/');
    await page.keyboard.type('gt?');
    assert.equal(await page.evaluate(() => /** @type {any} */ (document.activeElement).value), 'gt?');
});
