/** The tasks of people who use the console, from the beginning to the end. */

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
    await page.getByText(word('hold.paused'), { exact: true }).waitFor();
    await server.advance('10m');
    await tile(page, word('state.ready'), '10').waitFor();
    assert.deepEqual((await server.call('POST', '/v1/queues/mail/lease', { max: 5 })).tasks, [], 'a paused queue delivers nothing');
    await server.advance('10m');
    await tile(page, word('state.ready'), '20').waitFor();
    await page.getByRole('button', { name: word('action.resume') }).click();
    await page.getByText(word('hold.paused'), { exact: true }).waitFor({ state: 'detached' });
    assert.equal((await server.call('POST', '/v1/queues/mail/lease', { max: 5 })).tasks.length, 5);
    await tile(page, word('state.leased'), '5').waitFor();
    await tile(page, word('state.ready'), '15').waitFor();
    // A whole tile is the link.
    await page
        .locator('.tile')
        .filter({ hasText: word('state.leased') })
        .click({ position: { x: 4, y: 4 } });
    await page.waitForURL(/q\/mail\/tasks\?state=leased$/);
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

story('a task is moved from its own due time, or from now', async ({ open, serve }) => {
    const server = await serve();
    await server.put('prices', 'price:1', { delay: '12h' });
    const page = await open(server, 'q/prices/t/price:1');
    const dialog = page.getByRole('dialog', { name: word('move.title', { key: 'price:1' }) });
    const field = dialog.getByLabel(word('move.to'));
    const move = dialog.getByRole('button', { name: word('action.move'), exact: true });
    const preview = dialog.locator('.moved');
    const begin = async () => {
        await page.getByRole('button', { name: word('action.move_to') }).click();
        await dialog.waitFor();
    };
    const moved = async (/** @type {string} */ due) => {
        await move.click();
        await dialog.waitFor({ state: 'detached' });
        assert.equal((await server.call('GET', '/v1/queues/prices/tasks/price:1')).due_at, due);
        // The page loads the task again.
        await page.locator('.why').getByText(due.slice(14, 19)).waitFor();
    };
    await begin();
    assert.equal(await field.inputValue(), '2030-03-01 21:00:00', 'the old due time in the zone of the reader');
    assert.ok(await move.isDisabled(), 'nothing is changed');
    const { height } = await dialog.boundingBox();
    // The typed text replaces the old due time.
    await page.keyboard.type('+1h30m');
    await preview.getByText('2030-03-01 21:00:00 → 22:30:00 +01:00 Europe/Berlin, 1h 30m later').waitFor();
    assert.equal((await dialog.boundingBox()).height, height, 'the dialog keeps its size');
    await moved('2030-03-01T21:30:00.000Z');
    await begin();
    await field.fill('-1h15m');
    await preview.getByText('22:30:00 → 21:15:00 +01:00 Europe/Berlin, 1h 15m earlier').waitFor();
    await moved('2030-03-01T20:15:00.000Z');
    await begin();
    const earlier = dialog.getByRole('button', { name: word('move.earlier', { length: '1h' }) });
    for (let i = 0; i < 3; i += 1) await earlier.click();
    await dialog.getByRole('button', { name: word('move.later', { length: '1h' }) }).click();
    assert.equal(await field.inputValue(), '2030-03-01 19:15:00');
    await preview.getByText('2h earlier').waitFor();
    // A time that is past is allowed, and said.
    await field.fill('-13h');
    await preview.and(page.locator('.note')).getByText(word('move.at_once')).waitFor();
    await field.fill('soon');
    await dialog.getByText(word('move.wrong')).waitFor();
    assert.ok(await move.isDisabled());
    assert.equal((await dialog.boundingBox()).height, height, 'the dialog keeps its size');
    await field.fill('in 1h10m');
    await preview.getByText('21:15:00 → 10:10:00 +01:00 Europe/Berlin').waitFor();
    await moved('2030-03-01T09:10:00.000Z');
});

story('a full group leads to its tasks in flight, and a task runs now after a question', async ({ open, serve }) => {
    const server = await serve();
    await server.call('PUT', '/v1/queues/mail', { max_in_flight_per_group: 1 });
    for (const key of ['a', 'b']) await server.put('mail', key, { group: 'user:7' });
    await server.call('POST', '/v1/queues/mail/lease', { worker: 'w1' });
    const page = await open(server, 'q/mail/t/b');
    await page.locator('.why code').getByText('max_in_flight_per_group', { exact: true }).waitFor();
    await page.getByRole('link', { name: word('why.group_leased') }).click();
    const rows = page.locator('tbody tr');
    await rows.getByRole('link', { name: 'user:7' }).waitFor();
    assert.deepEqual(await page.getByRole('rowheader').allInnerTexts(), ['a']);
    await page.getByRole('rowheader').getByRole('link', { name: 'a' }).click();
    await page.getByRole('button', { name: word('action.take_ask') }).click();
    await page.getByRole('dialog', { name: word('leases.take_from', { key: 'a', worker: 'w1' }) }).waitFor();
    await page.keyboard.press('Escape');
    await server.put('mail', 'c', { delay: '1h' });
    await server.call('PATCH', '/v1/queues/mail/tasks/c', { delay: '19h' });
    await page.show('q/mail/t/c');
    // A change has no time, so the gap before the due time is that since the put.
    await page.getByText(word('story.changed')).waitFor();
    await page.locator('.story .gap').getByText('19h later').waitFor();
    assert.equal(await page.locator('.story li').count(), 2);
    await page.getByRole('button', { name: word('action.run_ask') }).click();
    const dialog = page.getByRole('dialog', { name: word('run.title', { key: 'c' }) });
    await dialog.getByText('2030-03-02 04:00:00').waitFor();
    await dialog.getByRole('button', { name: word('action.run'), exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    assert.equal((await server.call('GET', '/v1/queues/mail/tasks/c')).state, 'ready');
});

story('the field for the name of the queue has the focus', async ({ open, world }) => {
    const page = await open(await world(), 'q/orders%2Fclose');
    await page.getByRole('button', { name: word('action.cancel_all') }).click();
    const field = page.getByRole('dialog').getByRole('textbox');
    await field.waitFor();
    assert.deepEqual(
        await field.evaluate((/** @type {Element} */ e) => [e === document.activeElement, window.getComputedStyle(e).outlineStyle]),
        [true, 'solid'],
    );
    await page.keyboard.press('Escape');
    // A click has opened the dialog, and its focus is seen all the same.
    await page.getByRole('button', { name: word('action.drain') }).click();
    const keep = page.getByRole('dialog').getByRole('button', { name: word('action.keep') });
    assert.deepEqual(
        await keep.evaluate((/** @type {Element} */ e) => [e === document.activeElement, window.getComputedStyle(e).outlineStyle]),
        [true, 'solid'],
    );
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
    await dialog.getByText(/^10,001 of 10,001 tasks are ready again/).waitFor();
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
