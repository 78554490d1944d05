from concont.deploy.check import Comparison
from concont.deploy.quantise import Quantised
from concont.deploy.wording import describe_check, describe_quantised


def test_on_which_images_it_was_checked_is_told():
    assert describe_check(Comparison(1.23e-6, 42, "holdout")) == (
        "answers as the run: largest difference 1.2e-06 on 42 held-out images in batches of 1, 2 "
        "and 7"
    )
    assert describe_check(Comparison(0, 42, "random")).endswith(
        "on 42 random images in batches of 1, 2 and 7; the run's own could not be read"
    )


def test_both_models_stand_side_by_side():
    found = Quantised(300, 44_700_000, 11_300_000, 2000, "test", 0.99, 0.9412, 0.9398)
    assert describe_quantised(found).splitlines() == [
        "calibrated on 300 training images; on 2,000 test images:",
        "  float 44.70 MB, accuracy 94.12 %",
        "  int8  11.30 MB, accuracy 93.98 %",
        "  the same label on 99.00 %",
    ]
    unknown = Quantised(300, 44_700_000, 11_300_000, 2000, "training", 0.99, None, None)
    assert "accuracy" not in describe_quantised(unknown)
