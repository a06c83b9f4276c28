/** How pages look: axe-core in both themes and languages, and on a narrow screen. */

import assert from 'node:assert/strict';
import { SIGHTS } from './sights.js';
import { story } from './story.js';
import { AXE } from './tools.js';
import { word } from './words.js';

const LANGUAGES = /** @type {const} */ (['en', 'zh']);
const THEMES = /** @type {const} */ (['light', 'dark']);

/** Dialogs, with the word of the button that opens each. */
const DIALOGS = [
    { path: 'q/orders%2Fclose', button: 'action.pause_for' },
    { path: 'q/orders%2Fclose', button: 'action.cancel_all' },
    { path: 'q/orders%2Fconfirm/t/order:123', button: 'action.move_to' },
    { path: 'q/orders%2Fconfirm/t/order:123', button: 'payload.edit' },
    { path: 'schedules', button: 'schedule.new' },
    { path: 'q/webhooks/target', button: 'target.edit' },
    { path: 'q/webhooks/target', button: 'target.rotate_ask' },
    { path: 'q/webhooks/target', button: 'target.delete_ask' },
];

/** @param {any} page @param {string} of @param {string} rule One that must have been applied. */
async function isAccessible(page, of, rule) {
    const { violations, passes } = await page.evaluate(() => {
        const runOnly = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
        return /** @type {any} */ (window).axe.run(document, { resultTypes: ['violations'], runOnly });
    });
    const found = violations.map((/** @type {any} */ v) => {
        const nodes = v.nodes.map((/** @type {any} */ node) => `${node.html}\n${node.failureSummary}`);
        return `${v.id}: ${v.help}\n${nodes.join('\n')}`;
    });
    assert.deepEqual(found, [], of);
    assert.ok(
        passes.some((/** @type {any} */ pass) => pass.id === rule),
        `axe-core applied ${rule} to ${of}`,
    );
}

/** @param {any} page @param {string} path */
async function isDrawn(page, path) {
    await page.show(path);
    await page.locator('main h1').waitFor();
    await page.waitForFunction(() => document.querySelector('main .loading') === null);
}

/** Targets whose texts are as long as those of a busy server. */
const LONG_TARGETS = {
    targets: [
        {
            queue: 'billing/renewals-of-the-year',
            kind: 'webhook',
            to: 'https://hooks.payments.internal.example.com:8443/v2/tenants/{group}/renewals/{key}?source=tickwheel',
            state: 'open',
            since: '2030-03-01T07:58:00Z',
            reason: 'connect to 10.1.2.3:8443: connection refused (os error 111)',
            in_flight: 10,
            attempts: { acked: 1_204_400, failed: 31_234, dead: 12_345, given_back: 123, blocked: 0 },
        },
    ],
    connections: [
        {
            name: 'kafka://broker-1.internal.example.com:9092,broker-2.internal.example.com:9092',
            kind: 'kafka',
            state: 'down',
            since: '2030-03-01T07:58:00Z',
            reason: 'connect to 10.1.2.3:9092: connection refused (os error 111)',
        },
    ],
};

/** The cells of tables that are narrower than their text, and narrower than a text can be read. It runs in the page. */
function squeezed() {
    const READABLE_PX = 110;
    const found = [];
    for (const cell of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('main tbody :is(td, th)'))) {
        const { paddingLeft, paddingRight } = window.getComputedStyle(cell);
        const width = cell.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
        if (width >= READABLE_PX) continue;
        const copy = document.createElement('span');
        copy.style.cssText = 'position: absolute; white-space: nowrap; width: max-content';
        copy.textContent = cell.innerText;
        cell.append(copy);
        if (copy.offsetWidth > width + 1) found.push(`${cell.innerText.slice(0, 40)}: ${width} px of ${copy.offsetWidth}`);
        copy.remove();
    }
    return found;
}

/** The controls that are cut by an edge, or whose text is. It runs in the page. */
function cutControls() {
    const [FINGER_PX, ARROW_PX] = [36, 16];
    const found = [];
    const brush = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d'));
    for (const control of /** @type {NodeListOf<any>} */ (document.querySelectorAll('a, button, input, select, textarea'))) {
        const box = control.getBoundingClientRect();
        if (control.closest('.skip, .outside') || box.width === 0) continue;
        const name = `${control.tagName} ${control.getAttribute('aria-label') ?? (control.placeholder || control.id || control.innerText)}`;
        let [left, right] = [0, document.documentElement.clientWidth];
        for (let around = control.parentElement; around; around = around.parentElement) {
            if (window.getComputedStyle(around).overflowX === 'visible') continue;
            const edge = around.getBoundingClientRect();
            [left, right] = [Math.max(left, edge.left), Math.min(right, edge.right)];
        }
        if (box.left < left - 0.5 || box.right > right + 0.5)
            found.push(`${name}: from ${box.left} to ${box.right}, seen from ${left} to ${right}`);
        if (['checkbox', 'radio'].includes(control.type)) continue;
        if (/^(INPUT|SELECT)$/.test(control.tagName)) {
            const style = window.getComputedStyle(control);
            brush.font = style.font;
            const text = brush.measureText(control.selectedOptions?.[0].text ?? (control.value || control.placeholder)).width;
            const room =
                control.clientWidth -
                parseFloat(style.paddingLeft) -
                parseFloat(style.paddingRight) -
                (control.selectedOptions ? ARROW_PX : 0);
            if (text > room + 1) found.push(`${name}: its text has ${room} px of ${text}`);
        }
        if (control.matches('header nav a, .tabs a, input, select') && box.height < FINGER_PX)
            found.push(`${name}: it is ${box.height} px high`);
    }
    return found;
}

for (const language of LANGUAGES) {
    for (const theme of THEMES) {
        story(`axe-core finds nothing on any page: ${language}, ${theme}`, async ({ open, world }) => {
            const page = await open(await world(), '', { theme, language, script: AXE });
            for (const { name, path } of SIGHTS) {
                await isDrawn(page, path);
                await isAccessible(page, name, 'color-contrast');
            }
            for (const { path, button } of DIALOGS) {
                await isDrawn(page, path);
                await page.getByRole('button', { name: word(button, {}, language), exact: true }).click();
                await page.getByRole('dialog').waitFor();
                await page.waitForFunction(() => document.querySelector('dialog .loading') === null);
                await isAccessible(page, `the dialog of ${button}`, 'button-name');
                await page.keyboard.press('Escape');
                await page.getByRole('dialog').waitFor({ state: 'detached' });
            }
        });
    }
    story(`no page is wider than its screen, and no word of a table is broken for want of room: ${language}`, async ({ open, world }) => {
        const page = await open(await world(), '', { language });
        await page.route(/\/v1\/targets$/, (/** @type {any} */ route) => route.fulfill({ json: LONG_TARGETS }));
        for (const width of [360, 390, 640, 820, 980, 1024, 1280]) {
            await page.setViewportSize({ width, height: 900 });
            for (const { name, path } of SIGHTS) {
                await isDrawn(page, path);
                assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, name);
                assert.deepEqual(await page.evaluate(squeezed), [], `${name} at ${width} px`);
            }
        }
    });
    story(`every field, button and tab of a phone is whole: ${language}`, async ({ open, world }) => {
        for (const width of [360, 390]) {
            const page = await open(await world(), '', { width, language });
            for (const { name, path } of SIGHTS) {
                await isDrawn(page, path);
                assert.deepEqual(await page.evaluate(cutControls), [], `${name} at ${width} px`);
            }
        }
    });
}

story('the trend of a count that stays is in the middle, and that of an empty queue at the lower edge', async ({ open, world }) => {
    const page = await open(await world(), '');
    const heights = (/** @type {string} */ queue) =>
        page
            .getByRole('img', { name: word('overview.trend_of', { queue }) })
            .locator('polyline')
            .evaluate((/** @type {SVGPolylineElement} */ line) => [...line.points].map((point) => point.y));
    await page.waitForFunction(() =>
        [...document.querySelectorAll('.spark polyline')].some((line) => line.getAttribute('points')?.includes(' ')),
    );
    assert.deepEqual([...new Set(await heights('webhooks'))], [10], 'of 20');
    assert.deepEqual([...new Set(await heights('billing/renew'))], [18], 'of 20');
});
