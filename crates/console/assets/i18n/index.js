/** Words of the reader's language, and numbers, lengths and times as that language writes them. */

import { absolute, short, zoneAt } from '../logic/instant.js';
import { largestParts } from '../logic/duration.js';
import { language, now, zone } from '../state/session.js';
import { en } from './en.js';
import { zh } from './zh.js';

/** @type {Record<string, Record<string, string>>} */
const ALL = { en, zh };

/** @type {Map<string, any>} */
const made = new Map();

/** @template T @param {string} key @param {() => T} make @returns {T} */
function once(key, make) {
    if (!made.has(key)) made.set(key, make());
    return made.get(key);
}

const locale = () => (language.get() === 'zh' ? 'zh-CN' : 'en');

/**
 * The words for a key. A text with `|` has a form for one and a form for others, chosen by the value `n`. Numbers are written as the
 * language does.
 * @param {string} key
 * @param {Record<string, string | number | null | undefined>} [values]
 */
export function t(key, values = {}) {
    const text = ALL[language.get()]?.[key] ?? en[key] ?? key;
    const forms = text.split('|');
    const plural =
        forms.length > 1 && once(`plural ${locale()}`, () => new Intl.PluralRules(locale())).select(Number(values.n ?? 0)) === 'one';
    return (plural ? forms[0] : forms[forms.length - 1]).replace(/\{(\w+)\}/g, (whole, name) => {
        const value = values[name];
        return value === undefined || value === null ? whole : typeof value === 'number' ? number(value) : value;
    });
}

/** Whether there are words for a key. @param {string} key */
export const has = (key) => key in en;

/** @param {number} value @param {number} [digits] Of the fraction, at most. */
export const number = (value, digits = 0) =>
    once(`number ${locale()} ${digits}`, () => new Intl.NumberFormat(locale(), { maximumFractionDigits: digits })).format(value);

/** A count for a tile or a label of a chart: 12,345 and 1.2M. @param {number} value */
export const compact = (value) =>
    value < 100_000
        ? number(value)
        : once(`compact ${locale()}`, () => new Intl.NumberFormat(locale(), { notation: 'compact', maximumFractionDigits: 1 })).format(
              value,
          );

/** A rate a second: 0.3, 12, 1,234. @param {number} value */
export const rate = (value) => number(value, value > 0 && value < 10 ? 1 : 0);

/** @param {number} bytes */
export function size(bytes) {
    const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'];
    let value = bytes;
    let at = 0;
    while (value >= 1024 && at < units.length - 1) {
        value /= 1024;
        at += 1;
    }
    if (at === 0) return t('size.bytes', { n: bytes });
    return `${number(value, value < 10 ? 1 : 0)} ${['', 'KiB', 'MiB', 'GiB', 'TiB'][at]}`;
}

/** A length of time in its two largest parts: 3d 4h. @param {number} ms */
export const length = (ms) =>
    largestParts(ms)
        .map(([count, unit]) =>
            once(
                `unit ${locale()} ${unit}`,
                () => new Intl.NumberFormat(locale(), { style: 'unit', unit, unitDisplay: 'narrow', maximumFractionDigits: 1 }),
            ).format(count),
        )
        .join(' ');

/** How far an instant is from now: in 2h, 3m ago. @param {number} ms */
export function relative(ms) {
    const away = ms - now();
    if (Math.abs(away) < 500) return t('time.now');
    return t(away > 0 ? 'time.in' : 'time.ago', { length: length(away) });
}

/** An absolute time in the chosen zone, with the zone's offset and name. @param {number} ms @param {boolean} [precise] */
export const instant = (ms, precise = false) => absolute(ms, zone.get(), precise);
/** The time of the day, with the zone. @param {number} ms */
export const clockTime = (ms) => instant(ms).slice(11);

/** Two instants; the date and the zone are written once if both have the same. @param {number} from @param {number} to @param {string} [between] */
export function span(from, to, between = '–') {
    const [a, b] = [short(from, zone.get()), short(to, zone.get())];
    const [before, after] = [zoneAt(from, zone.get()), zoneAt(to, zone.get())];
    return `${a}${before === after ? '' : ` ${before}`} ${between} ${a.slice(0, 10) === b.slice(0, 10) ? b.slice(11) : b} ${after}`;
}

/** Words for a state of a task. @param {string} state */
export const stateWord = (state) => t(`state.${state}`);
