/** The words of the console, so that a test names a word by its key. */

import { en } from '../../assets/i18n/en.js';
import { zh } from '../../assets/i18n/zh.js';

const TABLES = { en, zh };

/**
 * A text without its values, and in the form for many: it is looked for in a page.
 * @param {string} key
 * @param {Record<string, string | number>} [values]
 * @param {'en' | 'zh'} [language]
 */
export function word(key, values = {}, language = 'en') {
    const text = TABLES[language][key];
    if (text === undefined) throw new Error(`there is no text ${key}`);
    const [one, many] = text.split('|');
    const form = values.n === 1 ? one : (many ?? one);
    return form.replace(/\{(\w+)\}/g, (_, name) => {
        if (values[name] === undefined) throw new Error(`the text ${key} needs ${name}`);
        return typeof values[name] === 'number' ? values[name].toLocaleString('en-US') : values[name];
    });
}
