/** A proxy that puts a server below a path, as nginx does. */

import { createServer, request } from 'node:http';

/**
 * @param {string} to The server's address.
 * @param {string} prefix Such as `/internal/queue`.
 */
export async function proxy(to, prefix) {
    /** @type {string[]} */
    const strays = [];
    const front = createServer((incoming, answer) => {
        const path = incoming.url ?? '';
        if (!path.startsWith(`${prefix}/`)) {
            strays.push(path);
            answer.writeHead(404).end();
            return;
        }
        const { hostname, port } = new URL(to);
        const call = request({ hostname, port, path: path.slice(prefix.length), method: incoming.method, headers: incoming.headers });
        call.on('response', (from) => {
            answer.writeHead(from.statusCode ?? 502, from.headers);
            from.pipe(answer);
        });
        call.on('error', () => answer.writeHead(502).end());
        incoming.pipe(call);
    });
    await new Promise((done) => void front.listen(0, '127.0.0.1', () => done(undefined)));
    const { port } = /** @type {import('node:net').AddressInfo} */ (front.address());
    return {
        url: `http://127.0.0.1:${port}${prefix}`,
        strays,
        close: () => {
            front.closeAllConnections();
            return new Promise((done) => void front.close(done));
        },
    };
}
