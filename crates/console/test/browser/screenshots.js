/** Draws the pictures of the console in the documentation; `scripts/measure/screenshots` calls it with the program. */

import { mkdirSync, statSync } from 'node:fs';
import { at, open } from './page.js';
import { Server, VIRTUAL } from './server.js';
import { ROOT, launch } from './tools.js';
import { fill } from './world.js';

const FOLDER = `${ROOT}docs/assets/console/`;

/**
 * `until` is on the page when it is drawn; `height` is what is seen of it.
 * @type {{file: string, path: string, until: string, height: number, theme?: 'dark', language?: 'zh'}[]}
 */
const PICTURES = [
    { file: 'horizon.png', path: 'horizon?queue=orders%2Fclose', until: '.wall-note', height: 690 },
    { file: 'overview-dark.png', path: '', until: 'tbody tr', height: 760, theme: 'dark' },
    { file: 'task.png', path: 'q/orders%2Fconfirm/t/order:123', until: '.payload', height: 640 },
    { file: 'dead.png', path: 'q/mail%2Fsend/dead', until: '.group', height: 640 },
    { file: 'schedule.png', path: 'q/reports/schedules/nightly', until: '.year', height: 760 },
];

const browser = await launch();
const server = new Server(process.argv[2]);
await server.start(VIRTUAL);
await fill(server);
mkdirSync(FOLDER, { recursive: true });
for (const { file, path, until, height, theme, language } of PICTURES) {
    const { page, context } = await open(browser, at(server.url, path), { theme, language, width: 1120 });
    await page.setViewportSize({ width: 1120, height });
    await page.locator(until).first().waitFor();
    await page.locator('.banner').first().waitFor();
    await page.locator('main .loading').first().waitFor({ state: 'detached' });
    // A reader's server has no virtual clock.
    await page.evaluate(() => {
        for (const part of document.querySelectorAll('.banner, header nav a[href$="/clock"]'))
            /** @type {HTMLElement} */ (part).style.display = 'none';
    });
    await page.screenshot({ path: FOLDER + file, animations: 'disabled' });
    console.log(`${file}: ${statSync(FOLDER + file).size} bytes`);
    await context.close();
}
await browser.close();
await server.kill();
