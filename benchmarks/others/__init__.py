"""Other logs of one host beside the appliance: Redis Streams and NATS JetStream, from Debian's
packages. `python -m benchmarks.others`.
"""
