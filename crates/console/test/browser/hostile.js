/** Data of a hostile client stays text. */

import assert from 'node:assert/strict';
import { story } from './story.js';

const MARKUP = `<img src=x onerror="window.harmed=1">`;
const SCRIPT = `"></script><script>window.harmed=1</script>`;
/** A name with a character that reverses the order of the letters behind it. */
const TURNED = 'invoice\u202Efdp.exe';

/** @param {any} page */
async function isUnharmed(page) {
    assert.equal(await page.evaluate(() => /** @type {any} */ (window).harmed), undefined);
    assert.equal(await page.locator('main img, main script, main iframe, main object').count(), 0);
}

story('markup in keys, tags, payloads and failures stays text', async ({ open, serve }) => {
    const server = await serve();
    await server.call('PUT', '/v1/queues/evil', { retry: { max_attempts: 1 } });
    for (const [i, text] of [MARKUP, SCRIPT, TURNED].entries()) {
        const task = { payload: { text }, tags: [text], group: text };
        await server.put('evil', text, { ...task, delay: '1h' });
        await server.put('evil', `dead ${i} ${text}`, task);
        await server.fail('evil', 1, `${i} failed at ${text}`);
        const page = await open(server, `q/evil/t/${encodeURIComponent(text)}`);
        await page.locator('.payload').waitFor();
        assert.equal(JSON.parse(await page.locator('.payload').innerText()).text, text);
        assert.ok((await page.locator('h1').innerText()).startsWith(text));
        assert.equal(await page.locator('.tag').innerText(), text);
        // A text that is turned around stays in its place.
        assert.equal(await page.locator('h1').evaluate((/** @type {Element} */ e) => window.getComputedStyle(e).unicodeBidi), 'isolate');
        await isUnharmed(page);
        await page.show('q/evil/tasks');
        await page.getByRole('rowheader').getByText(text, { exact: true }).waitFor();
        await isUnharmed(page);
        await page.locator('.tag').getByText(text, { exact: true }).click();
        await page
            .getByText(`Tag ${text}`)
            .or(page.getByRole('rowheader').getByText(text, { exact: true }))
            .first()
            .waitFor();
        assert.equal(new URL(page.url()).searchParams.get('tag'), text);
        await page.show('q/evil/dead');
        await page.locator('.reason').first().waitFor();
        await isUnharmed(page);
        await page.show('q/evil/dead?view=list');
        await page.getByText(`${i} failed at ${text}`).waitFor();
        await isUnharmed(page);
    }
});

story('a text that looks like a time stays text in the reason of a failure', async ({ open, serve }) => {
    const server = await serve();
    await server.call('PUT', '/v1/queues/evil', { retry: { max_attempts: 1 } });
    await server.put('evil', 'a', {});
    const reason = 'no date: 2030-13-01T00:00:00Z';
    await server.fail('evil', 1, reason);
    const page = await open(server, 'q/evil/t/a');
    const why = await page.locator('.why').innerText();
    assert.ok(why.includes(reason), why);
});

story('markup in the address of a page stays text', async ({ open, serve }) => {
    const server = await serve();
    const evil = encodeURIComponent(MARKUP);
    for (const path of [
        `?prefix=${evil}&sort=${evil}`,
        `horizon?queue=${evil}`,
        `q/${evil}`,
        `q/x/t/${evil}`,
        `q/x/tasks?tag=${evil}&due_from=${evil}`,
        `schedules?prefix=${evil}`,
        `q/x/schedules/${evil}`,
        evil,
    ]) {
        const page = await open(server, path, { refused: [400, 404] });
        await page.locator('h1').waitFor();
        await page.locator('main .loading').first().waitFor({ state: 'detached' });
        await isUnharmed(page);
    }
});

story('a megabyte that is no JSON is shown in part, and copied and downloaded as a whole', async ({ open, serve }) => {
    const server = await serve();
    // Base64 makes a megabyte of it: a body has no more.
    const text = `${MARKUP}${TURNED}\n`.repeat(20_000).slice(0, 740_000);
    const bytes = Buffer.from(text);
    await server.put('big', 'text', { delay: '1h', payload_base64: bytes.toString('base64'), content_type: 'text/plain' });
    await server.put('big', 'bytes', { delay: '1h', payload_base64: Buffer.alloc(780_000, 0xfe).toString('base64') });
    const page = await open(server, 'q/big/t/text');
    await page.getByText('Only the beginning is shown.').waitFor();
    const shown = await page.locator('.payload').textContent();
    assert.ok(shown.length >= 200_000 && text.startsWith(shown.replace(/…?\s*$/, '')), `${shown.length} letters are shown`);
    await isUnharmed(page);
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download' }).click()]);
    assert.equal(download.suggestedFilename(), 'text.txt');
    const chunks = [];
    for await (const chunk of await download.createReadStream()) chunks.push(chunk);
    assert.ok(Buffer.concat(chunks).equals(bytes), 'the download has the same bytes');
    await page.show('q/big/t/bytes');
    await page.getByText('The payload is no text.').waitFor();
    await isUnharmed(page);
});

story('a key of 200 characters fits into a narrow page', async ({ open, serve }) => {
    const server = await serve();
    const key = `order:${'x'.repeat(194)}`;
    await server.put('long', key, { delay: '1h', tags: ['t'.repeat(100)], group: 'g'.repeat(200) });
    const page = await open(server, 'q/long/tasks', { width: 360 });
    await page.getByRole('link', { name: key }).click();
    await page.locator('.payload').waitFor();
    assert.equal(
        await page
            .locator('h1')
            .innerText()
            .then((/** @type {string} */ text) => text.includes(key)),
        true,
    );
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
});

story('a thousand queues are shown by the hundred', async ({ open, serve }) => {
    const server = await serve();
    const names = Array.from({ length: 1000 }, (_, i) => `shop${i % 10}/q${String(i).padStart(4, '0')}`);
    for (let i = 0; i < names.length; i += 50)
        await Promise.all(names.slice(i, i + 50).map((name) => server.put(name, 'a', { delay: '1h' })));
    const page = await open(server, '');
    await page.getByText('1,000 queues').waitFor();
    assert.equal(await page.locator('tbody tr').count(), 100);
    await page.getByText('Page 1 of 10').waitFor();
    await page.getByRole('button', { name: 'Next page' }).click();
    await page.getByText('Page 2 of 10').waitFor();
    assert.equal(new URL(page.url()).searchParams.get('page'), '2');
    await page.getByLabel('Queues that begin with…').fill('shop7/');
    await page.getByText('100 queues', { exact: true }).waitFor();
    await page.waitForURL(/prefix=shop7/);
    assert.ok((await page.getByRole('rowheader').allInnerTexts()).every((/** @type {string} */ name) => name.trim().startsWith('shop7/')));
});
