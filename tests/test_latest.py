"""The last so many entries, against a model that keeps all of them."""

from hypothesis import given
from hypothesis import strategies as st

from paceline.live.latest import Latest


@given(st.lists(st.booleans(), max_size=30), st.integers(0, 5))
def test_the_last_so_many_are_kept_in_their_order(cut_short, most):
    """Where a call is cut short before the oldest is forgotten, it is made again."""
    latest, model = Latest(), []
    for name, is_cut_short in enumerate(cut_short):
        if is_cut_short:
            latest.order.append(name)
            latest[name] = str(name)
        latest.keep(name, str(name), most)
        model.append((name, str(name)))
        assert [*latest.items()] == model[max(len(model) - most, 0) :]
    assert len(latest.order) <= most + sum(cut_short)


def test_what_was_taken_back_may_come_again_in_its_new_place():
    latest = Latest()
    for name in "abc":
        latest.keep(name, name.upper(), 3)
    latest.take_back("a")
    latest.take_back("never there")
    for name in "ad":
        latest.keep(name, name.upper(), 3)
    assert list(latest.order) == ["c", "a", "d"]
    assert latest == {"c": "C", "a": "A", "d": "D"}
