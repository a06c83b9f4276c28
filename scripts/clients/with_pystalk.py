"""The calls of pystalk, with a server at sys.argv[1], HOST:PORT. It needs a server without jobs."""

import sys

from pystalk import BeanstalkClient, BeanstalkError

HOST, PORT = sys.argv[1].rsplit(":", 1)


def client(**options):
    return BeanstalkClient(HOST, int(PORT), **options)


def refused(message, call, *values, **options):
    try:
        call(*values, **options)
    except BeanstalkError as error:
        assert error.message == message, error.message
        return
    raise AssertionError(f"{call.__name__} {values} did not raise {message}")


def life_of_a_job():
    c = client(auto_decode=True)
    _, id = c.put_job("hello", pri=10, ttr=30)
    job = c.reserve_job(timeout=5)
    assert (job.job_id, job.job_data) == (id, "hello")
    c.release_job(job, pri=4, delay=0)
    job = c.reserve_job(timeout=0)
    c.bury_job(job, pri=5)
    assert c.stats_job(id)["state"] == "buried"
    assert c.peek_buried().job_id == id
    c.kick_job(id)
    assert c.stats_job(id)["state"] == "ready"
    assert c.peek_ready().job_id == id
    job = c.reserve_job(timeout=0)
    c.delete_job(job)
    refused("NOT_FOUND", c.delete_job, id)
    refused("TIMED_OUT", c.reserve_job, timeout=0)


def tubes():
    c = client(auto_decode=True)
    c.watch("one")
    assert sorted(c.list_tubes()) == ["default", "one"]
    with c.using("one") as inserter:
        inserter.put_job("a")
        inserter.put_job("b", delay=1000)
    c.use("one")
    assert c.peek_delayed().job_data == "b"
    assert c.stats_tube("one")["current-jobs-delayed"] == 1
    # The client has taken the default out of its list by itself.
    refused("NOT_IGNORED", c.ignore, "one")
    for job in c.reserve_iter():
        assert job.job_data == "a"
        c.delete_job(job)
    c.use("one")
    assert c.kick_jobs(10)[1] == 1
    job = c.reserve_job(timeout=0)
    assert job.job_data == "b"
    c.delete_job(job)
    c.pause_tube("one", 1_000)
    assert c.stats_tube("one")["pause"] == 1_000
    c.unpause_tube("one")
    assert c.stats_tube("one")["pause"] == 0
    refused("NOT_FOUND", c.stats_tube, "nowhere")
    assert c.stats()["current-tubes"] >= 2


for check in (life_of_a_job, tubes):
    check()
    print(f"pystalk: {check.__name__}")
