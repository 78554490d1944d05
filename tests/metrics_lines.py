"""Lines of metrics that a run could have written."""

NOTHING = dict.fromkeys(("accuracy", "accuracy_best", "accuracy_momentum", "thresholds"))


def metrics_line(step=1, epoch=1, seconds=0.5, **more):
    return {"epoch": epoch, "step": step, "seconds": seconds, **NOTHING, **more}
