"""Arrow schemas as Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import from_arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


def spark_schema(schema: pa.Schema) -> StructType:
    """The same columns for Spark; times are `TimestampType`."""
    return from_arrow_schema(schema.remove_metadata(), prefer_timestamp_ntz=False)
