"""Properties files of Kafka's own tools, as settings of kafka-python."""

import sys
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from kafka_assignors._cluster.command_config import (
    CommandConfigError,
    parse_command_config,
    read_command_config,
)
from kafka_assignors._cluster.librdkafka import librdkafka_settings
from tests.support.unconnected import Unconnected


def test_a_file_for_tls_and_scram_is_understood(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    (tmp_path / "client.properties").write_text(
        "# made by hand\n! also a comment\n\n"
        "security.protocol=SASL_SSL\nsasl.mechanism = SCRAM-SHA-512\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        r'    username="bob" password="a \\"quoted\\" = secret";'
        "\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={tmp_path / 'ca.pem'}\n"
        "ssl.endpoint.identification.algorithm=\nrequest.timeout.ms=5000\nclient.id=me\n"
    )
    assert read_command_config(tmp_path / "client.properties") == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "bob",
        "sasl_plain_password": 'a "quoted" = secret',
        "ssl_cafile": str(tmp_path / "ca.pem"),
        "ssl_check_hostname": False,
        "request_timeout_ms": 5000,
        "client_id": "me",
    }


def test_names_of_librdkafka_are_understood(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        (tmp_path / name).touch()
    assert parse_command_config(
        f"ssl.ca.location={tmp_path / 'ca'}\nssl.certificate.location={tmp_path / 'cert'}\n"
        f"ssl.key.location={tmp_path / 'key'}\nssl.key.password=p\nsasl.username=u\nsasl.password=w\n"
        "ssl.endpoint.identification.algorithm=https"
    ) == {
        "ssl_cafile": str(tmp_path / "ca"),
        "ssl_certfile": str(tmp_path / "cert"),
        "ssl_keyfile": str(tmp_path / "key"),
        "ssl_password": "p",
        "sasl_plain_username": "u",
        "sasl_plain_password": "w",
        "ssl_check_hostname": True,
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("security.protocol", "security.protocol is '', not PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL$"),
        ("security.protocol=SASL_TLS", "security.protocol is 'SASL_TLS', not PLAINTEXT, SSL, "),
        ("client.id", "client.id has no value"),
        (r"sasl.password=a\uend", "to write a backslash, double it"),
        ("security.protocoll=SSL", "'security.protocoll' is not known: known are client.id, "),
        ("request.timeout.ms=9999999999", "'9999999999', not a number of up to 9 digits"),
        ("request.timeout.ms=soon", "request.timeout.ms is 'soon', not a number"),
        ("ssl.truststore.type=JKS", "export the certificates as PEM"),
        ("ssl.truststore.location=/etc/kafka/store.jks", "export the certificates as PEM"),
        ("ssl.ca.location=/nowhere/ca.pem", "there is no such file"),
        ("ssl.endpoint.identification.algorithm=ldap", "not https, none or empty"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(text: str, said: str) -> None:
    with pytest.raises(CommandConfigError, match=said):
        parse_command_config(text)


def test_a_protocol_is_known_in_any_case_and_handed_on_as_kafka_python_knows_it() -> None:
    assert parse_command_config("security.protocol=sasl_ssl") == {"security_protocol": "SASL_SSL"}


@pytest.mark.parametrize(
    ("value", "checked"), [("https", True), ("HTTPS", True), ("none", False), ("", False)]
)
def test_hosts_are_compared_with_certificates_unless_that_is_turned_off(value: str, checked: bool) -> None:
    text = f"ssl.endpoint.identification.algorithm={value}"
    assert parse_command_config(text) == {"ssl_check_hostname": checked}


def test_a_request_may_take_longer_than_kafka_python_lets_a_call_take() -> None:
    settings = parse_command_config("request.timeout.ms=90000")
    KafkaAdminClient(kafka_client=Unconnected, bootstrap_servers="127.0.0.1:9", **settings).close()
    assert librdkafka_settings(settings) == {"socket.timeout.ms": 90000}


def test_a_refused_secret_is_not_repeated() -> None:
    with pytest.raises(CommandConfigError, match="needs username=") as caught:
        parse_command_config("sasl.jaas.config=Krb5LoginModule required secret=hunter2;")
    assert "hunter2" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandConfigError, match=r"cannot read .*missing\.properties"):
        read_command_config(tmp_path / "missing.properties")


@pytest.mark.parametrize(
    ("text", "password"),
    [
        (r"sasl.password=a\\b", r"a\b"),
        (r"sasl.password=a\b", "ab"),
        (r"sasl.password=\u0061=:b", "a=:b"),
        ("sasl.password: a ", "a "),
        ("sasl.password a\\\n   b", "ab"),
    ],
)
def test_passwords_are_read_by_the_rules_of_java(text: str, password: str) -> None:
    assert parse_command_config(text) == {"sasl_plain_password": password}


def test_without_javaproperties_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "javaproperties", None)
    with pytest.raises(CommandConfigError, match=r"needs javaproperties .* 'kafka-assignors\[cli\]'"):
        parse_command_config("client.id=a")
