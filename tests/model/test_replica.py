from drumline.model.replica import Role


def test_combined_and_scheduler_fire_the_fleets_ticks():
    assert {role for role in Role if role.fires} == {Role.COMBINED, Role.SCHEDULER}
