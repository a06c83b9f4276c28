import assert from 'node:assert/strict';
import { test } from 'node:test';
import { absolute, clockChanges, offsetMinutes, parseInstant, wallsOf } from '../assets/logic/instant.js';

const at = (/** @type {string} */ text) => Date.parse(text);

test('an instant is shown in its zone', () => {
    assert.equal(absolute(at('2030-03-31T01:00:00Z'), 'Europe/Berlin'), '2030-03-31 03:00:00 +02:00 Europe/Berlin');
    assert.equal(absolute(at('2030-03-31T00:00:00.007Z'), 'UTC', true), '2030-03-31 00:00:00.007 UTC');
    assert.equal(absolute(at('2030-10-27T00:30:00Z'), 'Europe/Berlin'), '2030-10-27 02:30:00 +02:00 Europe/Berlin');
    assert.equal(absolute(at('2030-10-27T01:30:00Z'), 'Europe/Berlin'), '2030-10-27 02:30:00 +01:00 Europe/Berlin');
    assert.equal(absolute(at('2030-01-01T12:00:00Z'), 'America/St_Johns'), '2030-01-01 08:30:00 -03:30 America/St_Johns');
    assert.equal(offsetMinutes(at('2030-07-01T00:00:00Z'), 'Asia/Kolkata'), 330);
});

test('an instant is read in the zone, or with its own offset', () => {
    assert.equal(parseInstant('2030-01-31 09:00', 'Europe/Berlin'), at('2030-01-31T08:00:00Z'));
    assert.equal(parseInstant('2030-07-31', 'Europe/Berlin'), at('2030-07-30T22:00:00Z'));
    assert.equal(parseInstant('2030-01-31T09:00:00+02:00', 'Europe/Berlin'), at('2030-01-31T07:00:00Z'));
    for (const text of ['', 'tomorrow', '2030-13-01', '2030-01-31 25:00']) assert.equal(parseInstant(text, 'UTC'), null, text);
});

test('both changes of the clocks in a year are found to the minute', () => {
    const changes = clockChanges('America/New_York', at('2030-01-01T00:00:00Z'), at('2031-01-01T00:00:00Z'));
    assert.deepEqual(changes, [
        { at: at('2030-03-10T07:00:00Z'), before: -300, after: -240 },
        { at: at('2030-11-03T06:00:00Z'), before: -240, after: -300 },
    ]);
    assert.deepEqual(clockChanges('UTC', at('2030-01-01T00:00:00Z'), at('2031-01-01T00:00:00Z')), []);
});

test('a day that no month has is no instant', () => {
    for (const text of ['2030-02-31', '2030-02-29 10:00', '2030-04-31T00:00:00Z', '2030-02-30T00:00:00+02:00', '2030-01-31 24:00'])
        assert.equal(parseInstant(text, 'Europe/Berlin'), null, text);
    assert.equal(parseInstant('2028-02-29', 'UTC'), at('2028-02-29T00:00:00Z'));
});

test('a wall time that is skipped or comes twice is the later instant in every zone', () => {
    for (const [text, zone, instant] of [
        ['2030-03-31 01:59', 'Europe/Berlin', '2030-03-31T00:59:00Z'],
        ['2030-03-31 02:30', 'Europe/Berlin', '2030-03-31T01:30:00Z'],
        ['2030-03-31 03:00', 'Europe/Berlin', '2030-03-31T01:00:00Z'],
        ['2030-10-27 01:59', 'Europe/Berlin', '2030-10-26T23:59:00Z'],
        ['2030-10-27 02:30', 'Europe/Berlin', '2030-10-27T01:30:00Z'],
        ['2030-10-27 03:00', 'Europe/Berlin', '2030-10-27T02:00:00Z'],
        ['2030-03-10 01:59', 'America/New_York', '2030-03-10T06:59:00Z'],
        ['2030-03-10 02:30', 'America/New_York', '2030-03-10T07:30:00Z'],
        ['2030-03-10 03:00', 'America/New_York', '2030-03-10T07:00:00Z'],
        ['2030-11-03 00:59', 'America/New_York', '2030-11-03T04:59:00Z'],
        ['2030-11-03 01:30', 'America/New_York', '2030-11-03T06:30:00Z'],
        ['2030-11-03 02:00', 'America/New_York', '2030-11-03T07:00:00Z'],
    ])
        assert.equal(parseInstant(text, zone), at(instant), `${text} ${zone}`);
});

test('the repeated hour may end at midnight', () => {
    const walls = (/** @type {string} */ zone) => clockChanges(zone, at('2030-01-01T00:00:00Z'), at('2031-01-01T00:00:00Z')).map(wallsOf);
    assert.deepEqual(walls('America/Santiago'), [
        { date: '2030-04-06', from: '23:00', to: '00:00' },
        { date: '2030-09-08', from: '00:00', to: '01:00' },
    ]);
    assert.deepEqual(walls('Africa/Cairo')[1], { date: '2030-10-31', from: '23:00', to: '00:00' });
    assert.deepEqual(walls('Europe/Berlin')[0], { date: '2030-03-31', from: '02:00', to: '03:00' });
});
