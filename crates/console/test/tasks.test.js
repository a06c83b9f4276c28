import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bulkFilter, dueBetween, dueText, endedBadly, moveOf, moveTask, parameters, parseDue, withZone } from '../assets/logic/filter.js';
import { readTags, repeatsWithinAnHour, writeTags, tasksAYear, yearStrip } from '../assets/logic/recurrence.js';
import { eventsOf, holdUps, whyNot, withInstants } from '../assets/logic/story.js';

test('due times are read as instants and as lengths from now', () => {
    const now = Date.parse('2030-01-01T00:00:00Z');
    assert.equal(parseDue('+2h', now, 'UTC'), now + 7_200_000);
    assert.equal(parseDue('-1d', now, 'UTC'), now - 86_400_000);
    assert.equal(parseDue('now', now, 'UTC'), now);
    assert.equal(parseDue('2030-01-01 01:00', now, 'UTC'), now + 3_600_000);
    assert.equal(parseDue('soon', now, 'UTC'), null);
    assert.deepEqual(parameters({ tag: 'x', state: '', due_to: '+1h', due_from: 'soon' }, now, 'UTC'), {
        parameters: { tag: 'x', due_to: String(now + 3_600_000) },
        wrong: ['due_from'],
    });
});

test('a sentence has its instants in another form, and quoted text as it is', () => {
    const show = (/** @type {number} */ ms) => `<${ms}>`;
    assert.equal(withInstants('It is due at 1970-01-01T00:00:01.500Z, in 1s.', show), 'It is due at <1500>, in 1s.');
    assert.equal(
        withInstants('`webhook` is `open` since 1970-01-01T00:00:01.000Z: `no 1970-01-01T00:00:00Z\n!`.', show),
        '`webhook` is `open` since <1000>: `no 1970-01-01T00:00:00Z\n!`.',
    );
    assert.equal(withInstants('bad date 2030-13-01T00:00:00Z', show), 'bad date 2030-13-01T00:00:00Z');
});

test('no bulk change has a wider filter than the list', () => {
    assert.deepEqual(bulkFilter({ tag: 'x', due_to: '5' }, ['tag', 'due_to']), { tag: 'x', due_to: 5 });
    assert.equal(bulkFilter({ tag: 'x', key_contains: 'y' }, ['tag', 'due_to']), null);
});

test('the story has what happened and what comes', () => {
    const now = Date.parse('2030-01-01T00:00:00Z');
    const task = {
        state: 'scheduled',
        attempt: 2,
        due_at: '2030-01-01T01:00:00Z',
        failures: [
            { attempt: 1, at: '2029-12-31T22:00:00Z', how: 'nacked', reason: 'x' },
            { attempt: 2, at: '2029-12-31T23:00:00Z', how: 'lease_ended' },
        ],
    };
    const told = {
        events: [
            { what: 'put', at: '2029-12-31T21:00:00Z' },
            { what: 'changed', at: null },
            { what: 'moment', at: '2029-12-31T22:00:00Z' },
        ],
        next: [
            { what: 'due', at: task.due_at, attempt: 3 },
            { what: 'moment', at: '2030-01-01T02:00:00Z' },
        ],
    };
    assert.deepEqual(
        eventsOf(told).map((e) => [e.what, e.at === null, Boolean(e.future)]),
        [
            ['put', false, false],
            ['changed', true, false],
            ['moment_done', false, false],
            ['fires', false, true],
            ['moment', false, true],
        ],
    );
    assert.equal(whyNot(task, null, now).key, 'why.retry');
    const ready = { state: 'ready', attempt: 0, due_at: '2029-12-31T00:00:00Z' };
    assert.equal(whyNot(ready, { paused: true }, now).key, 'why.paused');
    assert.equal(whyNot(ready, { max_in_flight: 3, leased: 3, ready: 1 }, now).key, 'why.in_flight');
    assert.equal(whyNot(ready, { leased: 0, ready: 1 }, now).key, 'why.ready');
    const target = { kind: 'webhook', to: 'http://a/', state: 'open', reason: 'refused', in_flight: 0, next_try: '2030-01-01T00:01:00Z' };
    assert.deepEqual(whyNot(ready, { leased: 0, ready: 2, rate: '5/s' }, now, target), {
        key: 'why.target_open',
        values: { to: 'webhook http://a/', reason: 'refused', flight: 0, n: 2, ready: 2, until: now + 60_000 },
    });
    assert.equal(whyNot(ready, { paused: true }, now, target).key, 'why.paused');
    assert.equal(whyNot(ready, { rate: '5/s', ready: 2 }, now, { ...target, state: 'closed' }).key, 'why.rate');
    assert.equal(whyNot(ready, null, now, { ...target, state: 'closed' }).key, 'why.target_closed');
});

test('a queue says what holds it up', () => {
    assert.deepEqual(holdUps({ scheduled: 1, ready: 0, leased: 0 }), []);
    assert.deepEqual(
        holdUps({ paused: true, draining: true, scheduled: 0, ready: 5, leased: 0 }).map((h) => h.key),
        ['hold.paused', 'hold.draining'],
    );
    assert.deepEqual(
        holdUps({ scheduled: 0, ready: 5, leased: 0 }).map((h) => h.key),
        ['hold.no_worker'],
    );
    const target = { kind: 'kafka', to: 'main: due', state: 'disabled', reason: 'no connection', in_flight: 3 };
    assert.deepEqual(
        holdUps({ paused: true, scheduled: 0, ready: 5, leased: 0 }, target).map((h) => h.key),
        ['hold.paused', 'hold.target_disabled'],
    );
    assert.deepEqual(
        holdUps({ scheduled: 0, ready: 5, leased: 3 }, { ...target, state: 'closed' }).map((h) => h.key),
        ['hold.target_closed'],
    );
    assert.deepEqual(holdUps({ scheduled: 0, ready: 0, leased: 0 }, target), []);
});

test('a schedule says what it costs', () => {
    assert.equal(tasksAYear({ every: '15m' }, []), 35_040);
    assert.equal(tasksAYear({ cron: '*/15 * * * *' }, [0, 900_000, 1_800_000]), 35_040);
    assert.equal(tasksAYear({ cron: '0 0 1 1 *' }, [0]), null);
    assert.deepEqual(yearStrip([0, 1, 86_400_000, 400 * 86_400_000], 0).slice(0, 3), [2, 1, 0]);
    assert.deepEqual(['*/15 * * * *', '0 */15 * * * *', '30 2 * * *', undefined].map(repeatsWithinAnHour), [true, true, false, false]);
});

test('only a job that is done has the number of all tasks', () => {
    for (const state of ['failed', 'stopped', 'lost']) assert.equal(endedBadly({ id: 1, state, matched: 5 }), true, state);
    for (const answer of [{ id: 1, state: 'done' }, { id: 1, state: 'running' }, { matched: 5 }, undefined])
        assert.equal(endedBadly(answer), false);
});

test('each line of the form of a schedule is a tag, with its commas', () => {
    const stored = ['a, b', ' c', 'x,y,z'];
    assert.deepEqual(readTags(writeTags(stored), stored), stored);
    assert.deepEqual(readTags(`${writeTags(stored)}\nd, e`, stored), [...stored, 'd, e']);
    assert.deepEqual(readTags(' report \n\n nightly\n', []), ['report', 'nightly']);
    assert.deepEqual(readTags(' \n', stored), []);
});

test('a length of a move counts from the clock of the server', () => {
    const now = Date.parse('2030-01-01T00:00:00Z');
    for (const text of [' in 2h', '2h ', 'in  2h']) assert.deepEqual(moveOf(text, now, 'UTC'), { delay: '2h' }, text);
    assert.deepEqual(moveOf('now', now, 'UTC'), { delay: '0s' });
    assert.deepEqual(moveOf('2030-01-01 01:00', now, 'Europe/Berlin'), { at_ms: now });
});

test('a length of a move with a sign counts from the due time of each task', () => {
    const now = Date.parse('2030-01-01T00:00:00Z');
    for (const text of ['+1h', 'by 1h', 'by +1h', '+ 1h']) assert.deepEqual(moveOf(text, now, 'UTC'), { by: '1h' }, text);
    for (const text of ['-1h', 'by -1h', '- 1h']) assert.deepEqual(moveOf(text, now, 'UTC'), { by: '-1h' }, text);
    for (const text of ['', 'soon', 'by soon', 'in +1h', 'in -1h', '1', '+-1h', 'by', '-'])
        assert.equal(moveOf(text, now, 'UTC'), null, text);
    const due = now + 43_200_000;
    const move = (/** @type {string} */ text) => moveTask(text, due, now, 'UTC');
    assert.deepEqual(move('+1h'), { at: due + 3_600_000, body: { at_ms: due + 3_600_000 } });
    assert.deepEqual(move('-1h'), { at: due - 3_600_000, body: { at_ms: due - 3_600_000 } });
    assert.deepEqual(move('in 1h'), { at: now + 3_600_000, body: { delay: '1h' } });
    assert.deepEqual(move('-36500d'), { at: 0, body: { at_ms: 0 } });
    assert.deepEqual([move('soon'), move('+100000000d')], [null, null]);
});

test('the due time in the field of a move is read as the same instant', () => {
    for (const [ms, zone, text] of /** @type {[number, string, string][]} */ ([
        [Date.parse('2030-03-02T00:00:00Z'), 'UTC', '2030-03-02 00:00:00'],
        [Date.parse('2030-03-02T00:00:00.250Z'), 'Europe/Berlin', '2030-03-02 01:00:00.250'],
        [Date.parse('2030-10-27T00:30:00Z'), 'Europe/Berlin', '2030-10-27T02:30:00+02:00'],
        [Date.parse('2030-10-27T01:30:00Z'), 'Europe/Berlin', '2030-10-27 02:30:00'],
    ])) {
        assert.equal(dueText(ms, zone), text);
        assert.equal(parseDue(text, 0, zone), ms);
    }
});

test('a due time in an address means the same in each zone', () => {
    assert.equal(withZone('2030-01-31 09:00', 'Europe/Berlin'), '2030-01-31T09:00:00+01:00');
    assert.equal(withZone('2030-11-03 01:30', 'America/New_York'), '2030-11-03T01:30:00-05:00');
    assert.equal(withZone('2030-01-31', 'UTC'), '2030-01-31T00:00:00Z');
    for (const text of ['now', '+2h', '-1d', 'soon', '', '2030-01-31T09:00:00Z', '2030-01-31T09:00:00+05:30'])
        assert.equal(withZone(text, 'Asia/Kolkata'), text);
    assert.equal(Date.parse(withZone('2030-01-31 09:00', 'Asia/Kolkata')), Date.parse('2030-01-31T03:30:00Z'));
});

test('the tasks of two bars are not counted twice', () => {
    assert.deepEqual(dueBetween(1000, 2000), { due_from: '1970-01-01T00:00:01Z', due_to: '1970-01-01T00:00:01.999Z' });
    assert.equal(dueBetween(2000, 3000).due_from, '1970-01-01T00:00:02Z');
    assert.equal(dueBetween(5, 5).due_to, '1970-01-01T00:00:00.005Z');
});
