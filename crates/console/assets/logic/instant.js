/** Instants: from text to milliseconds since 1970 and back, in a zone that the reader chose. */

/** @type {Map<string, Intl.DateTimeFormat>} A formatter takes 50 us to make, and a table of 500 rows needs 1,000 texts. */
const formatters = new Map();

/**
 * @param {string} zone
 * @param {Intl.DateTimeFormatOptions} options
 * @param {string} language
 */
function formatter(zone, options, language) {
    const key = `${language} ${zone} ${JSON.stringify(options)}`;
    let found = formatters.get(key);
    if (!found) {
        found = new Intl.DateTimeFormat(language, { timeZone: zone, ...options });
        formatters.set(key, found);
    }
    return found;
}

const DAY = 86_400_000;

/** The zone of the browser. */
export const browserZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';

/**
 * The numbers of the wall clock at an instant in a zone.
 * @param {number} ms
 * @param {string} zone
 */
export function wall(ms, zone) {
    const parts = formatter(
        zone,
        {
            calendar: 'gregory',
            numberingSystem: 'latn',
            hourCycle: 'h23',
            year: 'numeric',
            month: '2-digit',
            day: '2-digit',
            hour: '2-digit',
            minute: '2-digit',
            second: '2-digit',
        },
        'en-US',
    ).formatToParts(ms);
    /** @type {Record<string, string>} */
    const found = {};
    for (const part of parts) found[part.type] = part.value;
    return {
        date: `${found.year.padStart(4, '0')}-${found.month}-${found.day}`,
        time: `${found.hour}:${found.minute}:${found.second}`,
        millis: String(((ms % 1000) + 1000) % 1000).padStart(3, '0'),
    };
}

/**
 * Minutes by which the zone's clocks are ahead of UTC at an instant.
 * @param {number} ms
 * @param {string} zone
 */
export function offsetMinutes(ms, zone) {
    const here = wall(ms, zone);
    const asUtc = Date.parse(`${here.date}T${here.time}Z`);
    return Math.round((asUtc - Math.floor(ms / 1000) * 1000) / 60_000);
}

/** An offset from UTC as RFC 3339 writes it. @param {number} minutes */
function offsetText(minutes) {
    const two = (/** @type {number} */ n) => String(n).padStart(2, '0');
    const size = Math.abs(minutes);
    return `${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

/**
 * The zone of an instant: `UTC`, or its offset and name. The offset tells the two instants of a repeated hour apart.
 * @param {number} ms
 * @param {string} zone
 */
export const zoneAt = (ms, zone) => (zone === 'UTC' ? zone : `${offsetText(offsetMinutes(ms, zone))} ${zone}`);

/**
 * An absolute time with its zone: `2030-03-31 03:00:00 +02:00 Europe/Berlin`.
 * @param {number} ms
 * @param {string} zone
 * @param {boolean} [precise] Whether milliseconds are shown.
 */
export function absolute(ms, zone, precise = false) {
    const here = wall(ms, zone);
    return `${here.date} ${here.time}${precise ? `.${here.millis}` : ''} ${zoneAt(ms, zone)}`;
}

/**
 * An absolute time without the name of its zone, for columns whose text names it elsewhere.
 * @param {number} ms
 * @param {string} zone
 */
export function short(ms, zone) {
    const here = wall(ms, zone);
    return `${here.date} ${here.time}`;
}

/**
 * Reads an instant that a person typed: RFC 3339, or a date with or without a time in the chosen zone. A wall time that comes twice, or
 * that the clocks skip, is the later of its two instants, so that nothing runs too early.
 * @param {string} text
 * @param {string} zone
 * @returns {number | null} Milliseconds since 1970.
 */
export function parseInstant(text, zone) {
    const typed = text.trim();
    const parts = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(:\d{2}(?:\.\d{1,9})?)?)?(Z|[+-]\d{2}:\d{2})?$/i.exec(typed);
    if (!parts) return null;
    const local = `${parts[1]}T${parts[2] ?? '00:00'}${parts[3] ?? ':00'}`;
    const asUtc = finite(Date.parse(`${local}Z`));
    // 31 February is read as a day of March.
    if (asUtc === null || !new Date(asUtc).toISOString().startsWith(parts[1])) return null;
    if (parts[4]) return finite(Date.parse(local + parts[4].toUpperCase()));
    const found = [-DAY, DAY].map((away) => asUtc - offsetMinutes(asUtc + away, zone) * 60_000);
    const real = found.filter((ms) => ms + offsetMinutes(ms, zone) * 60_000 === asUtc);
    return Math.max(...(real.length > 0 ? real : found));
}

/** @param {number} ms */
const finite = (ms) => (Number.isFinite(ms) ? ms : null);

/**
 * The changes of a zone's clocks between two instants.
 * @param {string} zone
 * @param {number} from
 * @param {number} to
 * @returns {{at: number, before: number, after: number}[]} The offsets are minutes.
 */
export function clockChanges(zone, from, to) {
    const found = [];
    const day = 86_400_000;
    let start = from;
    let before = offsetMinutes(start, zone);
    while (start < to) {
        const end = Math.min(start + 7 * day, to);
        const after = offsetMinutes(end, zone);
        if (after !== before) {
            let low = start;
            let high = end;
            while (high - low > 1000) {
                const middle = Math.floor((low + high) / 2000) * 1000;
                if (middle <= low) break;
                if (offsetMinutes(middle, zone) === before) low = middle;
                else high = middle;
            }
            found.push({ at: Math.ceil(high / 60_000) * 60_000, before, after });
            before = after;
        }
        start = end;
    }
    return found;
}

/**
 * The wall times that a change of the clocks skips, or shows twice: from one to another, and the date of the first.
 * @param {{at: number, before: number, after: number}} change
 */
export function wallsOf({ at, before, after }) {
    const wallAt = (/** @type {number} */ minutes) => new Date(at + minutes * 60_000).toISOString();
    const first = wallAt(Math.min(before, after));
    return { date: first.slice(0, 10), from: first.slice(11, 16), to: wallAt(Math.max(before, after)).slice(11, 16) };
}

/** An instant by RFC 3339, with the offset of a zone. @param {number} ms @param {string} zone */
export function rfc3339(ms, zone) {
    const offset = offsetMinutes(ms, zone);
    const local = new Date(ms + offset * 60_000)
        .toISOString()
        .slice(0, -1)
        .replace(/\.000$/, '');
    return offset === 0 ? `${local}Z` : local + offsetText(offset);
}
