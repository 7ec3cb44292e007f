"""Tables of which each network process writes a part of its own, cut out of one shared memory."""


def regions(memory: memoryview, count: int, size: int) -> list[tuple[memoryview, memoryview]]:
    """(words, bytes) of each of `count` parts of `size` bytes, one behind the other."""
    assert len(memory) >= count * size
    parts = [memory[n * size : (n + 1) * size] for n in range(count)]
    return [(part.cast("q"), part) for part in parts]
