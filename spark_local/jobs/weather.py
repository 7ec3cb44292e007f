"""Flights joined with the weather of their origin and hour (weather.toml)."""

from pyspark.sql import DataFrame, SparkSession


def derive(spark: SparkSession, sources: dict[str, DataFrame]) -> DataFrame:
    """An inner join: a flight without a reading of the weather gives no row.

    The equality of the hours is what lets Spark forget rows that the watermark has passed.
    """
    return sources["flights"].join(sources["weather"], ["origin", "time_hour"])
