from kafka_assignors._groups.saving import WhatIf as WhatIf
from kafka_assignors.history.report._model import (
    GroupHistory as GroupHistory,
    GroupSummary as GroupSummary,
    ReportData as ReportData,
)
from kafka_assignors.history.report._page import write_report as write_report
