/** All pages, and what is seen on each. */

import { word } from './words.js';

/**
 * @typedef {object} Sight
 * @property {string} name
 * @property {string} path Below `/console/`.
 * @property {string | RegExp} shows A text that only the data of the world gives.
 * @property {string | RegExp} empty A text on a server without tasks.
 * @property {boolean} calls Whether a call brings its data. What `about` and `clock` show is known to all pages.
 * @property {boolean} [scoped] Whether a token with the scope `orders/` sees it, too.
 */

/** @type {Sight[]} */
export const SIGHTS = [
    { name: 'overview', path: '', shows: 'orders/confirm', empty: word('overview.none'), calls: true, scoped: true },
    { name: 'horizon', path: 'horizon', shows: /[\d,]+ tasks to come/, empty: word('horizon.none'), calls: true },
    {
        name: 'horizon of a queue',
        path: 'horizon?queue=orders%2Fclose',
        shows: /more falls due than 1\/s delivers/,
        empty: word('horizon.none'),
        calls: true,
        scoped: true,
    },
    { name: 'horizon as a table', path: 'horizon?view=table', shows: /to .* from now/, empty: word('horizon.none'), calls: true },
    { name: 'queue', path: 'q/webhooks', shows: /^Paused until/, empty: word('queue.none'), calls: true },
    {
        name: 'settings',
        path: 'q/orders%2Fclose/settings',
        shows: word('settings.unchanged'),
        empty: word('settings.unchanged'),
        calls: true,
        scoped: true,
    },
    { name: 'search', path: 'q/orders%2Fclose/tasks', shows: /^order:1\d{4}$/, empty: word('search.empty'), calls: true, scoped: true },
    { name: 'task', path: 'q/orders%2Fconfirm/t/order:123', shows: /"Zoë"/, empty: word('task.none'), calls: true, scoped: true },
    { name: 'dead', path: 'q/mail%2Fsend/dead', shows: /^SMTP #/, empty: word('dead.none'), calls: true },
    { name: 'dead list', path: 'q/mail%2Fsend/dead?view=list', shows: /^SMTP 421/, empty: word('dead.none'), calls: true },
    { name: 'schedules', path: 'schedules', shows: 'opening-bell', empty: word('schedules.none'), calls: true },
    {
        name: 'schedule',
        path: 'q/reports/schedules/nightly',
        shows: /does not exist in Europe\/Berlin/,
        empty: word('schedule.none'),
        calls: true,
    },
    { name: 'target', path: 'q/webhooks/target', shows: 'https://shop.example/hooks/{key}', empty: word('target.none'), calls: true },
    { name: 'targets', path: 'targets', shows: 'https://shop.example/hooks/{key}', empty: word('target.none_at_all'), calls: true },
    { name: 'leases', path: 'leases', shows: /^mail:now-\d+$/, empty: word('leases.none'), calls: true },
    { name: 'jobs', path: 'jobs', shows: 'campaign/spring', empty: word('jobs.none'), calls: true },
    { name: 'wheel', path: 'wheel', shows: /tasks? waits? in the wheel at/, empty: /^0 tasks wait in the wheel at/, calls: true },
    { name: 'clock', path: 'clock', shows: /^2030-03-01 /, empty: /^2030-03-01 /, calls: false },
    { name: 'about', path: 'about', shows: word('durability.memory.note'), empty: word('about.title'), calls: false },
];
