// Chinese in the search of the site. The index of mdBook has words of Latin letters only: no Chinese question finds anything in it.
// A question with Chinese characters is compared with the text of each Chinese section, pair of characters by pair. Any other
// question finds the English sections, and Chinese ones only if no English section answers it. A reader of a Chinese page gets
// the Chinese sections before the English ones.
'use strict';

(() => {
    if (!window.elasticlunr) {
        return;
    }
    const han = /\p{Script=Han}/u;
    const runs = /\p{Script=Han}+|[\p{Script=Latin}\p{N}_$%+-]+(?:[.:][\p{Script=Latin}\p{N}_$%+-]+)*/gu;
    const teaser = 70;
    // Words of users, and the word of the pages for the same thing. A word on its own has no pair with the next one.
    const synonyms = [
        ['延时队列', '延迟队列'],
        ['延时', '延迟'],
        ['重投', '重新投递'],
        ['重新投递', '重新投递'],
        ['调度计划', '调度规则'],
        ['鉴权', '访问令牌'],
        ['监控', '监控 指标和告警'],
        ['高可用', '高可用 副本'],
        ['集群', '集群 副本'],
        ['立即执行', '立刻到期'],
        ['qps', 'qps 每秒'],
        ['精确一次', '精确一次 执行两次'],
        ['恰好一次', '精确一次 执行两次'],
    ];

    // The pairs of neighbours of a run of Chinese characters; a Latin word as a whole.
    function parts(query) {
        const found = new Set();
        const words = synonyms.reduce((text, [theirs, ours]) => text.replaceAll(theirs, ` ${ours} `), query.toLowerCase());
        for (const run of words.match(runs) ?? []) {
            if (!han.test(run) || run.length === 1) {
                found.add(run);
            }
            for (let at = 0; han.test(run) && at + 1 < run.length; at++) {
                found.add(run.slice(at, at + 2));
            }
        }
        return [...found];
    }

    // A rare part weighs more than one that is in every section, and a section with all parts more than one with a few.
    function chinese(sections, query) {
        const scores = new Map();
        const wanted = parts(query);
        for (const part of wanted) {
            const hits = sections.filter(section => section.text.includes(part));
            const weight = Math.log(1 + sections.length / (1 + hits.length));
            for (const section of hits) {
                const places = 1 + 3 * section.title.includes(part) + section.path.includes(part);
                const before = scores.get(section) ?? { score: 0, found: 0, first: section.body.length };
                const at = section.body.indexOf(part);
                const first = at < 0 ? before.first : Math.min(before.first, at);
                scores.set(section, { score: before.score + weight * places, found: before.found + 1, first });
            }
        }
        const results = [...scores].map(([{ ref, doc }, { score, found, first }]) => {
            const from = Math.max(0, Math.min(first, doc.body.length - teaser) - 10);
            return { ref, score: score * found / wanted.length, doc: { ...doc, body: doc.body.slice(from, from + teaser) } };
        });
        return results.sort((one, other) => other.score - one.score);
    }

    const load = window.elasticlunr.Index.load;
    window.elasticlunr.Index.load = function(data) {
        const index = load.call(this, data);
        const latin = index.search.bind(index);
        const isChinese = ref => window.search.doc_urls[ref].startsWith('zh/');
        const sections = Object.entries(index.documentStore.docs)
            .filter(([ref]) => isChinese(ref))
            .map(([ref, doc]) => {
                const [title, path, body] = [doc.title, doc.breadcrumbs, doc.body].map(text => text.toLowerCase());
                return { ref, doc, title, path, body, text: `${path} ${title} ${body}` };
            });
        index.search = (query, options) => {
            const english = latin(query, options).filter(result => !isChinese(result.ref));
            if (han.test(query) || document.documentElement.lang === 'zh-CN') {
                return [...chinese(sections, query), ...english];
            }
            return english.length > 0 ? english : chinese(sections, query);
        };
        return index;
    };
})();
