import assert from 'node:assert/strict';
import { test } from 'node:test';
import { largestParts, parseDuration, parseRate, writeDuration } from '../assets/logic/duration.js';

test('durations are read as the server reads them', () => {
    const cases = {
        '250ms': 250,
        '1.5s': 1500,
        '1h30m': 5_400_000,
        '15d': 1_296_000_000,
        '0.1ms': 1,
        '0s': 0,
        '1w1d': 691_200_000,
        '1.1s': 1100,
    };
    for (const [text, ms] of Object.entries(cases)) assert.equal(parseDuration(text), ms, text);
    for (const text of ['', '30', '-5s', '30m1h', '1.5h30m', '1m1m', '2 days', '1y', 's', '9007199254740994ms'])
        assert.equal(parseDuration(text), null, text);
});

test('a written duration is read back', () => {
    for (const ms of [0, 1, 999, 61_000, 5_400_000, 1_296_000_000, 86_399_999]) assert.equal(parseDuration(writeDuration(ms)), ms);
});

test('a reader sees the two largest parts', () => {
    assert.deepEqual(largestParts(93_784_000), [
        [1, 'day'],
        [2, 'hour'],
    ]);
    assert.deepEqual(largestParts(1_250), [[1.2, 'second']]);
    assert.deepEqual(largestParts(59_999), [[59.9, 'second']]);
    assert.deepEqual(largestParts(12), [[12, 'millisecond']]);
    assert.deepEqual(largestParts(0), [[0, 'second']]);
    assert.deepEqual(largestParts(3_600_000), [[1, 'hour']]);
    assert.deepEqual(largestParts(100 * 31_536_000_000), [[100, 'year']]);
});

test('rates have a number and a period of at most a day', () => {
    assert.deepEqual(parseRate('5/s'), { count: 5, periodMs: 1000 });
    assert.deepEqual(parseRate('1/250ms'), { count: 1, periodMs: 250 });
    for (const text of ['x/s', '5', '0/s', '5/2d', '5/s/s', '-1/s']) assert.equal(parseRate(text), null, text);
});
