/**
 * Paths below the console's root. A path names a page, the query holds the rest of a view's state.
 *
 * | path | page |
 * |---|---|
 * | `` | overview |
 * | `q/{queue}/t/{key}` | task |
 */

/** @type {[string, string[]][]} Each page with the pattern of its path; `:name` stands for one segment. */
const PATTERNS = [
    ['overview', []],
    ['horizon', ['horizon']],
    ['queue', ['q', ':queue']],
    ['settings', ['q', ':queue', 'settings']],
    ['search', ['q', ':queue', 'tasks']],
    ['task', ['q', ':queue', 't', ':key']],
    ['dead', ['q', ':queue', 'dead']],
    ['target', ['q', ':queue', 'target']],
    ['targets', ['targets']],
    ['schedules', ['schedules']],
    ['schedule', ['q', ':queue', 'schedules', ':name']],
    ['jobs', ['jobs']],
    ['leases', ['leases']],
    ['clock', ['clock']],
    ['wheel', ['wheel']],
    ['about', ['about']],
];

/**
 * @param {string} path Relative to the root, without query.
 * @returns {{page: string, params: Record<string, string>}} The page `missing` if there is none.
 */
export function match(path) {
    const segments = path
        .replace(/^\/+|\/+$/g, '')
        .split('/')
        .filter((s) => s !== '');
    for (const [page, pattern] of PATTERNS) {
        if (pattern.length !== segments.length) continue;
        /** @type {Record<string, string>} */
        const params = {};
        const fits = pattern.every((part, i) => {
            if (!part.startsWith(':')) return part === segments[i];
            const value = decode(segments[i]);
            if (value === null) return false;
            params[part.slice(1)] = value;
            return true;
        });
        if (fits) return { page, params };
    }
    return { page: 'missing', params: {} };
}

/** @param {string} segment */
function decode(segment) {
    try {
        const text = decodeURIComponent(segment);
        // A browser takes a segment `..` or `%2e%2e` for "one up", so the paths of the keys `.` and `..` have a tilde more.
        return /^~+\.{1,2}$/.test(text) ? text.slice(1) : text;
    } catch {
        return null;
    }
}

/** Percent-encodes a segment; a colon, which keys often have, stays readable. @param {string} text */
export const encodeSegment = (text) => encodeURIComponent(text).replaceAll('%3A', ':');

/** @param {string} text */
const encode = (text) => encodeSegment(/^~*\.{1,2}$/.test(text) ? `~${text}` : text);

/**
 * The path of a page, relative to the root.
 * @param {string} page
 * @param {Record<string, string>} [params]
 * @param {Record<string, string | number | null | undefined>} [query] Members that are empty are left out.
 */
export function path(page, params = {}, query = {}) {
    const found = PATTERNS.find(([name]) => name === page);
    if (!found) throw new Error(`there is no page ${page}`);
    const segments = found[1].map((part) => (part.startsWith(':') ? encode(params[part.slice(1)]) : part));
    return segments.join('/') + writeQuery(query);
}

/** @param {Record<string, string | number | null | undefined>} query */
export function writeQuery(query) {
    const kept = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
        if (value !== null && value !== undefined && value !== '') kept.set(name, String(value));
    }
    const text = kept.toString();
    return text === '' ? '' : `?${text}`;
}

/**
 * The console's root from the address of its main module: `/x/console/a/0123abcd/main.js` and `/x/console/main.js` are both at
 * `/x/console/`.
 * @param {string} module
 */
export function rootOf(module) {
    const { pathname } = new URL('./', module);
    return pathname.replace(/a\/[0-9a-f]{8,64}\/$/, '');
}

/**
 * A line of curl, quoted so that a shell runs nothing of an address or a body.
 * @param {string} method
 * @param {string} address
 * @param {string} body
 * @param {boolean} withToken
 */
export function shellLine(method, address, body, withToken) {
    const quote = (/** @type {string} */ text) => `'${text.replaceAll("'", "'\\''")}'`;
    const authorization = withToken ? ' -H "authorization: Bearer $TICKWHEEL_TOKEN"' : '';
    return `curl -X ${method} ${quote(address)}${authorization} -H 'content-type: application/json' -d ${quote(body)}`;
}

/** Whether a text can be sent as a token: visible ASCII. `fetch` throws at what a header cannot carry. @param {string} text */
export const isToken = (text) => /^[\x21-\x7e]+$/.test(text);
