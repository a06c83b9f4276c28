/** The tasks of a shop, for the tests and for the pictures of the documentation. They are the same each time. */

/** @param {number} from @param {number} count @param {(i: number) => object} task */
const each = (from, count, task) => Array.from({ length: count }, (_, i) => task(from + i));

/** A number from 0 to 1 for each `i`, spread evenly, that has no visible pattern. @param {number} i */
const spread = (i) => (i * 0.6180339887498949) % 1;

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** @param {number} ms */
const delay = (ms) => `${Math.round(ms)}ms`;

/** @param {number} i */
const order = (i) => ({ key: `order:${10_000 + i}`, payload: { order: 10_000 + i, total: `${20 + (i % 80)}.90` } });

/** The failures of workers: text, and how many tasks have it. @type {[string, number][]} */
const FAILURES = [
    ['SMTP 421: mx1.example.net closed the connection after 30021 ms', 31],
    ['template "receipt.v3" needs order.total', 9],
];

/**
 * Fills a server with a virtual clock, and moves the clock by two hours.
 * @param {import('./server.js').Server} server
 */
export async function fill(server) {
    // Orders that are not paid yet: closed after half an hour, after a day if they are paid by bank transfer, after two weeks by
    // invoice. A campaign at ten o'clock brought many at once.
    await server.call('PUT', '/v1/queues/orders%2Fclose', { rate: '1/s', max_in_flight: 50 });
    await server.putAll('orders/close', [
        ...each(1, 420, (i) => ({ ...order(i), delay: delay(2 * HOUR + (spread(i) * HOUR) / 2), tags: [i % 7 === 0 ? 'vip' : 'shop:7'] })),
        ...each(421, 900, (i) => ({ ...order(i), delay: delay(2 * HOUR + (20 + spread(i)) * 60_000), tags: ['campaign'] })),
        ...each(1321, 260, (i) => ({ ...order(i), delay: delay(2 * HOUR + spread(i) * DAY), tags: ['transfer'] })),
        ...each(1581, 340, (i) => ({ ...order(i), delay: delay(2 * HOUR + spread(i) * 14 * DAY), tags: ['invoice'] })),
    ]);
    // Receipts are confirmed after 15 days.
    await server.putAll('orders/confirm', [
        {
            key: 'order:123',
            delay: '15d',
            payload: { order: 123, customer: 'Zoë', total: '42.00', currency: 'EUR' },
            tags: ['vip'],
            group: 'shop:7',
        },
        ...each(1, 2600, (i) => ({
            key: `order:${5000 + i}`,
            delay: delay(2 * HOUR + spread(i) * 15 * DAY),
            payload: { order: 5000 + i },
        })),
    ]);
    await server.putAll(
        'billing/renew',
        each(1, 640, (i) => ({
            key: `plan:${i}`,
            delay: delay(DAY + spread(i) ** 2 * 3 * 365 * DAY),
            payload: { plan: i, price: 900 },
        })),
    );
    // More than 10,000 tasks are moved by a job.
    await server.putAll(
        'campaign/spring',
        each(1, 10_240, (i) => ({ key: `mail:${i}`, delay: '20d' })),
    );
    await server.call('POST', '/v1/queues/campaign%2Fspring/move', { filter: {}, by: '1h' });
    // Mails: some are dead, some wait for their next attempt, three are with workers, some are ready.
    await server.call('PUT', '/v1/queues/mail%2Fsend', {
        retry: { max_attempts: 1 },
        max_in_flight: 10,
        default_lease: '5m',
    });
    for (const [reason, count] of FAILURES) {
        await server.putAll(
            'mail/send',
            each(1, count, (i) => ({ key: `mail:${reason.length}-${i}`, payload: { to: `user${i}@example.com` } })),
        );
        await server.fail('mail/send', count, reason.replace('30021', String(30_000 + count)));
        await server.advance('9m');
    }
    await server.call('PUT', '/v1/queues/mail%2Fdigest', { retry: { max_attempts: 5, base: '10m', backoff: 'fixed', jitter: 0 } });
    await server.putAll(
        'mail/digest',
        each(1, 12, (i) => ({ key: `digest:${i}`, payload: { user: i } })),
    );
    await server.fail('mail/digest', 4, 'the list of articles is empty');
    await server.putAll(
        'webhooks',
        each(1, 66, (i) => ({ key: `hook:${i}`, payload: { url: `https://shop.example/hooks/${i}` } })),
    );
    await server.call('POST', '/v1/queues/webhooks/pause', { for: '3h' });
    // Nothing is sent while the queue is paused.
    await server.call('PUT', '/v1/queues/webhooks/target', { kind: 'webhook', url: 'https://shop.example/hooks/{key}', concurrency: 4 });
    await server.putAll(
        'push/ios',
        each(1, 140, (i) => ({ key: `push:${i}`, delay: delay(2 * HOUR + i * 45_000), payload: { device: i } })),
    );
    await server.call('POST', '/v1/queues/push%2Fios/drain', {});
    for (const [queue, name, rule] of /** @type {[string, string, object][]} */ ([
        ['reports', 'nightly', { cron: '30 2 * * *', tz: 'Europe/Berlin', payload: { report: 'sales' }, tags: ['report'] }],
        ['reports', 'opening-bell', { cron: '30 9 * * 1-5', tz: 'America/New_York', payload: { report: 'markets' } }],
        ['reports', 'month-end', { cron: '0 18 L * *', tz: 'Asia/Shanghai', overlap: 'skip' }],
        ['maintenance', 'sweep', { every: '15m', payload: { older_than: '30d' } }],
        ['maintenance', 'compact', { fixed_delay: '6h', overlap: 'queue' }],
    ])) {
        await server.call('PUT', `/v1/queues/${queue}/schedules/${name}`, rule);
    }
    await server.advance('102m');
    await server.putAll(
        'mail/send',
        each(1, 18, (i) => ({ key: `mail:now-${i}`, payload: { to: `user${i}@example.com`, subject: 'Welcome' } })),
    );
    await server.call('POST', '/v1/queues/mail%2Fsend/lease', { max: 3 });
    await server.advance('40s');
}

/** The number of dead mails. */
export const DEAD = FAILURES.reduce((sum, [, count]) => sum + count, 0);
