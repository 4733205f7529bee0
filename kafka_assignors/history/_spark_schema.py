"""Arrow schemas as Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


def spark_schema(schema: pa.Schema) -> StructType:
    """The same columns for Spark; times are `TimestampType`."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - archives are read without, too

    return from_arrow_schema(schema.remove_metadata(), prefer_timestamp_ntz=False)
