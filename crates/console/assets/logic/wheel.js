/** The engine's wheel: which slots of a level have tasks, and where they are in a ring. */

/** The radius of a ring, and that of the hole in it. */
export const OUTER = 135;
export const INNER = 62;
const CENTRE = 170;

/**
 * The runs of occupied slots: the first slot of each and the one behind its last.
 * @param {string} bitmap Bytes in hex; the lowest bit of the first byte is slot 0.
 * @param {number} slots
 * @returns {[number, number][]}
 */
export function runsOf(bitmap, slots) {
    const isOccupied = (/** @type {number} */ slot) => (parseInt(bitmap.slice((slot >> 3) * 2, (slot >> 3) * 2 + 2), 16) >> (slot & 7)) & 1;
    /** @type {[number, number][]} */
    const runs = [];
    for (let slot = 0; slot < slots; slot += 1) {
        if (!isOccupied(slot)) continue;
        const last = runs[runs.length - 1];
        if (last && last[1] === slot) last[1] = slot + 1;
        else runs.push([slot, slot + 1]);
    }
    return runs;
}

/** @param {[number, number][]} runs */
export const occupiedOf = (runs) => runs.reduce((sum, [from, to]) => sum + to - from, 0);

/** A point of a ring; a turn of 0 is at the top. @param {number} radius @param {number} turn */
export function point(radius, turn) {
    const angle = turn * 2 * Math.PI;
    return `${(CENTRE + radius * Math.sin(angle)).toFixed(1)} ${(CENTRE - radius * Math.cos(angle)).toFixed(1)}`;
}

/**
 * The outline of the part of a ring between two slots.
 * @param {number} from
 * @param {number} to
 * @param {number} slots
 * @returns {string}
 */
export function sector(from, to, slots) {
    // A whole turn has no begin and no end, so it is drawn as two halves.
    if (to - from >= slots) return sector(0, slots / 2, slots) + sector(slots / 2, slots, slots);
    const [a, b] = [from / slots, to / slots];
    const large = b - a > 0.5 ? 1 : 0;
    return (
        `M${point(OUTER, a)}A${OUTER} ${OUTER} 0 ${large} 1 ${point(OUTER, b)}` +
        `L${point(INNER, b)}A${INNER} ${INNER} 0 ${large} 0 ${point(INNER, a)}Z`
    );
}
