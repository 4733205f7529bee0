"""Broker settings that are misspelled are refused, by what a broker says that it knows."""

import pytest

from kafka_assignors.testing._brokers.errors import UnknownSettingError
from kafka_assignors.testing._brokers.known_settings import check_known

LOG = (
    "[2026-11-23 18:25:30,324] INFO KafkaConfig values: \n"
    "\tadvertised.listeners = [PLAIN://127.0.0.1:27022]\n"
    "\tlog.retention.ms = null\n"
    "\tlog.retention.minutes = null\n"
    " (org.apache.kafka.common.config.AbstractConfig)\n"
    "[2026-11-23 18:25:30,400] INFO KafkaConfig values: \n"
    "\tnum.io.threads = 2\n"
    "[2026-11-23 18:25:31,000] INFO other.values: \n"
    "\tnum.io.treads = 2\n"
)


def test_a_misspelled_setting_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(UnknownSettingError) as caught:
        check_known(LOG, ["log.retention.ms", "num.io.threads", "log.retention.sm", "colour"])
    assert str(caught.value) == (
        "Kafka has no broker setting 'log.retention.sm': did you mean log.retention.ms or"
        " log.retention.minutes?; Kafka has no broker setting 'colour'"
    )


@pytest.mark.parametrize(
    "settings",
    [
        ["listener.name.plain.sasl.enabled.mechanisms"],
        ["authorizer.class.name", "super.users"],
        ["metric.reporters", "my.reporter.port"],
    ],
)
def test_settings_of_listeners_and_of_plug_ins_are_not_judged(settings: list[str]) -> None:
    check_known(LOG, settings)


def test_a_broker_that_logs_otherwise_is_not_judged() -> None:
    check_known("[2026-11-23 18:25:30,324] started", ["anything"])
