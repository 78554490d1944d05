from concont.cores import count_cores


def test_the_cores_that_may_be_used_are_counted(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {3, 5}, raising=False)
    assert count_cores() == 2


def test_where_processes_are_bound_to_no_cores_all_of_them_count(monkeypatch):
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    assert count_cores() == 6
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert count_cores() == 1
