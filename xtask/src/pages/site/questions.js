// Asks the search of the site, as a browser does, and prints each answer that is wrong: PLACE, a tab, and what it is.
// Arguments: the site, the questions in Chinese (PAGE QUESTION), and those in English (NUMBER. QUESTION — PLACE).
'use strict';

const { readFileSync } = require('node:fs');
const vm = require('node:vm');

const [site, chinese, english] = process.argv.slice(2);
const html = { lang: 'en' };
const page = { search: {}, document: { documentElement: html } };
page.window = page;
vm.createContext(page);
for (const script of ['elasticlunr.min.js', 'chinese.js', 'searchindex.js']) {
    vm.runInContext(readFileSync(`${site}/${script}`, 'utf8'), page, script);
}
const { index, search_options, doc_urls } = page.search;
const loaded = page.elasticlunr.Index.load(index);
const lines = file => readFileSync(file, 'utf8').split('\n').filter(line => line && !line.startsWith('#'));

function found(query, lang = 'en') {
    html.lang = lang;
    return loaded.search(query, search_options).map(result => doc_urls[result.ref]);
}

function wrong(place, query, urls) {
    console.log(`${place}\t\`${query}\` finds ${urls.join(', ') || 'nothing'}`);
}

for (const line of lines(chinese)) {
    const [wanted, ...words] = line.split(' ');
    const pages = [`zh/${wanted}.html`, `zh/how-to/${wanted}.html`];
    const first = found(words.join(' ')).slice(0, 3);
    if (!first.some(url => pages.includes(url.split('#')[0]))) {
        wrong(chinese, words.join(' '), first);
    }
}
// The same words stand in the blocks of Chinese pages, but a reader of English gets no Chinese page.
const asked = lines(english).map(line => line.replace(/^\d+\. /, '').replace(/ — .*/, ''));
for (const question of [...asked, 'kill -9', 'held', 'rocketmq', 'install tarball']) {
    const urls = found(question);
    const strange = urls.filter(url => url.startsWith('zh/'));
    if (urls.length === 0 || strange.length > 0) {
        wrong(english, question, strange);
    }
}
// A word of Latin letters on a Chinese page: Chinese sections, and the English ones after them.
const both = found('rocketmq', 'zh-CN').map(url => url.startsWith('zh/'));
if (!both[0] || both.at(-1) || both.lastIndexOf(true) > both.indexOf(false)) {
    wrong(chinese, 'rocketmq', both.map(one => one ? 'Chinese' : 'English'));
}
