"""What a member claims: which partitions, as of which generation, and whether it holds them now.

A subscription may say so in three places. It has owned partitions (v1 and up) with a generation (v2 and up).
Or its user data has a prior assignment with a generation, or a generation alone. What counts:

    strategy            user data           owned partitions    claims       generation     holds
    ------------------  ------------------  ------------------  -----------  -------------  -----
    sticky              a prior assignment  any                 user data's  user data's    no
                        unreadable          any                 none         none           no
                        none                any                 owned        subscription's no
    cooperative-sticky  none, a generation  any                 owned        subscription's yes
                        a prior assignment  some, from v2 on    owned        subscription's yes
                        a prior assignment  some, v1            owned        user data's    yes
                        a prior assignment  none                user data's  user data's    no
                        unreadable          some                owned        subscription's yes
                        unreadable          none                none         none           no
    any other           any                 any                 owned        subscription's yes

`copartitioned` and `load-aware` are as cooperative-sticky.

*subscription's*: below v2 there is none; then the generation in the user data of a cooperative member counts,
which is where Java says it (`CooperativeStickyAssignor.memberData`). librdkafka says it behind a prior
assignment. kafka-python's own class says none. A member that rebalances eagerly remembers what it had and
holds nothing (`StickyAssignor.memberData`). A cooperative strategy beside an eager one does so as well, and
its prior assignment is a wish. Unreadable user data never makes a held partition free: its owner may be
consuming it. Weight and extra count where the user data does; elsewhere the weight is 1.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from kafka_assignors._common.strategies import COOPERATIVE
from kafka_assignors._model.claims import Claimed, ClaimTable, Extra, TableClaims
from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors._wire.codec import NOT_STATED, Subscriptions
from kafka_assignors._wire.reader import UnreadableError
from kafka_assignors._wire.user_data import decode_all, decode_generation


def claims_of(
    strategy: str | None, subscriptions: Subscriptions
) -> tuple[Claimed, Mapping[int, UnreadableError]]:
    """What members claim, and by their numbers why user data that should count cannot be read."""
    if strategy == "sticky" and any(subscriptions.user_data):
        return _remembered(subscriptions)
    if strategy in COOPERATIVE:
        return _held(subscriptions)
    count = len(subscriptions.user_data)
    stated = subscriptions.generations
    claimed = Claimed(
        claims=subscriptions.owned,
        generations=np.where(stated == NOT_STATED, NO_GENERATION, stated),
        holds=np.full(count, strategy != "sticky"),
        weights=np.ones(count, dtype=np.int64),
    )
    return claimed, {}


def _remembered(subscriptions: Subscriptions) -> tuple[Claimed, Mapping[int, UnreadableError]]:
    prior, faults = decode_all(subscriptions.user_data)
    silent = np.array(list(map(len, subscriptions.user_data))) == 0
    table, stated = prior.claims, subscriptions.generations
    if subscriptions.owned.claimant.size and silent.any():
        table = ClaimTable.of(
            [
                mine if is_silent else claim
                for is_silent, mine, claim in zip(
                    silent.tolist(), subscriptions.owned.claims(), table.claims(), strict=True
                )
            ]
        )
    generations = np.where(silent & (stated != NOT_STATED), stated, prior.generations)
    return replace(prior, claims=table, generations=generations), faults


def _held(subscriptions: Subscriptions) -> tuple[Claimed, Mapping[int, UnreadableError]]:
    stated, data = subscriptions.generations, subscriptions.user_data
    owns = np.bincount(subscriptions.owned.claimant, minlength=len(data)) > 0
    short_generations = np.full(len(data), NO_GENERATION)
    weights = np.ones(len(data), dtype=np.int64)
    extras: dict[int, Extra] = {}
    longer = []  # user data that may be a prior assignment, where that could count
    for number, each in enumerate(data):
        short = decode_generation(each)
        if short is not None:
            short_generations[number], weights[number], extra = short
            if any(extra):
                extras[number] = extra
        elif each and not (owns[number] and stated[number] != NOT_STATED):
            longer.append(number)
    table, holds = subscriptions.owned, np.ones(len(data), dtype=np.bool_)
    generations = np.where(stated == NOT_STATED, short_generations, stated)
    faults = {}
    if longer:
        prior, unreadable = decode_all([data[number] for number in longer])
        faults = {longer[index]: fault for index, fault in unreadable.items()}
        extras |= {longer[index]: extra for index, extra in prior.extras.items()}
        claims: list[TableClaims | dict[str, list[int]]] = [*table.claims()]
        for number, wish, generation, weight in zip(
            longer, prior.claims.claims(), prior.generations, prior.weights, strict=True
        ):
            generations[number], weights[number] = generation, weight
            if not owns[number]:
                claims[number], holds[number] = wish, False
        table = ClaimTable.of(claims)
    claimed = Claimed(claims=table, generations=generations, holds=holds, weights=weights, extras=extras)
    return claimed, faults
