from benchmarks.peers.probes import summarise


def test_the_p99_of_two_hundred_waits_is_the_longest_but_one():
    waits = [float(wait) for wait in range(200)]
    assert summarise("pick-up", waits[::-1]) == {"pick-up p50": 99.5, "pick-up p99": 198.0}
