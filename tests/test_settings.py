from dataclasses import replace

import pytest

from concont.methods.concont import ConCont
from concont.settings import Data, Optimizer, Settings, Train, View


def test_the_defaults_are_the_papers():
    settings = Settings(ConCont())
    assert settings.optimizer == Optimizer(lr=0.01, momentum=0.9, weight_decay=1e-3, nesterov=False)
    assert (settings.train.epochs, settings.train.batch_size) == (800, 256)
    method = settings.method
    assert (method.label_weight, method.repr_weight, method.threshold_rate) == (1.0, 0.1, 1.0)
    assert (method.threshold, method.threshold_lower, method.threshold_upper) == (0.8, 0.5, 0.95)
    assert (method.queue, method.momentum, method.temperature) == (8192, 0.999, 0.07)
    assert settings.views.weak.crop == (0.5, 1.0)
    assert settings.views.strong.crop == (0.2, 1.0)
    assert len(settings.views.strong.operations) == 14
    assert (settings.model.embedding, settings.model.hidden) == (64, 512)


@pytest.mark.parametrize("labeled", [0.0, -0.1, 1.5, 2.5, float("nan")])
def test_a_labelled_share_or_count(labeled):
    with pytest.raises(ValueError, match="a share above 0 and up to 1, or a whole number from 2"):
        Data(labeled=labeled)


def test_spans_run_upwards():
    with pytest.raises(ValueError, match="give the smaller first"):
        View(enhance=(1.9, 0.1))
    with pytest.raises(ValueError, match="crop is"):
        View(crop=(0.0, 1.0))
    with pytest.raises(ValueError, match="draws needs a list"):
        View(draws=2)
    with pytest.raises(ValueError, match="nesterov needs a momentum"):
        Optimizer(momentum=0.0, nesterov=True)


def test_the_hash_knows_what_changes_a_result_and_no_path():
    base = Settings(ConCont(), data=Data(source="digits", unlabeled=True))
    same = [
        replace(base, data=replace(base.data, root="/somewhere/else")),
        replace(base, train=replace(base.train, device="cpu", compile=False, checkpoint_every=5.0)),
        replace(base, recipe="other"),
    ]
    other = [
        replace(base, method=ConCont(temperature=0.1)),
        replace(base, train=Train(seed=2)),
        replace(base, data=replace(base.data, seed=2)),
    ]
    assert {s.hash() for s in same} == {base.hash()}
    assert len({s.hash() for s in [base, *other]}) == 4


def test_a_file_is_known_by_its_content():
    here, there = (Settings(ConCont(), data=Data(source=p)) for p in ("a/x.npz", "b/y.npz"))
    assert here.hash("digest") == there.hash("digest")
    assert here.hash("digest") != here.hash("other digest")
