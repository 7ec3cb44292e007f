"""Derived streams: job files and the runner that keeps them running on a local Spark session.

The modules of this level import neither pyspark nor appliance; `engine` is what needs Spark.
"""
