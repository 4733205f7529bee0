from kafka_assignors.history.report._model import (
    GroupHistory as GroupHistory,
    GroupSummary as GroupSummary,
    Limits as Limits,
    ReportData as ReportData,
    WhatIf as WhatIf,
    shown_groups as shown_groups,
)
from kafka_assignors.history.report._page import render as render, write_report as write_report
