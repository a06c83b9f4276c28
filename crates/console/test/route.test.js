import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isToken, match, path, rootOf, shellLine } from '../assets/logic/route.js';

test('every name survives its way through the address', () => {
    for (const name of ['orders', 'order:1', 'team/blue', 'a b?c#d%', '长', '.', '..', '~..', '~~.', '%2F', 'x'.repeat(256)]) {
        const address = path('task', { queue: 'team/q', key: name });
        assert.deepEqual(match(address), { page: 'task', params: { queue: 'team/q', key: name } }, name);
        // A browser resolves dots in a path, also percent-encoded ones.
        assert.equal(new URL(address, 'http://h/console/').pathname, `/console/${address}`);
    }
});

test('pages are told apart', () => {
    assert.equal(match('').page, 'overview');
    assert.equal(match('q/a/tasks').page, 'search');
    assert.deepEqual([match('targets').page, match('q/a/target').page], ['targets', 'target']);
    assert.equal(match('q/a/schedules/nightly').params.name, 'nightly');
    assert.equal(match('q/a/b/c/d').page, 'missing');
    assert.equal(match('q/%E0%A4%A').page, 'missing');
});

test('a query leaves out what is empty', () => {
    assert.equal(path('search', { queue: 'a' }, { tag: 'x y', state: '', cursor: undefined }), 'q/a/tasks?tag=x+y');
});

test('the root is found with and without a hash and below a prefix', () => {
    assert.equal(rootOf('http://h/console/main.js'), '/console/');
    assert.equal(rootOf('http://h/x/console/a/0123abcd/main.js'), '/x/console/');
});

test('a line for a shell runs nothing of a name', () => {
    const line = shellLine('PUT', "http://h/v1/queues/a/tasks/';ls;(x)", '{"a":"it\'s"}', true);
    assert.equal(
        line,
        `curl -X PUT 'http://h/v1/queues/a/tasks/'\\'';ls;(x)' -H "authorization: Bearer $TICKWHEEL_TOKEN" -H 'content-type: application/json' -d '{"a":"it'\\''s"}'`,
    );
});

test('a token is what a header can carry', () => {
    assert.ok(isToken('tw_abc-123.XYZ~/+='));
    for (const text of ['', 'a b', 'tokén', '令牌', 'a\u200b', 'a\n']) assert.equal(isToken(text), false, text);
});
