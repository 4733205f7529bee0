"""The history of consumer groups as one HTML page.

`write_report` takes plain rows and snapshots (`ReportData`). It needs jinja2, but no Spark.
"""

from typing import TYPE_CHECKING

from kafka_assignors.lazy import getter

if TYPE_CHECKING:
    from kafka_assignors.history.report.model import (
        GroupHistory,
        GroupSummary,
        Limits,
        ReportData,
        WhatIf,
        shown_groups,
    )
    from kafka_assignors.history.report.page import render, write_report

_HOMES = {
    "GroupHistory": "model",
    "GroupSummary": "model",
    "Limits": "model",
    "ReportData": "model",
    "WhatIf": "model",
    "render": "page",
    "shown_groups": "model",
    "write_report": "page",
}

__all__ = [
    "GroupHistory",
    "GroupSummary",
    "Limits",
    "ReportData",
    "WhatIf",
    "render",
    "shown_groups",
    "write_report",
]

if not TYPE_CHECKING:  # to a type checker, a name that is not above is an error
    __getattr__ = getter(__name__, _HOMES)
