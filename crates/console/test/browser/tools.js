/** The programs that the tests need beside Node: the packages in `target/tools/console`, which `.ci/run` installs, and Chromium without its windows. */

import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const path = (/** @type {string} */ text) => fileURLToPath(new URL(text, import.meta.url));

/** The root of the repository. */
export const ROOT = path('../../../../');
const PACKAGES = `${ROOT}target/tools/console/`;
const CHROMIUM = '/usr/lib/chromium/chromium-headless-shell';

if (!existsSync(`${PACKAGES}node_modules/playwright-core`) || !existsSync(CHROMIUM)) {
    console.error(`the tests need ${CHROMIUM} (apt-get install chromium-headless-shell), and packages of npm:
mkdir -p target/tools/console && cp crates/console/test/browser/package*.json target/tools/console && npm ci --prefix target/tools/console`);
    process.exit(2);
}
const { chromium } = createRequire(PACKAGES)('playwright-core');

/** The text of axe-core, which a page runs. */
export const AXE = readFileSync(`${PACKAGES}node_modules/axe-core/axe.min.js`, 'utf8');

/** A browser that does not look for updates. */
export const launch = () =>
    chromium.launch({
        executablePath: CHROMIUM,
        args: [
            '--no-sandbox',
            '--disable-gpu',
            '--disable-quic',
            '--no-first-run',
            '--disable-background-networking',
            '--disable-component-update',
        ],
    });
