import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { en } from '../assets/i18n/en.js';
import { zh } from '../assets/i18n/zh.js';

const root = new URL('../assets/', import.meta.url);
const files = /** @type {string[]} */ (readdirSync(root, { recursive: true })).map(String).sort();
const read = (/** @type {string} */ name) => readFileSync(new URL(name, root), 'utf8');
const scripts = files.filter((name) => name.endsWith('.js'));
const own = scripts.filter((name) => !name.startsWith('vendor/'));
const source = own
    .filter((name) => !name.startsWith('i18n/e') && !name.startsWith('i18n/z'))
    .map(read)
    .join('\n');

test('scripts and styles fit the budget of 128 KB and 40 files', () => {
    const counted = files.filter((name) => /\.(js|css)$/.test(name));
    const bytes = counted.reduce((sum, name) => sum + gzipSync(read(name), { level: 9 }).length, 0);
    assert.ok(bytes <= 128 * 1024, `${bytes} bytes`);
    assert.ok(counted.length <= 40, `${counted.length} files`);
});

test('every module is loaded ahead', () => {
    const ahead = [...read('index.html').matchAll(/rel="modulepreload" href="\.\/([^"]+)"/g)].map((found) => found[1]).sort();
    assert.deepEqual(
        ahead,
        scripts.filter((name) => name !== 'main.js'),
    );
});

test('the code of others is as published', () => {
    const sums = read('vendor/README.md');
    for (const name of ['preact.js'])
        assert.ok(
            sums.includes(
                createHash('sha256')
                    .update(readFileSync(new URL(`vendor/${name}`, root)))
                    .digest('hex'),
            ),
            name,
        );
});

test('nothing writes HTML or styles into the page, and nothing comes from another host', () => {
    for (const name of own) {
        const text = read(name);
        for (const never of [
            'innerHTML',
            'outerHTML',
            'dangerously',
            'insertAdjacent',
            'document.write',
            ' style=',
            'eval(',
            'new Function',
            'https://',
        ])
            assert.ok(!text.includes(never), `${name} has ${never}`);
    }
    assert.ok(!/<style|<script(?! type="module" src="\.\/)| on\w+=| style=|https?:/.test(read('index.html')));
    assert.ok(!/url\(|@import/.test(read('console.css')));
});

test('imports are relative and name a file', () => {
    for (const name of own) {
        for (const [, target] of read(name).matchAll(/from '([^']+)'/g)) {
            assert.ok(target.startsWith('.'), `${name} imports ${target}`);
            const path = new URL(target, new URL(name, root)).href.slice(root.href.length);
            assert.ok(scripts.includes(path), `${name} imports ${target}`);
        }
    }
});

const placeholders = (/** @type {string} */ text) => [...new Set([...text.matchAll(/\{\w+\}/g)].map(String))].sort();

test('both languages have the same keys and placeholders', () => {
    assert.deepEqual(Object.keys(zh).sort(), Object.keys(en).sort());
    for (const [key, text] of Object.entries(en)) {
        assert.deepEqual(placeholders(zh[key]), placeholders(text), key);
        const forms = text.split('|');
        assert.ok(forms.length <= 2 && !zh[key].includes('|'), key);
        if (forms.length === 2) assert.deepEqual(placeholders(forms[0]), placeholders(forms[1]), key);
    }
});

test('every key that is used has words, and all words are used', () => {
    const used = new Set([...source.matchAll(/'([a-z_]+(?:\.[\w.]+)+)'/g)].map((found) => found[1]));
    const stems = [...source.matchAll(/`((?:[a-z_]+\.)+(?:[a-z_]+_)?)\$\{/g)].map((found) => found[1]);
    for (const [, key] of source.matchAll(/\bt\('([^']+)'/g)) assert.ok(key in en, `no words for ${key}`);
    for (const key of Object.keys(en))
        assert.ok(used.has(key) || stems.some((stem) => key.startsWith(stem)) || /^(catch_up|overlap)\./.test(key), `${key} is not used`);
});
