/** Payloads: the bytes of a task, shown and edited as text and never changed by the way. */

/** Above this length (characters) a payload is cut off on the screen; copy and download have all of it. */
export const SHOWN_MAX = 256 * 1024;

/**
 * The text of a member of a JSON object as it was sent. `JSON.parse` would make 1.0 of 1 and round long numbers.
 * @param {string} text A JSON object.
 * @param {string} member
 * @returns {string | null}
 */
export function rawMember(text, member) {
    let at = skipSpace(text, 0);
    if (text[at] !== '{') return null;
    at = skipSpace(text, at + 1);
    while (at < text.length && text[at] !== '}') {
        const nameEnd = valueEnd(text, at);
        const name = JSON.parse(text.slice(at, nameEnd));
        const start = skipSpace(text, skipSpace(text, nameEnd) + 1);
        const end = valueEnd(text, start);
        if (name === member) return text.slice(start, end);
        at = skipSpace(text, end);
        if (text[at] === ',') at = skipSpace(text, at + 1);
    }
    return null;
}

/** @param {string} text @param {number} at */
function skipSpace(text, at) {
    let i = at;
    while (text[i] === ' ' || text[i] === '\n' || text[i] === '\r' || text[i] === '\t') i += 1;
    return i;
}

/** @param {string} text @param {number} at */
function stringEnd(text, at) {
    let i = at + 1;
    while (i < text.length && text[i] !== '"') i += text[i] === '\\' ? 2 : 1;
    return i + 1;
}

/** The end of the JSON value that begins at `at`. @param {string} text @param {number} at */
function valueEnd(text, at) {
    if (text[at] === '"') return stringEnd(text, at);
    let i = at;
    let depth = 0;
    while (i < text.length) {
        const c = text[i];
        if (c === '"') {
            i = stringEnd(text, i);
            continue;
        }
        if (depth === 0 && (c === ',' || c === '}' || c === ']')) return i;
        if (c === '{' || c === '[') depth += 1;
        if (c === '}' || c === ']') {
            depth -= 1;
            if (depth === 0) return i + 1;
        }
        i += 1;
    }
    return i;
}

/**
 * JSON with line ends and indents. Only space between tokens is added, so numbers and escapes stay as they are.
 * @param {string} json Valid JSON.
 */
export function pretty(json) {
    let text = '';
    let indent = 0;
    const line = () => `\n${'  '.repeat(indent)}`;
    for (let i = 0; i < json.length;) {
        const c = json[i];
        if (c === '"') {
            const end = stringEnd(json, i);
            text += json.slice(i, end);
            i = end;
            continue;
        }
        if (c === '{' || c === '[') {
            const next = skipSpace(json, i + 1);
            if (json[next] === '}' || json[next] === ']') {
                text += c + json[next];
                i = next + 1;
                continue;
            }
            indent += 1;
            text += c + line();
        } else if (c === '}' || c === ']') {
            indent -= 1;
            text += line() + c;
        } else if (c === ',') text += c + line();
        else if (c === ':') text += ': ';
        else if (c !== ' ' && c !== '\n' && c !== '\r' && c !== '\t') text += c;
        i += 1;
    }
    return text;
}

/** @param {string} base64 */
export function bytesOf(base64) {
    const binary = atob(base64);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
    return bytes;
}

/** @param {Uint8Array} bytes */
export function base64Of(bytes) {
    let binary = '';
    for (let i = 0; i < bytes.length; i += 8192) binary += String.fromCharCode(...bytes.subarray(i, i + 8192));
    return btoa(binary);
}

/**
 * The text of bytes, or null if they are no UTF-8 or have control characters that no text has.
 * @param {Uint8Array} bytes
 */
export function textOf(bytes) {
    try {
        const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
        // eslint-disable-next-line no-control-regex
        return /[\x00-\x08\x0e-\x1a\x1c-\x1f]/.test(text) ? null : text;
    } catch {
        return null;
    }
}

/**
 * Lines of a hex dump: offset, 16 bytes, and the printable ones as text.
 * @param {Uint8Array} bytes
 * @param {number} max Number of bytes.
 */
export function hexDump(bytes, max) {
    const lines = [];
    for (let at = 0; at < Math.min(bytes.length, max); at += 16) {
        const row = [...bytes.subarray(at, Math.min(at + 16, max))];
        const hex = row
            .map((b) => b.toString(16).padStart(2, '0'))
            .join(' ')
            .padEnd(47);
        const text = row.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : '.')).join('');
        lines.push(`${at.toString(16).padStart(8, '0')}  ${hex}  ${text}`);
    }
    return lines.join('\n');
}

/**
 * A payload in the form in which it is shown.
 * @param {{payload?: unknown, payload_base64?: string, content_type?: string}} task
 * @param {string | null} raw The JSON text of `payload` as it was sent.
 * @returns {{kind: 'json' | 'text' | 'binary', type: string, size: number, full: string, shown: string, cut: boolean, bytes: Uint8Array}}
 */
export function describePayload(task, raw) {
    if (typeof task.payload_base64 === 'string') {
        const bytes = bytesOf(task.payload_base64);
        const type = task.content_type ?? 'application/octet-stream';
        const text = textOf(bytes);
        if (text !== null)
            return {
                kind: 'text',
                type,
                size: bytes.length,
                full: text,
                shown: text.slice(0, SHOWN_MAX),
                cut: text.length > SHOWN_MAX,
                bytes,
            };
        // A line of the dump has five times the length of its bytes.
        const max = SHOWN_MAX / 16;
        return {
            kind: 'binary',
            type,
            size: bytes.length,
            full: task.payload_base64,
            shown: hexDump(bytes, max),
            cut: bytes.length > max,
            bytes,
        };
    }
    const json = raw ?? JSON.stringify(task.payload ?? null);
    const bytes = new TextEncoder().encode(json);
    const cut = json.length > SHOWN_MAX;
    return {
        kind: 'json',
        type: 'application/json',
        size: bytes.length,
        full: json,
        shown: cut ? json.slice(0, SHOWN_MAX) : pretty(json),
        cut,
        bytes,
    };
}
