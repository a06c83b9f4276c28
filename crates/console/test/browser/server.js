/** A real server in a process of its own. */

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** The virtual clock begins at this instant. It is a Friday, some days before the clocks of New York and Berlin change. */
export const BEGIN = '2030-03-01T08:00:00Z';

/** Options of a server whose clock stands still. */
export const VIRTUAL = ['--memory', '--virtual-clock', '--virtual-clock-at', BEGIN];

/** The variables of this process, without those of the program. */
const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('TICKWHEEL_')));

export class Server {
    /** @param {string} program */
    constructor(program) {
        this.program = program;
        this.url = '';
        this.virtual = false;
        /** The token of the calls. @type {string | null} */
        this.token = null;
        /** @type {import('node:child_process').ChildProcess | null} */
        this.child = null;
    }

    /**
     * Starts `tickwheel serve` with these options, and waits until it listens.
     * @param {string[]} options
     * @param {string} [listen]
     */
    async start(options, listen = '127.0.0.1:0') {
        this.virtual = options.includes('--virtual-clock');
        const words = ['serve', '--listen', listen, '--beanstalk', 'off', '--log', 'error', ...options];
        const child = spawn(this.program, words, { env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
        this.child = child;
        running.add(child);
        child.on('exit', () => running.delete(child));
        let log = '';
        child.stderr.on('data', (text) => (log += text));
        this.url = await new Promise((done, failed) => {
            child.on('error', failed);
            child.on('exit', (code) => failed(new Error(`the server ended with ${code}: ${log}`)));
            createInterface({ input: child.stdout }).on('line', (line) => {
                if (line.startsWith('listening http')) done(line.slice('listening '.length));
            });
        });
        return this;
    }

    /** Kills it with SIGKILL, and waits for its end. */
    async kill() {
        const { child } = this;
        if (!child || child.exitCode !== null || child.signalCode !== null) return;
        await new Promise((done) => {
            child.on('exit', done);
            child.kill('SIGKILL');
        });
    }

    /**
     * A call of the API. The answer is an error unless its status is 2xx.
     * @param {string} method
     * @param {string} path Encoded.
     * @param {unknown} [body] Sent as JSON; a text is sent as it is.
     */
    async call(method, path, body) {
        const answer = await fetch(this.url + path, {
            method,
            headers: { 'content-type': 'application/json', ...(this.token ? { authorization: `Bearer ${this.token}` } : {}) },
            body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body),
        });
        const text = await answer.text();
        if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
        return text.startsWith('{') && !text.includes('}\n{') ? JSON.parse(text) : text;
    }

    /** @param {string} queue @param {string} key @param {object} task */
    put(queue, key, task) {
        return this.call('PUT', `/v1/queues/${encodeURIComponent(queue)}/tasks/${encodeURIComponent(key)}`, task);
    }

    /**
     * Puts many tasks.
     * @param {string} queue
     * @param {object[]} tasks Each with its `key`.
     */
    async putAll(queue, tasks) {
        for (let i = 0; i < tasks.length; i += 10_000) {
            const lines = tasks.slice(i, i + 10_000).map((task) => JSON.stringify({ op: 'put', ...task }));
            const answer = await this.call('POST', `/v1/queues/${encodeURIComponent(queue)}/batch`, lines.join('\n'));
            if (String(answer).includes('"problem"')) throw new Error(`a put of ${queue} was refused: ${String(answer).slice(0, 500)}`);
        }
    }

    /**
     * Leases tasks and gives them back as failed.
     * @param {string} queue
     * @param {number} count
     * @param {string} [reason]
     */
    async fail(queue, count, reason) {
        for (let left = count; left > 0;) {
            const { tasks } = await this.call('POST', `/v1/queues/${encodeURIComponent(queue)}/lease`, { max: Math.min(left, 1000) });
            if (tasks.length === 0) throw new Error(`${queue} has no more tasks to fail`);
            const tokens = tasks.map((/** @type {{token: string}} */ task) => task.token);
            await this.call('POST', `/v1/queues/${encodeURIComponent(queue)}/nack`, { tokens, reason });
            left -= tokens.length;
        }
    }

    /** @param {string} by */
    advance(by) {
        return this.call('POST', '/v1/clock/advance', { by });
    }
}
