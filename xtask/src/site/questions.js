// Asks the search of the site, as a browser does. Arguments: the site, and a file of questions: PAGE QUESTION.
'use strict';

const { readFileSync } = require('node:fs');
const vm = require('node:vm');

const [site, questions] = process.argv.slice(2);
const page = { search: {}, document: { documentElement: { lang: 'en' } } };
page.window = page;
vm.createContext(page);
for (const script of ['elasticlunr.min.js', 'chinese.js', 'searchindex.js']) {
    vm.runInContext(readFileSync(`${site}/${script}`, 'utf8'), page, script);
}
const { index, search_options, doc_urls } = page.search;
const loaded = page.elasticlunr.Index.load(index);
const found = query => loaded.search(query, search_options).map(result => doc_urls[result.ref]);

for (const line of readFileSync(questions, 'utf8').split('\n').filter(line => line && !line.startsWith('#'))) {
    const [wanted, ...words] = line.split(' ');
    const first = found(words.join(' ')).slice(0, 3);
    if (!first.some(url => url.startsWith(`zh/how-to/${wanted}.html`))) {
        console.log(`\`${words.join(' ')}\` does not find ${wanted}, but ${first.join(', ') || 'nothing'}`);
    }
}
// A question in English finds no Chinese page, although the blocks are the same.
const strange = found('kill -9').filter(url => url.startsWith('zh/'));
if (strange.length > 0 || found('kill -9').length === 0) {
    console.log(`\`kill -9\` finds ${strange.join(', ') || 'nothing'}`);
}
