/** Bars over time as SVG. The numbers are in a table beside it, so the picture itself is one image to a screen reader. */

import { html, useRef, useState } from '../vendor/preact.js';
import { compact } from '../i18n/index.js';
import { trend } from '../logic/events.js';
import { gridLines, height } from '../logic/horizon.js';
import { INNER, OUTER, point, sector } from '../logic/wheel.js';

const WIDTH = 1120;
const HEIGHT = 280;
const BELOW = 34;
const LEFT = 56;
const RIGHT = 16;

/**
 * @typedef {object} BarView
 * @property {number} tasks
 * @property {number} expected
 * @property {string} title The words of the tooltip.
 * @property {string} [label] Below the axis.
 * @property {'due' | 'wall' | ''} [tone]
 */

/**
 * @param {object} props
 * @param {BarView[]} props.bars
 * @param {number[] | null} props.capacity Tasks that the rate can deliver in each bar.
 * @param {string} props.summary
 * @param {(index: number) => void} props.onPick
 * @param {(first: number, last: number) => void} props.onBrush
 */
export function BarChart({ bars, capacity, summary, onPick, onBrush }) {
    const svg = useRef(/** @type {SVGSVGElement | null} */ (null));
    const [brush, setBrush] = useState(/** @type {[number, number] | null} */ (null));
    const plot = HEIGHT - BELOW;
    const step = (WIDTH - LEFT - RIGHT) / bars.length;
    // The capacity stretches the axis to ten times the largest bar at most; a higher one is drawn at the upper edge.
    const largest = Math.max(9, ...bars.map((b) => b.tasks + b.expected));
    const needed = Math.max(largest, Math.min(largest * 10, Math.max(0, ...(capacity ?? []))));
    // The axis ends at one of four steps to a power of ten, so that it stands still while counts change.
    const most = 10 ** (Math.ceil(Math.log10(needed) * 4) / 4);
    const y = (/** @type {number} */ count) => plot - height(Math.min(count, most), most) * (plot - 24);
    const at = (/** @type {PointerEvent} */ event) => {
        const box = svg.current?.getBoundingClientRect();
        if (!box) return 0;
        const x = ((event.clientX - box.left) / box.width) * WIDTH;
        return Math.max(0, Math.min(bars.length - 1, Math.floor((x - LEFT) / step)));
    };
    const end = (/** @type {PointerEvent} */ event) => {
        if (!brush) return;
        const last = at(event);
        setBrush(null);
        if (last === brush[0]) onPick(last);
        else onBrush(Math.min(brush[0], last), Math.max(brush[0], last));
    };
    return html`
        <div class="chart" tabindex="0" role="region" aria-label=${summary}>
            <svg ref=${svg} viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${summary}
                onPointerDown=${(/** @type {PointerEvent} */ e) => {
                    if (e.button === 0) setBrush([at(e), at(e)]);
                }}
                onPointerMove=${(/** @type {PointerEvent} */ e) => {
                    if (brush) setBrush([brush[0], at(e)]);
                }}
                onPointerUp=${end} onPointerLeave=${() => setBrush(null)}>
                <defs>
                    <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
                        <rect class="hatch-ground" width="6" height="6" /><line class="hatch-line" x1="0" y1="0" x2="0" y2="6" />
                    </pattern>
                </defs>
                ${gridLines(most).map(
                    (line) => html`
                    <line class="grid" x1=${LEFT} x2=${WIDTH} y1=${y(line)} y2=${y(line)} />
                    <text class="axis" x=${LEFT - 6} y=${y(line) + 4} text-anchor="end">${compact(line)}</text>
                `,
                )}
                <line class="grid base" x1=${LEFT} x2=${WIDTH} y1=${plot} y2=${plot} />
                ${bars.map((bar, i) => {
                    const x = LEFT + i * step;
                    const top = y(bar.tasks);
                    const above = y(bar.tasks + bar.expected);
                    const marked = brush && i >= Math.min(...brush) && i <= Math.max(...brush);
                    return html`<g key=${i} class=${`bar ${bar.tone ? `bar-${bar.tone}` : ''} ${marked ? 'bar-marked' : ''}`}>
                        <title>${bar.title}</title>
                        <rect class="hit" x=${x} y="0" width=${step} height=${plot} />
                        ${bar.tasks > 0 && html`<rect class="tasks" x=${x + step * 0.12} y=${top} width=${step * 0.76} height=${plot - top} />`}
                        ${bar.expected > 0 && html`<rect class="expected" fill="url(#hatch)" x=${x + step * 0.12} y=${above} width=${step * 0.76} height=${top - above} />`}
                        ${capacity && capacity[i] > 0 && html`<line class="capacity" x1=${x} x2=${x + step} y1=${y(capacity[i])} y2=${y(capacity[i])} />`}
                        ${bar.label && html`<text class="axis" x=${x + step / 2} y=${plot + 18} text-anchor="middle">${bar.label}</text>`}
                    </g>`;
                })}
            </svg>
        </div>
    `;
}

/**
 * The rings of a wheel, one for each level: the slots that have tasks, the slot of now, and the hand.
 * @param {{levels: {title: string, slots: number, hand: number, runs: [number, number][]}[]}} props
 */
export const Rings = ({ levels }) => html`
    <div class="rings">${levels.map(
        ({ title, slots, hand, runs }, i) => html`
        <figure key=${i}>
            <svg viewBox="30 30 280 280" role="img" aria-label=${title}>
                <circle class="ring" cx="170" cy="170" r=${OUTER} />
                <path class="ring-occupied" d=${runs.map(([from, to]) => sector(from, to, slots)).join('')} />
                <path class="ring-now" d=${sector(hand, hand + 1, slots)} />
                <circle class="ring-hole" cx="170" cy="170" r=${INNER} />
                <path class="ring-hand" d=${`M170 170L${point(INNER - 6, (hand + 0.5) / slots)}`} />
                <circle class="ring-hand" cx="170" cy="170" r="5" />
            </svg>
            <figcaption>${title}</figcaption>
        </figure>`,
    )}</div>
`;

/** A row of counts as a small line without axes. @param {{values: number[], label: string}} props */
export function Sparkline({ values, label }) {
    const points = trend(values)
        .map((height, i) => `${((i / Math.max(1, values.length - 1)) * 80).toFixed(1)},${(18 - height * 16).toFixed(1)}`)
        .join(' ');
    return html`<svg class="spark" viewBox="0 0 80 20" role="img" aria-label=${label}><polyline points=${points} /></svg>`;
}
