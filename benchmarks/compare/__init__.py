"""The comparison with Apache Kafka in one run: `python -m benchmarks compare`."""
