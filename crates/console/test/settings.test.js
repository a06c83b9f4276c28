import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { FIELDS, allows, check, difference, patchOf, settingsOf, shownMember, valuesOf } from '../assets/logic/settings.js';

const field = (/** @type {string} */ name) => /** @type {any} */ (FIELDS.find((f) => f.name === name));

test('only what differs is sent, and an emptied field as null', () => {
    const before = valuesOf({ queue: 'a', rate: '5/s', burst: 5, retry: { base: '1h', max_attempts: 3, jitter: 0.5 } });
    const after = { ...before, rate: '', burst: ' 5 ', max_in_flight: '10', 'retry.base': '2h', 'retry.jitter': '' };
    assert.deepEqual(patchOf(difference(before, after)), { rate: null, max_in_flight: 10, retry: { base: '2h', jitter: null } });
    assert.deepEqual(patchOf(difference(before, before)), {});
});

test('fields are checked with the limits of the server', () => {
    const right = {
        max_in_flight: '1',
        rate: '1/250ms',
        default_lease: '12h',
        'retry.jitter': '0.25',
        'retry.backoff': 'fixed',
        'history.keys': '0',
        burst: '',
    };
    for (const [name, text] of Object.entries(right)) assert.equal(check(field(name), text), null, `${name} ${text}`);
    const wrong = {
        max_in_flight: '0',
        rate: '5',
        default_lease: '13h',
        'retry.jitter': '1.5',
        'retry.backoff': 'linear',
        'history.keep': '366d',
        burst: '1e3',
    };
    for (const [name, text] of Object.entries(wrong)) assert.notEqual(check(field(name), text), null, `${name} ${text}`);
});

test('no action is drawn before it is known who calls', () => {
    assert.equal(allows(null, 'admin'), false);
    assert.equal(allows(null, 'read'), true);
    assert.equal(allows({ rights: ['read'] }, 'produce'), false);
    assert.equal(allows({ rights: ['read', 'produce'] }, 'produce'), true);
    assert.equal(allows({ rights: ['admin'], console: 'read-only' }, 'admin'), false);
});

test('the settings of a target are told from its state, and its secrets are not shown', () => {
    const settings = {
        kind: 'webhook',
        url: 'https://a.example',
        headers: { shop: 'eu' },
        dead_on: [400, 422],
        signing: [{ secret: { set: true, id: '5e884898' } }, { secret: { name: 'old' }, until: '2030-01-01T00:00:00.000Z' }],
        auth: { basic: { user: 'u', password: { set: true } } },
        enabled: false,
    };
    const state = { queue: 'a', version: 7, state: 'open', since: '2026-01-01T00:00:00.000Z', next_try: '2026-01-01T00:00:01.000Z', reason: 'http 503', in_flight: 0, attempts: { acked: 1 } };
    assert.deepEqual(settingsOf({ ...state, ...settings }), settings);
    assert.deepEqual(Object.values(settings).map(shownMember), [
        'webhook',
        'https://a.example',
        'shop: eu',
        '400, 422',
        'secret: ••• 5e884898, secret: name: old, until: 2030-01-01T00:00:00.000Z',
        'basic: user: u, password: •••',
        'false',
    ]);
});

// A target that failed could not be edited: the form sent `next_try`, which the server shows only then.
test('the form of a target has the members that a PUT takes, and no other one that the server shows', () => {
    const page = readFileSync(new URL('../../../docs/reference/http.md', import.meta.url), 'utf8');
    const members = (/** @type {string} */ object) => {
        const part = page.split(`\n### ${object}\n`)[1].split('\n### ')[0];
        return [...part.matchAll(/^\| `([^`]+)` \|/gm)].map((found) => found[1]);
    };
    const shown = Object.fromEntries(members('TargetState').map((name) => [name, 1]));
    assert.ok('next_try' in shown && 'url' in shown);
    assert.deepEqual(Object.keys(settingsOf(shown)), members('Target').filter((name) => name in shown));
});
