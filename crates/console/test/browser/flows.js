/** What people do with the console, from the beginning to the end. */

import assert from 'node:assert/strict';
import { story } from './story.js';
import { word } from './words.js';

/** The number of a tile. @param {any} page @param {string} label @param {string} value */
const tile = (page, label, value) => page.locator('.tile').filter({ hasText: label }).locator('dd').getByText(value, { exact: true });

story('pause a queue, see the ready tasks rise, and resume it', async ({ open, serve }) => {
    const server = await serve();
    await server.putAll(
        'mail',
        Array.from({ length: 30 }, (_, i) => ({ key: `mail:${i}`, delay: `${i + 1}m` })),
    );
    const page = await open(server, 'q/mail');
    await tile(page, word('state.scheduled'), '30').waitFor();
    await page.getByRole('button', { name: word('action.pause_for') }).click();
    await page
        .getByRole('dialog')
        .getByRole('button', { name: word('action.pause'), exact: true })
        .click();
    await page.getByText(word('hold.paused')).waitFor();
    await server.advance('10m');
    await tile(page, word('state.ready'), '10').waitFor();
    assert.deepEqual((await server.call('POST', '/v1/queues/mail/lease', { max: 5 })).tasks, [], 'a paused queue delivers nothing');
    await server.advance('10m');
    await tile(page, word('state.ready'), '20').waitFor();
    await page.getByRole('button', { name: word('action.resume') }).click();
    await page.getByText(word('hold.paused')).waitFor({ state: 'detached' });
    assert.equal((await server.call('POST', '/v1/queues/mail/lease', { max: 5 })).tasks.length, 5);
    await tile(page, word('state.leased'), '5').waitFor();
    await tile(page, word('state.ready'), '15').waitFor();
});

story('a schedule in New York shows both changes of its clocks in 2030', async ({ open, serve }) => {
    const server = await serve();
    const page = await open(server, 'schedules', { refused: [404] });
    await page.getByRole('button', { name: word('schedule.new') }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel(word('queue.word')).fill('reports');
    await dialog.getByLabel(word('schedule.name')).fill('bell');
    await page.keyboard.press('Enter');
    await page.getByLabel(word('schedule.cron')).fill('30 1,2 * * *');
    await page.locator('main').getByLabel(word('schedule.tz')).fill('America/New_York');
    await page.getByRole('button', { name: word('schedule.save') }).click();
    await page.waitForURL(/schedules\/bell$/);
    const changes = page.locator('.changes li');
    await changes.first().waitFor();
    assert.deepEqual(await changes.allInnerTexts(), [
        '2030-03-10: 02:00 to 03:00 does not exist in America/New_York.',
        '2030-11-03: 01:00 to 02:00 comes twice in America/New_York.',
    ]);
    // Ten instants, side by side in both times.
    const rows = page
        .getByRole('region', { name: word('schedule.preview') })
        .or(page.locator('section'))
        .getByRole('row');
    assert.ok((await rows.first().innerText()).includes('America/New_York'));
    assert.match(await rows.nth(1).innerText(), /2030-03-02 01:30:00\S*\s+2030-03-02 06:30:00/);
    const stored = await server.call('GET', '/v1/queues/reports/schedules/bell');
    assert.equal(stored.tz, 'America/New_York');
});

story('the clock goes on by 15 days, and the receipt fires', async ({ open, serve }) => {
    const server = await serve();
    await server.put('confirm', 'order:123', { delay: '15d', payload: { order: 123 } });
    const task = await open(server, 'q/confirm/t/order:123');
    await task.getByText(/^The task is due at 2030-03-16/).waitFor();
    const page = await open(server, 'clock');
    await page.getByText('2030-03-01 09:00:00').first().waitFor();
    await page.getByRole('button', { name: '+15d' }).click();
    const row = page.getByRole('row').filter({ hasText: 'confirm' });
    await row.waitFor();
    assert.deepEqual(await row.getByRole('cell').allInnerTexts(), ['+1', '-1', '0']);
    await page.getByText('2030-03-16 09:00:00').first().waitFor();
    await task.getByText(/^The task (is ready|has been due)/).waitFor();
    const { tasks } = await server.call('POST', '/v1/queues/confirm/lease', {});
    assert.equal(tasks[0].key, 'order:123');
    await task.getByText(/^A worker has the task/).waitFor();
});

story('two tabs edit one task, and the second sees both versions', async ({ open, serve }) => {
    const server = await serve();
    await server.put('orders', 'order:1', { delay: '1h', payload: { total: 1 } });
    const [first, second] = [await open(server, 'q/orders/t/order:1'), await open(server, 'q/orders/t/order:1', { refused: [412] })];
    for (const page of [first, second]) await page.getByRole('button', { name: word('payload.edit') }).click();
    await first.getByLabel(word('task.payload')).and(first.locator('textarea')).fill('{"total": 2}');
    await first.getByRole('button', { name: word('payload.save'), exact: true }).click();
    await first.getByRole('dialog').waitFor({ state: 'detached' });
    await second.getByLabel(word('task.payload')).and(second.locator('textarea')).fill('{"total": 3}');
    await second.getByRole('button', { name: word('payload.save'), exact: true }).click();
    await second.getByRole('alert').getByText(word('payload.changed')).waitFor();
    assert.equal(await second.getByLabel(word('payload.mine')).inputValue(), '{"total": 3}');
    assert.equal(JSON.parse(await second.getByLabel(/^Theirs/).inputValue()).total, 2);
    assert.equal((await server.call('GET', '/v1/queues/orders/tasks/order:1')).payload.total, 2, 'nothing was changed by the second');
    await second.getByRole('button', { name: word('payload.save_mine') }).click();
    await second.getByRole('dialog').waitFor({ state: 'detached' });
    assert.equal((await server.call('GET', '/v1/queues/orders/tasks/order:1')).payload.total, 3);
    await first.locator('.payload').getByText('3').waitFor();
});

story('a group of 10,001 dead tasks is counted, redriven by a job, and gone', async ({ open, serve }) => {
    const server = await serve();
    await server.call('PUT', '/v1/queues/mail', { retry: { max_attempts: 1 } });
    const mails = (/** @type {string} */ of, /** @type {number} */ count) =>
        Array.from({ length: count }, (_, i) => ({ key: `${of}:${i}` }));
    await server.putAll('mail', mails('lost', 10_001));
    await server.fail('mail', 10_001, 'SMTP 421: the connection was closed after 30 s');
    await server.advance('1m');
    await server.putAll('mail', mails('other', 5));
    await server.fail('mail', 5, 'there is no such user');
    const page = await open(server, 'q/mail/dead');
    const group = (/** @type {string} */ text) => page.locator('.group').filter({ hasText: text });
    await group('SMTP #').waitFor();
    await page.getByText(/^The groups are made of .* of 10,006 dead tasks/).waitFor();
    await group('SMTP #')
        .getByRole('button', { name: word('dead.redrive_group') })
        .click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(word('confirm.count', { n: 10_001 })).waitFor();
    assert.equal((await server.call('GET', '/v1/queues/mail')).dead, 10_006, 'a dry run changes nothing');
    const redrive = dialog.getByRole('button', { name: `${word('action.redrive')} (10,001)` });
    assert.ok(await redrive.isDisabled(), 'so many need the name of the queue');
    await dialog.getByRole('textbox').fill('mail');
    await redrive.click();
    await dialog.getByText(/^10,001 tasks are ready again/).waitFor();
    await dialog.getByRole('button', { name: word('action.close') }).click();
    await group('SMTP #').waitFor({ state: 'detached' });
    await group('there is no such user').getByText('5', { exact: true }).waitFor();
    const { ready, dead } = await server.call('GET', '/v1/queues/mail');
    assert.deepEqual({ ready, dead }, { ready: 10_001, dead: 5 });
    // A change of more than 10,000 tasks is a job, and is in the list of jobs with a full bar.
    await page.show('jobs');
    const row = page
        .getByRole('row')
        .filter({ hasText: word('jobs.kind_redrive') })
        .filter({ hasNotText: word('jobs.dry') });
    await row.getByText(word('jobs.state_done')).waitFor();
    assert.equal(await row.getByRole('progressbar').evaluate((/** @type {HTMLProgressElement} */ bar) => bar.value / bar.max), 1);
});

story('a lease that has ended is not taken away from the next worker', async ({ open, serve }) => {
    const server = await serve();
    await server.put('orders', 'a', {});
    await server.call('POST', '/v1/queues/orders/lease', {});
    const page = await open(server, 'leases');
    const take = page.getByRole('button', { name: word('action.take_ask') });
    const confirm = page.getByRole('dialog').getByRole('button', { name: word('action.take'), exact: true });
    await take.click();
    await server.call('POST', '/v1/queues/orders/tasks/a/release', {});
    await server.call('POST', '/v1/queues/orders/lease', {});
    await confirm.click();
    await page.getByRole('alert').getByText(word('leases.ended')).waitFor();
    assert.equal((await server.call('GET', '/v1/queues/orders')).leased, 1);
    await page.keyboard.press('Escape');
    await page.getByRole('row').getByRole('cell', { name: '2', exact: true }).waitFor();
    await take.click();
    await confirm.click();
    await page.getByText(word('leases.none')).waitFor();
    assert.equal((await server.call('GET', '/v1/queues/orders')).ready, 1);
});

story('a dead task is cancelled', async ({ open, serve }) => {
    const server = await serve();
    await server.call('PUT', '/v1/queues/mail', { retry: { max_attempts: 1 } });
    for (const key of ['a', 'b']) await server.put('mail', key, {});
    await server.fail('mail', 2, 'no paper');
    const page = await open(server, 'q/mail/t/a', { refused: [404] });
    await page.getByRole('button', { name: word('action.cancel_task') }).click();
    await page
        .getByRole('dialog')
        .getByRole('button', { name: word('action.cancel'), exact: true })
        .click();
    await page.getByText(word('task.none')).waitFor();
    assert.equal((await server.call('GET', '/v1/queues/mail')).dead, 1, 'the other one stays');
});

story('the wheel turns, and its slots are empty after their time', async ({ open, serve }) => {
    const server = await serve();
    await server.putAll(
        'orders',
        Array.from({ length: 40 }, (_, i) => ({ key: `order:${i}`, delay: `${i + 1}m` })),
    );
    const page = await open(server, 'wheel');
    await page.getByText(/^40 tasks wait in the wheel at/).waitFor();
    // The third level has slots of 65.536 s: its tasks are in about as many slots as there are tasks.
    const column = (/** @type {number} */ n) => page.locator('main tbody tr').locator(`:is(th, td):nth-child(${n})`).allInnerTexts();
    const before = { hands: await column(4), occupied: (await column(5)).map((/** @type {string} */ text) => Number(text.split(' ')[0])) };
    assert.equal(before.hands.length, 4);
    assert.ok(before.occupied[2] + before.occupied[3] > 30 && before.occupied[0] === 0, String(before.occupied));
    assert.equal(await page.locator('.rings svg').count(), 4);
    await server.advance('39m');
    await page.getByText(/^1 task waits in the wheel at/).waitFor();
    assert.notDeepEqual(await column(4), before.hands);
    await server.advance('1m');
    await page.getByText(/^0 tasks wait in the wheel at/).waitFor();
    assert.deepEqual(await column(5), ['0 / 256', '0 / 256', '0 / 256', '0 / 256']);
});
