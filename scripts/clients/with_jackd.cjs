// Every call of jackd but one, with a server at process.argv[2], HOST:PORT. It needs a server without jobs.
const assert = require('node:assert')
const JackdClient = require('jackd')
const YAML = require('yaml')

const [host, port] = process.argv[2].split(':')
const client = async () => {
    const made = new JackdClient()
    await made.connect({ host, port: Number(port) })
    return made
}
const refused = (call, response) => assert.rejects(call, error => (error.response ?? error.message).includes(response))

const lifeOfAJob = async () => {
    const c = await client()
    const id = await c.put('hello', { priority: 10, ttr: 30 })
    const job = await c.reserve()
    assert.deepStrictEqual([job.id, job.payload.toString()], [id, 'hello'])
    await c.touch(id)
    await c.release(id, { priority: 4, delay: 0 })
    await c.reserveWithTimeout(0)
    await c.bury(id, 5)
    assert.strictEqual((await c.peekBuried()).id, id)
    const stats = YAML.parse(await c.statsJob(id))
    assert.deepStrictEqual([stats.state, stats.pri, stats.reserves, stats.releases, stats.buries], ['buried', 5, 2, 1, 1])
    await c.kickJob(id)
    assert.strictEqual((await c.peekReady()).id, id)
    assert.strictEqual((await c.peek(id)).payload.toString(), 'hello')
    assert.strictEqual((await c.reserveJob(id)).id, id)
    await c.delete(id)
    await refused(c.delete(id), 'NOT_FOUND')
    await refused(c.reserveWithTimeout(0), 'TIMED_OUT')
    await c.disconnect()
}

const tubes = async () => {
    const c = await client()
    assert.strictEqual(await c.use('one'), 'one')
    assert.strictEqual(await c.listTubeUsed(), 'one')
    assert.strictEqual(await c.watch('one'), 2)
    assert.strictEqual(await c.ignore('default'), 1)
    await refused(c.ignore('one'), 'NOT_IGNORED')
    const id = await c.put({ a: [1, 'ü'] }, { delay: 1000 })
    assert.strictEqual((await c.peekDelayed()).id, id)
    assert.strictEqual(await c.kick(10), 1)
    const job = await c.reserve()
    assert.deepStrictEqual(JSON.parse(job.payload.toString()), { a: [1, 'ü'] })
    await c.delete(id)
    // Its pauseTube sends a line without an end, so that no server ever answers.
    assert.strictEqual(YAML.parse(await c.statsTube('one'))['total-jobs'], 1)
    assert.deepStrictEqual(YAML.parse(await c.listTubes()).sort(), ['default', 'one'])
    assert.deepStrictEqual(YAML.parse(await c.listTubesWatched()), ['one'])
    await c.disconnect()
}

const manyAtOnce = async () => {
    const c = await client()
    const bodies = [...Array(200).keys()].map(n => `${n}\r\n`.repeat(n + 1))
    const ids = await Promise.all(bodies.map(body => c.put(body)))
    // Not at once: when a packet ends amid a body it loses its place, with beanstalkd as well.
    const jobs = []
    for (const _ of bodies) jobs.push(await c.reserve())
    assert.deepStrictEqual(jobs.map(job => job.id), ids)
    jobs.forEach((job, n) => assert.strictEqual(job.payload.toString(), bodies[n]))
    await Promise.all(ids.map(id => c.delete(id)))
    await c.disconnect()
}

const figures = async () => {
    const c = await client()
    const stats = YAML.parse(await c.stats())
    // Beanstalkd's own `os` begins with a `#`, which is a remark to YAML.
    if (stats.version.includes('tickwheel')) assert.strictEqual(typeof stats.os, 'string')
    assert.strictEqual(stats['current-jobs-ready'], 0)
    await c.disconnect()
}

const run = async () => {
    for (const check of [lifeOfAJob, tubes, manyAtOnce, figures]) {
        await check()
        console.log(`jackd: ${check.name}`)
    }
}
run().catch(error => {
    console.error(error)
    process.exit(1)
})
