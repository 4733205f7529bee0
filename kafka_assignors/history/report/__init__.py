"""The history of consumer groups as one HTML page.

`write_report` takes plain rows and snapshots (`ReportData`). It needs jinja2, but no Spark.
"""

from kafka_assignors._common.lazy import attach

__all__, __getattr__ = attach(__name__, __file__)
