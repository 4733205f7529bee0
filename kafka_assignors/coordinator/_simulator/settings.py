"""Settings of simulated consumers and of the broker, in Kafka's own defaults."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings:
    """Settings of a consumer, in the clients' own defaults.

    Attributes:
        session_timeout_ms: How long it may send no heartbeat.
        heartbeat_interval_ms: How often it sends one.
        max_poll_interval_ms: How long it may not poll; also how long the others wait for it to join.
        poll_ms: How long the application polls at a time.
        work_ms: How long it works between two polls.
        latency_ms: How long a request takes to the coordinator, and its answer back.
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3000
    max_poll_interval_ms: int = 300_000
    poll_ms: int = 100
    work_ms: int = 0
    latency_ms: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """Settings of the broker, in Kafka's own defaults.

    Attributes:
        initial_rebalance_delay_ms: `group.initial.rebalance.delay.ms`: how long an empty group waits for
            more members than its first. This and the next two are of the classic protocol.
        min_session_timeout_ms: `group.min.session.timeout.ms`.
        max_session_timeout_ms: `group.max.session.timeout.ms`.
        max_size: `group.max.size`, or `group.consumer.max.size` of a KIP-848 group.
        session_timeout_ms: `group.consumer.session.timeout.ms`: how long a member of a KIP-848 group may send
            no heartbeat. The next two are of such groups, too.
        heartbeat_interval_ms: `group.consumer.heartbeat.interval.ms`: how often members send one.
        assignment_interval_ms: `group.consumer.assignment.interval.ms`: how long after a target assignment
            the next may be made.
    """

    initial_rebalance_delay_ms: int = 3000
    min_session_timeout_ms: int = 6000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 2**31 - 1
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5000
    assignment_interval_ms: int = 1000
