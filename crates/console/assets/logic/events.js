/** Server-sent events, as bytes of a stream. */

/**
 * Splits a stream of server-sent events. Bytes that end inside an event stay for the next call.
 * @param {string} buffer
 * @returns {{events: {event: string, data: string, id: string}[], rest: string, retry: number | null}} `retry` is the wait (ms) before a broken stream is
 * opened again, if the server names one.
 */
export function parseEvents(buffer) {
    const text = buffer.replace(/\r\n?/g, '\n');
    const end = text.lastIndexOf('\n\n');
    if (end < 0) return { events: [], rest: text, retry: null };
    const events = [];
    let retry = null;
    for (const block of text.slice(0, end).split('\n\n')) {
        const event = { event: 'message', data: '', id: '' };
        const lines = [];
        for (const line of block.split('\n')) {
            const colon = line.indexOf(':');
            if (colon <= 0) continue;
            const value = line.slice(colon + 1).replace(/^ /, '');
            const name = line.slice(0, colon);
            if (name === 'event') event.event = value;
            if (name === 'id') event.id = value;
            if (name === 'retry' && /^\d+$/.test(value)) retry = Number(value);
            if (name === 'data') lines.push(value);
        }
        if (lines.length > 0) events.push({ ...event, data: lines.join('\n') });
    }
    return { events, rest: text.slice(end + 2), retry };
}
