// Chinese in the search of the site. The index of mdBook has words of Latin letters only: no Chinese question finds anything in it.
// A question with Chinese characters is compared with the text of each section, pair of characters by pair. Other questions
// find what they found before, without the Chinese pages; a reader of a Chinese page gets the Chinese sections first.
'use strict';

(() => {
    if (!window.elasticlunr) {
        return;
    }
    const han = /\p{Script=Han}/u;
    const runs = /\p{Script=Han}+|[\p{L}\p{N}_$%.-]+/gu;
    const teaser = 70;

    // The pairs of neighbours of a run of Chinese characters; a Latin word as a whole.
    function parts(query) {
        const found = new Set();
        for (const run of query.toLowerCase().match(runs) ?? []) {
            if (!han.test(run) || run.length === 1) {
                found.add(run);
            }
            for (let at = 0; han.test(run) && at + 1 < run.length; at++) {
                found.add(run.slice(at, at + 2));
            }
        }
        return [...found];
    }

    // A rare part weighs more than one that is in every section.
    function chinese(sections, query) {
        const scores = new Map();
        for (const part of parts(query)) {
            const hits = sections.filter(section => section.text.includes(part));
            const weight = Math.log(1 + sections.length / (1 + hits.length));
            for (const section of hits) {
                const places = 1 + 3 * section.title.includes(part) + section.path.includes(part);
                const before = scores.get(section) ?? { score: 0, first: section.body.length };
                const at = section.body.indexOf(part);
                const first = at < 0 ? before.first : Math.min(before.first, at);
                scores.set(section, { score: before.score + weight * places, first });
            }
        }
        const results = [...scores].map(([{ ref, doc }, { score, first }]) => {
            const from = Math.max(0, Math.min(first, doc.body.length - teaser) - 10);
            return { ref, score, doc: { ...doc, body: doc.body.slice(from, from + teaser) } };
        });
        return results.sort((one, other) => other.score - one.score);
    }

    const load = window.elasticlunr.Index.load;
    window.elasticlunr.Index.load = function(data) {
        const index = load.call(this, data);
        const latin = index.search.bind(index);
        const isChinese = doc => han.test(doc.breadcrumbs);
        const sections = Object.entries(index.documentStore.docs)
            .filter(([, doc]) => isChinese(doc))
            .map(([ref, doc]) => {
                const [title, path, body] = [doc.title, doc.breadcrumbs, doc.body].map(text => text.toLowerCase());
                return { ref, doc, title, path, body, text: `${path} ${title} ${body}` };
            });
        index.search = (query, options) => {
            if (han.test(query)) {
                return chinese(sections, query);
            }
            const results = latin(query, options);
            const others = results.filter(result => !isChinese(result.doc));
            return document.documentElement.lang === 'zh-CN' ? [...results.filter(result => isChinese(result.doc)), ...others] : others;
        };
        return index;
    };
})();
