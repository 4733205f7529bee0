from kafka_assignors._groups.saving import WhatIf as WhatIf
from kafka_assignors.history.report._model import (
    GroupHistory as GroupHistory,
    GroupSummary as GroupSummary,
    ReportData as ReportData,
    ReportLimits as ReportLimits,
    shown_groups as shown_groups,
)
from kafka_assignors.history.report._page import render as render, write_report as write_report
