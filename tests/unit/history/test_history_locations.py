"""Which locations paths and URIs name, and what is said of those that cannot be used."""

import errno
import os
from pathlib import Path

import pytest
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from kafka_assignors._cli.errors import WrongError
from kafka_assignors._cli.history import read_store_config
from kafka_assignors.history._store.location import (
    StoreError,
    WrongPlaceError,
    asking,
    locate,
    reason_of,
)


@pytest.fixture(autouse=True)
def _no_store_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("AWS_", "AZURE_", "GOOGLE_"))]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("given", "uri"),
    [
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
        ("s3a://bucket/a", "s3://bucket/a"),
        ("S3A://bucket/a", "s3://bucket/a"),
        ("gs://bucket/a", "gs://bucket/a"),
        ("abfss://box@account.dfs.core.windows.net/a", "abfss://box@account.dfs.core.windows.net/a"),
        ("abfs://box@account.dfs.core.windows.net/a", "abfss://box@account.dfs.core.windows.net/a"),
        ("file:///a/b", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("file://localhost/a/b", "/a/b"),
        ("file:///a%20b/c%23d", "/a b/c#d"),
        ("/a/../b", "/b"),
        ("/a b/c#d/e?f/ä", "/a b/c#d/e?f/ä"),
        ("/a:b", "/a:b"),
        ("/50%", "/50%"),
        ("/a%zz", "/a%zz"),
    ],
)
def test_a_path_or_uri_names_a_place(given: str, uri: str) -> None:
    assert locate(given).uri == uri


def test_a_path_is_one_of_the_folder_that_the_process_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert locate("archive").local == tmp_path / "archive"
    assert locate(Path("archive")).local == tmp_path / "archive"
    assert locate("c:archive").local == tmp_path / "c:archive"
    assert locate("s3:archive").local == tmp_path / "s3:archive"
    assert locate("./s3:/archive").local == tmp_path / "s3:" / "archive"
    assert locate("c:/archive").local == tmp_path / "c:" / "archive"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "hdfs://name/a",
            "hdfs://name/a cannot be used: known are paths, file://, s3:// (s3a://), gs:// and",
        ),
        ("https://host/a", "https://host/a cannot be used: known are paths"),
        ("s3x://bucket/a", "s3x://bucket/a cannot be used: known are paths"),
        ("file://host/a", "is of the machine host: write file:///folder"),
        ("file:///a#b", "has a ? or # in it"),
        ("file:///a?b", "has a ? or # in it"),
        ("", "'' names no folder: write . for the one that you are in"),
        ("s3://", "names no bucket: write s3://bucket/folder"),
        ("s3a:///a", "names no bucket: write s3://bucket/folder"),
        ("s3://bucket/a#b", "has a ? or # in it"),
        ("s3://bucket/a?b", "has a ? or # in it"),
        (
            "/a/b%20c",
            "/a/b%20c cannot be used: delta-rs takes the %20 in it for another letter; name another",
        ),
        ("/a%c3", "takes the %c3 in it for another letter"),
        ("file:///a%2541", "takes the %41 in it for another letter"),
        ("s3:/b/a", "s3:/b/a cannot be used: a URI has two slashes, which pathlib makes one. Write s3://b/a"),
        (Path("s3a://bucket/a"), "Write s3a://bucket/a as text, or ./s3a:/bucket/a if it is a folder"),
        ("GS:/bucket", "Write GS://bucket as text"),
        ("hdfs:/name/a", "hdfs:/name/a cannot be used: a URI has two slashes"),
        ("/a\\b", "takes the \\ in it for another letter"),
    ],
)
def test_a_place_that_cannot_be_used_is_refused(given: str | Path, message: str) -> None:
    with pytest.raises(WrongPlaceError) as refused:
        locate(given)
    assert message in str(refused.value)


def test_a_link_to_a_folder_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "50%20").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "50%20")
    with pytest.raises(
        WrongPlaceError, match=f"{tmp_path}/50%20/history cannot be used: delta-rs takes the %20"
    ):
        locate(tmp_path / "link" / "history")


def test_the_folders_around_one_of_a_store_end_with_the_bucket() -> None:
    assert [folder.uri for folder in locate("s3://bucket/a/b").around] == ["s3://bucket/a", "s3://bucket"]
    assert locate("s3://bucket").around == []


def test_a_store_is_reached_by_what_is_given_and_else_by_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of the environment")
    monkeypatch.setenv("AWS_REGION", "of the environment")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "another store's")
    options = locate("s3://b/a", {"aws_region": "given", "RETRY_TIMEOUT": "1s"}).options
    assert {name: options[name] for name in options if not name.startswith("AWS_")} == {
        "max_retries": "1000",
        "retry_timeout": "1s",
    }
    assert options["AWS_ACCESS_KEY_ID"] == "of the environment"
    assert options["AWS_REGION"] == "given"
    assert locate("abfss://b@a/a").options["AZURE_STORAGE_ACCOUNT_NAME"] == "another store's"
    assert locate("/a", {"AWS_REGION": "given"}).options == {}


def test_a_store_that_is_asked_for_without_tls_is_asked_so() -> None:
    def allows(**options: str) -> str | None:
        return locate("s3://b", options).options.get("AWS_ALLOW_HTTP")

    assert allows(AWS_ENDPOINT_URL="http://127.0.0.1:9000") == "true"
    assert allows(AWS_ENDPOINT_URL="http://127.0.0.1:9000", AWS_ALLOW_HTTP="false") == "false"
    assert allows(AWS_ENDPOINT_URL="https://host") is None
    assert allows() is None
    azure = {"azure_storage_endpoint": "http://127.0.0.1:10000/account"}
    assert locate("abfss://box@account.dfs.core.windows.net", azure).options["AZURE_ALLOW_HTTP"] == "true"


def test_credentials_are_not_printed() -> None:
    where = locate("s3://b/a", {"AWS_SECRET_ACCESS_KEY": "hush"}) / "records"
    assert "hush" in where.options.values()
    assert "hush" not in f"{where} {where!r} {[where]}"
    assert (str(where), repr(where)) == ("s3://b/a/records", "Location(uri='s3://b/a/records')")


@pytest.mark.parametrize("name", ["a b", "a#b", "a?b", "ä", "a:b", "50%", "a+b&c=d"])
def test_small_files_are_in_the_folder_that_was_named(name: str, tmp_path: Path) -> None:
    where = locate(tmp_path / name)
    assert where.names() == []
    assert where.read_text("x.json") is None
    where.write_text("x.json", "é")
    where.write_text("x.json", "é2")
    where.write_text("y.json", "")
    assert (where.read_text("x.json"), where.read_text("y.json")) == ("é2", "")
    assert sorted(path.name for path in (tmp_path / name).iterdir()) == where.names() == ["x.json", "y.json"]
    where.remove(["nothing", "x.json"])
    assert where.names() == ["y.json"]


def test_options_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "store.properties"
    path.write_text("# of MinIO\n\nAWS_REGION = here \nAWS_SECRET_ACCESS_KEY=a=b#c\n  # more\n")
    assert read_store_config(path) == {"AWS_REGION": "here", "AWS_SECRET_ACCESS_KEY": "a=b#c"}


def test_a_file_of_options_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.properties"
    with pytest.raises(WrongError, match=f"cannot read {path}: .*No such file"):
        read_store_config(path)
    path.write_bytes(b"\xff")
    with pytest.raises(WrongError, match=f"cannot read {path}: "):
        read_store_config(path)
    path.write_text("# a\nAWS_REGION\n")
    with pytest.raises(WrongError) as refused:
        read_store_config(path)
    assert str(refused.value) == f"{path}: AWS_REGION has no value"


def told(*lines: str) -> OSError:
    """As deltalake puts it, in colours."""
    return OSError("\n          \x1b[31m↳\x1b[0m ".join(lines) + "\n")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            told("Generic S3 error", "403 Forbidden", "<Error><Code>AccessDenied</Code></Error>"),
            (
                "403 Forbidden (AccessDenied): the store does not allow it: check the credentials and what"
                " they may do"
            ),
        ),
        (
            told("Generic S3 error", "400 Bad Request", "<Error><Code>ExpiredToken</Code></Error>"),
            "400 Bad Request (ExpiredToken): the credentials have expired: renew them",
        ),
        (
            told("Generic S3 error", "Error performing HEAD", "400 Bad Request"),
            (
                "400 Bad Request: the store does not take it: check the region, and whether the credentials"
                " have expired"
            ),
        ),
        (
            told("Generic S3 error", "404 Not Found", "<Error><Code>NoSuchBucket</Code></Error>"),
            "404 Not Found (NoSuchBucket): there is no such bucket or container",
        ),
        (told("Generic S3 error", "507 Insufficient Storage"), "507 Insufficient Storage: the store is full"),
        (told("Generic S3 error", "500 Internal Server Error"), "500 Internal Server Error"),
        (
            told("Generic S3 error", "tcp connect error", "Connection refused (os error 111)"),
            "Connection refused (os error 111)",
        ),
        (
            told("Generic S3 error", "Error performing PUT http://169.254.169.254/latest/api/token in 1s"),
            (
                "no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what your"
                " store wants in their place"
            ),
        ),
        (OSError(errno.ENOSPC, "No space left on device"), "[Errno 28] No space left on device"),
        (OSError(), "OSError"),
    ],
)
def test_what_a_store_says_in_many_lines_is_said_in_one(error: Exception, reason: str) -> None:
    assert reason_of(error) == reason


def test_what_was_tried_is_said_where_it_failed() -> None:
    for error in (OSError("no"), DeltaError("no")):
        with pytest.raises(StoreError) as failed, asking("read s3://b/a"):
            raise error
        assert str(failed.value) == "cannot read s3://b/a: no"
    for known in (StoreError("cannot x"), CommitFailedError("late"), TableNotFoundError("none")):
        with pytest.raises(type(known)) as same, asking("read s3://b/a"):
            raise known
        assert same.value is known


def test_a_file_that_cannot_be_read_is_an_error_and_not_none(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no folder")
    with pytest.raises(StoreError, match=f"cannot read {tmp_path}/x/y: .*Not a directory"):
        locate(tmp_path / "x").read_text("y")
