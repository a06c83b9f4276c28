"""Every call of greenstalk, with a server at sys.argv[1], HOST:PORT. It needs a server without jobs."""

import sys

import greenstalk

HOST, PORT = sys.argv[1].rsplit(":", 1)


def client(**options):
    return greenstalk.Client((HOST, int(PORT)), **options)


def refused(error, call, *values, **options):
    try:
        call(*values, **options)
    except error:
        return
    raise AssertionError(f"{call.__name__} {values} did not raise {error.__name__}")


def life_of_a_job():
    with client() as c:
        id = c.put("hello")
        job = c.reserve()
        assert (job.id, job.body) == (id, "hello")
        c.touch(job)
        c.release(job, priority=7, delay=0)
        assert c.stats_job(id)["pri"] == 7
        job = c.reserve(timeout=0)
        c.bury(job, priority=3)
        assert c.peek_buried().id == id
        assert c.kick(5) == 1
        job = c.reserve(timeout=0)
        stats = c.stats_job(job)
        shown = {k: stats[k] for k in ("state", "tube", "pri", "reserves", "releases", "buries", "kicks", "timeouts")}
        assert shown == {
            "state": "reserved", "tube": "default", "pri": 3, "reserves": 3, "releases": 1, "buries": 1, "kicks": 1, "timeouts": 0,
        }, shown
        c.delete(job)
        refused(greenstalk.NotFoundError, c.delete, id)
        refused(greenstalk.NotFoundError, c.peek, id)
        refused(greenstalk.TimedOutError, c.reserve, timeout=0)


def tubes():
    with client(use="emails", watch=["emails", "texts"]) as c:
        assert c.using() == "emails"
        assert sorted(c.watching()) == ["emails", "texts"]
        assert c.watch("calls") == 3
        assert c.ignore("texts") == 2
        assert c.ignore("emails") == 1
        refused(greenstalk.NotIgnoredError, c.ignore, "calls")
        assert {"default", "emails", "calls"} <= set(c.tubes()) and "texts" not in c.tubes()
        c.use("calls")
        id = c.put("ring", priority=9)
        stats = c.stats_tube("calls")
        assert (stats["name"], stats["current-jobs-ready"], stats["current-jobs-urgent"]) == ("calls", 1, 1), stats
        refused(greenstalk.NotFoundError, c.stats_tube, "nowhere")
        c.pause_tube("calls", 1_000)
        assert c.stats_tube("calls")["pause"] == 1_000
        refused(greenstalk.TimedOutError, c.reserve, timeout=0)
        c.pause_tube("calls", 0)
        assert c.reserve(timeout=0).id == id
        c.delete(id)
        refused(greenstalk.NotFoundError, c.pause_tube, "nowhere", 1)
        refused(greenstalk.BadFormatError, c.use, "-x")


def taken_again(c, holder):
    """The jobs that the holder had too long. Under load beanstalkd may see it no sooner than the holder speaks."""
    for _ in range(20):
        try:
            return c.reserve(timeout=2)
        except greenstalk.TimedOutError:
            holder.using()
    raise AssertionError("the holder keeps its job")


def order_and_time():
    with client() as c:
        late = c.put("late", priority=0, delay=1)
        second, first = c.put("b", priority=5), c.put("a", priority=1)
        assert c.peek_ready().id == first
        assert c.peek_delayed().id == late
        assert [c.reserve().id for _ in range(2)] == [first, second]
        assert c.reserve(timeout=1).id == late
        for id in (late, first, second):
            c.delete(id)
        short = c.put("short", ttr=1)
        with client() as other:
            job = other.reserve()
            refused(greenstalk.DeadlineSoonError, other.reserve, timeout=2)
            again = taken_again(c, other)
            assert again.id == job.id == short
            refused(greenstalk.NotFoundError, other.touch, job)
            refused(greenstalk.NotFoundError, other.release, job)
        assert c.stats_job(again)["timeouts"] == 1
        c.delete(again)


def by_id():
    with client() as c, client() as other:
        id = c.put("far", delay=1000)
        job = other.reserve_job(id)
        refused(greenstalk.NotFoundError, c.reserve_job, id)
        refused(greenstalk.NotFoundError, c.delete, id)
        refused(greenstalk.NotFoundError, c.kick_job, id)
        other.release(job, delay=1000)
        c.kick_job(id)
        assert c.reserve(timeout=0).id == id
        c.delete(id)
        id = c.put("left")
        other.reserve()
        other.close()
        assert c.reserve(timeout=5).id == id
        c.delete(id)


def bodies():
    with client(encoding=None) as c:
        for body in (b"", b"\r\n", bytes(range(256)), b"x" * 65535, "ü".encode()):
            c.put(body)
            job = c.reserve(timeout=0)
            assert job.body == body
            c.delete(job)
        refused(greenstalk.JobTooBigError, c.put, b"x" * 65536)
        stats = c.stats()
        assert stats["max-job-size"] == 65535 and stats["draining"] == "false", stats
        assert stats["current-jobs-ready"] == 0 and stats["current-connections"] >= 1, stats


for check in (life_of_a_job, tubes, order_and_time, by_id, bodies):
    check()
    print(f"greenstalk {greenstalk.__version__}: {check.__name__}")
