/** Tokens for a server. */

import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';

/** @type {string[]} */
const folders = [];
process.on('exit', () => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

/** A new folder, which goes at the end of the process. */
export function folder() {
    const made = mkdtempSync(`${tmpdir()}/tickwheel-console-`);
    folders.push(made);
    return made;
}

/** A file of tokens, and the tokens: with all rights, one that may look, one with a scope that may look, one with all rights in that scope, and one of a worker. */
export function tokens() {
    const file = `${folder()}/tokens`;
    const secrets = {
        all: 'all-0123456789abcdef',
        reader: 'reader-0123456789abcdef',
        scoped: 'scoped-0123456789abcdef',
        owner: 'owner-0123456789abcdef',
        worker: 'worker-0123456789abcdef',
    };
    const line = (/** @type {string} */ secret, /** @type {string} */ rest) =>
        `sha256:${createHash('sha256').update(secret).digest('hex')} ${rest}\n`;
    const text = [
        line(secrets.all, 'name=all'),
        line(secrets.reader, 'name=reader rights=read'),
        line(secrets.scoped, 'name=scoped rights=read scope=orders/'),
        line(secrets.owner, 'name=owner scope=orders/'),
        line(secrets.worker, 'name=worker rights=consume'),
    ];
    writeFileSync(file, text.join(''), { mode: 0o600 });
    return { file, ...secrets };
}
