"""The store that tests of the history use: it keeps what it is given, and fails as it is told to."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import TYPE_CHECKING

import pytest

from tests.support.object_store import Fault, busy, denied

if TYPE_CHECKING:
    from tests.support.object_store import ObjectStore


@pytest.fixture
def bucket(object_store: ObjectStore) -> str:
    return object_store.bucket()


SIGNED = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
"""Who does not sign is nobody, who may not read; whose signature it is is not looked at."""


def ask(store: ObjectStore, method: str, path: str, body: str = "", **headers: str) -> tuple[int, str]:
    connection = HTTPConnection(store.endpoint.removeprefix("http://"), timeout=60)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, {"Authorization": SIGNED, **named})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_buckets_are_new_and_keep_what_they_are_given(object_store: ObjectStore, bucket: str) -> None:
    assert object_store.bucket() != bucket
    assert ask(object_store, "PUT", f"/{bucket}/a", "text")[0] == 200
    assert ask(object_store, "GET", f"/{bucket}/a") == (200, "text")
    assert ask(object_store, "GET", f"/{object_store.bucket()}/a")[0] == 404


def test_of_many_that_put_what_must_not_be_there_one_does(object_store: ObjectStore, bucket: str) -> None:
    def put(number: int) -> int:
        return ask(object_store, "PUT", f"/{bucket}/a", str(number), If_None_Match="*")[0]

    with ThreadPoolExecutor(8) as threads:
        answers = [*threads.map(put, range(40))]
    assert sorted(answers) == [200] + [412] * 39
    assert ask(object_store, "GET", f"/{bucket}/a") == (200, str(answers.index(200)))


def test_a_fault_strikes_the_requests_that_it_is_for(object_store: ObjectStore, bucket: str) -> None:
    def answers(*requests: str) -> list[int]:
        return [ask(object_store, *request.split())[0] for request in requests]

    put, get, other = f"PUT /{bucket}/a", f"GET /{bucket}/a", f"PUT /{bucket}/b"
    with object_store.failing(busy(method="PUT", path="/a$", after=1, times=2)) as struck:
        assert answers(put, get, other, put, put, put) == [200, 200, 200, 503, 503, 200]
        assert struck.count() == 2
    with object_store.failing(denied(method="GET|HEAD")):
        assert answers(put, get) == [200, 403]
        assert "<Code>AccessDenied</Code>" in ask(object_store, "GET", f"/{bucket}/a")[1]
    assert answers(put, get) == [200, 200]


def test_a_put_whose_answer_is_lost_is_done(object_store: ObjectStore, bucket: str) -> None:
    with object_store.failing(busy(done=True)):
        assert ask(object_store, "PUT", f"/{bucket}/a", "text")[0] == 503
    assert ask(object_store, "GET", f"/{bucket}/a") == (200, "text")


def test_what_is_held_goes_on_afterwards(object_store: ObjectStore, bucket: str) -> None:
    with ThreadPoolExecutor(1) as thread:
        with object_store.failing(Fault(method="PUT", hold=True)) as struck:
            held = thread.submit(ask, object_store, "PUT", f"/{bucket}/a", "text")
            struck.wait()
            assert ask(object_store, "GET", f"/{bucket}/a")[0] == 404
            assert not held.done()
        assert held.result()[0] == 200
    assert ask(object_store, "GET", f"/{bucket}/a") == (200, "text")
