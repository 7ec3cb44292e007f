"""A batch that its topic does not take: whether it is the record or its company is told apart."""


def test_a_batch_of_small_records_is_told_from_a_large_record(run):
    run("topic", "create", "narrow", "-p", "1", "-c", "max.message.bytes=2000")
    many = "".join(f"{n:0100}\n" for n in range(100))
    told = run("produce", "narrow", "-X", "linger.ms=200", stdin=many, code=1).stderr
    assert "[MESSAGE_TOO_LARGE]" in told and "smaller records" not in told
    assert "it has 100 bytes and would fit, its batch does not: narrow takes 2,000" in told
    before = run("consume", "narrow", "-o", "start", "-e").stdout.count("\n")
    run("produce", "narrow", "-X", "linger.ms=200", "-X", "batch.size=2000", stdin=many)
    after = run("consume", "narrow", "-o", "start", "-e").stdout.count("\n")
    assert after - before == 100, "what is hinted at helps"
    told = run("produce", "narrow", stdin="x" * 3000, code=1).stderr
    assert "it has 3,000 bytes and narrow takes 2,000 (max.message.bytes)" in told
