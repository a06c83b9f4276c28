/** A table that becomes a list of cards on a narrow screen. */

import { html, useEffect, useState } from '../vendor/preact.js';
import { t } from '../i18n/index.js';

/**
 * @typedef {object} Column
 * @property {string} key
 * @property {string} label
 * @property {(row: any) => any} cell
 * @property {boolean} [numeric]
 * @property {boolean} [sortable]
 * @property {boolean} [head] Whether the cell names its row.
 */

/** The width that a column needs at least (px): that of its label, if it has numbers. @param {Column} column */
const widthOf = ({ head, numeric, label }) => (head ? 160 : numeric ? Math.max(80, 24 + 8 * label.length) : 150);

/** The room beside a table (px). */
const BESIDE = 48;

/** Whether the screen is too narrow for a table of these columns. @param {Column[]} columns */
function useCards(columns) {
    const needed = columns.reduce((sum, column) => sum + widthOf(column), BESIDE);
    const media = window.matchMedia(`(max-width: ${Math.max(600, needed)}px)`);
    const [, turn] = useState(0);
    useEffect(() => {
        const redraw = () => turn((n) => n + 1);
        media.addEventListener('change', redraw);
        return () => media.removeEventListener('change', redraw);
    }, [media.media]);
    return media.matches;
}

/**
 * The roles are written out because a browser drops those of a table whose `display` changes.
 * @param {object} props
 * @param {string} props.caption
 * @param {Column[]} props.columns
 * @param {any[]} props.rows
 * @param {(row: any) => string | number} props.rowKey
 * @param {{key: string, down: boolean}} [props.sort]
 * @param {(key: string) => void} [props.onSort]
 */
export function Table({ caption, columns, rows, rowKey, sort, onSort }) {
    return html`
        <table role="table" class=${useCards(columns) ? 'cards' : ''}>
            <caption class="outside">${caption}</caption>
            <thead role="rowgroup">
                <tr role="row">
                    ${columns.map(
                        (column) => html`
                        <th role="columnheader" scope="col" class=${column.numeric ? 'numeric' : ''}
                            aria-sort=${sort?.key === column.key ? (sort.down ? 'descending' : 'ascending') : undefined}>
                            ${
                                column.sortable && onSort
                                    ? html`<button type="button" class="sort" onClick=${() => onSort(column.key)}>${column.label}<span aria-hidden="true">${sort?.key === column.key ? (sort.down ? ' ↓' : ' ↑') : ''}</span></button>`
                                    : column.label
                            }
                        </th>
                    `,
                    )}
                </tr>
            </thead>
            <tbody role="rowgroup">
                ${rows.map(
                    (row) => html`
                    <tr role="row" key=${rowKey(row)}>
                        ${columns.map(
                            (column) => html`
                            <${column.head ? 'th' : 'td'} role=${column.head ? 'rowheader' : 'cell'} scope=${column.head ? 'row' : undefined} class=${`${column.numeric ? 'numeric' : ''} ${column.head ? 'head' : ''}`} data-label=${column.label}>
                                ${column.cell(row)}
                            <//>
                        `,
                        )}
                    </tr>
                `,
                )}
            </tbody>
        </table>
    `;
}

/**
 * The way through pages whose next one is found by a cursor.
 * @param {{first: boolean, more: boolean, onFirst: () => void, onNext: () => void, text?: any, next?: string}} props
 */
export const Pager = ({ first, more, onFirst, onNext, text, next }) => html`
    <div class="pager">
        <span class="dim">${text}</span>
        <button type="button" disabled=${first} onClick=${onFirst}>${t('page.first')}</button>
        <button type="button" disabled=${!more} onClick=${onNext}>${next ?? t('page.next')}</button>
    </div>
`;
