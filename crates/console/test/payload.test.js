import assert from 'node:assert/strict';
import { test } from 'node:test';
import { base64Of, bytesOf, describePayload, hexDump, pretty, rawMember, textOf } from '../assets/logic/payload.js';

test('a payload keeps its text', () => {
    const text = '{ "key":"a\\"}", "n":{"payload":1}, "payload" : {"big":12345678901234567890.10,"one":1.0} ,"z":[1]}';
    assert.equal(rawMember(text, 'payload'), '{"big":12345678901234567890.10,"one":1.0}');
    assert.equal(rawMember(text, 'z'), '[1]');
    assert.equal(rawMember(text, 'key'), '"a\\"}"');
    assert.equal(rawMember(text, 'none'), null);
    assert.equal(rawMember('{"payload":null}', 'payload'), 'null');
});

test('pretty changes space only', () => {
    const json = '{"a":[1.0,{"b":"x, {y}: \\" z"}],"c":{},"d":[ ]}';
    assert.equal(pretty(json), '{\n  "a": [\n    1.0,\n    {\n      "b": "x, {y}: \\" z"\n    }\n  ],\n  "c": {},\n  "d": []\n}');
    assert.deepEqual(JSON.parse(pretty(json)), JSON.parse(json));
});

test('bytes are text, or shown as a dump', () => {
    const bytes = new Uint8Array(300).map((_, i) => i % 256);
    assert.deepEqual(bytesOf(base64Of(bytes)), bytes);
    assert.equal(textOf(bytes), null);
    assert.equal(textOf(new TextEncoder().encode('<img onerror>')), '<img onerror>');
    assert.match(hexDump(bytes, 32), /^00000000 {2}00 01 .*\n00000010 {2}10 /);
});

test('a long payload is cut off on the screen and whole for copies', () => {
    const long = describePayload(
        { payload_base64: base64Of(new TextEncoder().encode('x'.repeat(600_000))), content_type: 'text/plain' },
        null,
    );
    assert.deepEqual([long.kind, long.cut, long.shown.length, long.full.length], ['text', true, 262_144, 600_000]);
    assert.equal(describePayload({ payload: 1 }, '1.0').shown, '1.0');
});
