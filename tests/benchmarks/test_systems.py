import pytest

from benchmarks.__main__ import is_asked
from benchmarks.peers.systems import OURS, STORES, SYSTEMS

PEERS = [system for system in SYSTEMS if system.kind == "peer"]
BARE = [system for system in SYSTEMS if system.kind == "bare"]


@pytest.mark.parametrize("store", STORES)
def test_ours_comes_first_on_every_store_and_a_bare_loop_stands_beside_it(store):
    first, *others = [system for system in SYSTEMS if system.store == store]
    assert first.name == OURS
    assert OURS in {other.beside for other in others if other.kind == "bare"}


@pytest.mark.parametrize("bare", BARE, ids=lambda bare: f"{bare.store}: {bare.name}")
def test_a_bare_loop_stands_beside_a_setting_of_ours_on_the_same_store(bare):
    assert (bare.beside, bare.store) in {(system.name, system.store) for system in SYSTEMS if system.kind == "ours"}


@pytest.mark.parametrize("store", STORES)
def test_no_two_systems_of_a_store_have_one_name(store):
    names = [system.name for system in SYSTEMS if system.store == store]
    assert len(names) == len(set(names))


def test_all_are_measured_unless_somebody_chooses_among_the_peers():
    assert all(is_asked(system, None) for system in SYSTEMS)
    assert [system for system in SYSTEMS if is_asked(system, ["none"])] == [
        system for system in SYSTEMS if system.kind != "peer"
    ]


def test_a_peer_is_chosen_in_all_its_settings():
    assert [peer.name for peer in PEERS if is_asked(peer, ["pgqueuer"])] == ["PgQueuer", "PgQueuer, 200"]
