"""The part that needs Spark: sessions, sources, sinks, and the runner that keeps jobs running."""
