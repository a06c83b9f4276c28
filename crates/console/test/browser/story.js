/** Stories: each is a test with pages and servers of its own, which end with it. */

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { describe, it, after, before } from 'node:test';
import { PATIENCE, at, open } from './page.js';
import { Server, VIRTUAL } from './server.js';
import { ROOT, launch } from './tools.js';
import { fill } from './world.js';

const PROGRAM = process.argv[2] ?? `${ROOT}target/debug/tickwheel`;
/** A machine of two cores is busy with this number of stories, since each waits for its pages most of the time. */
const AT_ONCE = 3;
const LIMIT_MS = 300_000 * PATIENCE;
/** The pages of a failed story are pictured here. */
const PICTURES = `${ROOT}target/console-tests/`;

/**
 * @typedef {object} Stage
 * @property {(server: {url: string, virtual?: boolean}, path: string, options?: import('./page.js').Options) => Promise<any>} open Opens a page of the console.
 * @property {(options?: string[]) => Promise<Server>} serve Starts a server, whose clock is virtual unless options are given.
 * @property {() => Promise<Server>} world The server with the tasks of a shop, for stories that change nothing.
 * @property {(undo: () => any) => void} atEnd
 */

/** @type {{name: string, run: (stage: Stage) => Promise<void>}[]} */
const stories = [];

/** @param {string} name @param {(stage: Stage) => Promise<void>} run */
export const story = (name, run) => void stories.push({ name, run });

/** @type {any} */
let browser;
/** @type {Promise<Server> | null} */
let world = null;

async function filled() {
    const server = await new Server(PROGRAM).start(VIRTUAL);
    await fill(server);
    return server;
}

/** @param {(typeof stories)[number]} told */
async function tell({ name, run }) {
    /** @type {Awaited<ReturnType<typeof open>>[]} */
    const pages = [];
    /** @type {(() => any)[]} */
    const undo = [];
    /** @type {Stage} */
    const stage = {
        async open(server, path, options = {}) {
            const opened = await open(browser, at(server.url, path), options);
            pages.push(opened);
            const { page } = opened;
            // A page begins again when it knows the time of a virtual clock, and what was typed before is gone.
            if (server.virtual && !options.refused?.includes(403)) await page.locator('.banner').getByText(/2030-/).waitFor();
            page.load = (/** @type {string} */ other) => page.goto(at(server.url, other));
            // As a link does it, which is quicker. A new view takes the focus to its heading once it is drawn, and a key that is pressed
            // before that would act on the view before.
            page.show = async (/** @type {string} */ other) => {
                const isNew = await page.evaluate(
                    (/** @type {string} */ address) => {
                        const before = window.location.pathname;
                        /** @type {HTMLElement | null} */ (document.activeElement)?.blur();
                        window.history.pushState(null, '', address);
                        window.dispatchEvent(new PopStateEvent('popstate'));
                        return window.location.pathname !== before;
                    },
                    at(server.url, other),
                );
                if (isNew) await page.waitForFunction(() => document.activeElement?.tagName === 'H1');
            };
            return page;
        },
        async serve(options = VIRTUAL) {
            const server = new Server(PROGRAM);
            undo.push(() => server.kill());
            return server.start(options);
        },
        world: () => (world ??= filled()),
        atEnd: (step) => void undo.push(step),
    };
    try {
        await run(stage);
        const faults = new Set(pages.flatMap((opened) => opened.faults));
        assert.deepEqual([...faults], [], 'faults that the browser reported');
    } catch (error) {
        mkdirSync(PICTURES, { recursive: true });
        for (const [i, { page }] of pages.entries()) {
            const path = `${PICTURES}${name.replace(/\W+/g, '-')}-${i}.png`;
            await page.screenshot({ path }).then(
                () => console.error(`pictured: ${path}`),
                () => {},
            );
        }
        throw error;
    } finally {
        for (const { context } of pages) await context.close();
        for (const step of undo.reverse()) await step();
    }
}

/** Tells all stories. `ONLY=TEXT` tells those with this text in their name. */
export function tellAll() {
    const wanted = stories.filter(({ name }) => name.includes(process.env.ONLY ?? ''));
    describe('the console in a browser', { concurrency: AT_ONCE }, () => {
        before(async () => {
            browser = await launch();
        });
        after(async () => {
            await browser.close();
            await (await world)?.kill();
        });
        for (const told of wanted) it(told.name, { timeout: LIMIT_MS }, () => tell(told));
    });
}
