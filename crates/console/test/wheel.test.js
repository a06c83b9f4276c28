import assert from 'node:assert/strict';
import { test } from 'node:test';
import { occupiedOf, runsOf, sector } from '../assets/logic/wheel.js';

test('a bitmap is runs of occupied slots', () => {
    assert.deepEqual(runsOf('0000', 16), []);
    assert.deepEqual(runsOf('0180', 16), [
        [0, 1],
        [15, 16],
    ]);
    assert.deepEqual(runsOf('f01f', 16), [[4, 13]]);
    assert.deepEqual(runsOf('ff', 4), [[0, 4]], 'bits beyond the last slot are none');
    assert.equal(occupiedOf(runsOf('f181', 16)), 7);
});

test('a sector goes around the way that the hand goes', () => {
    assert.equal(sector(0, 1, 4), 'M170.0 35.0A135 135 0 0 1 305.0 170.0L232.0 170.0A62 62 0 0 0 170.0 108.0Z');
    assert.match(sector(0, 3, 4), /A135 135 0 1 1 35\.0 170\.0/);
    assert.equal(sector(0, 4, 4), sector(0, 2, 4) + sector(2, 4, 4));
});
