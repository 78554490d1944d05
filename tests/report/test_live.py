import http.client
import json
import socket
import threading

import pytest

from concont.errors import ConcontError
from concont.report.live import HEADERS, Changes, LivePage, PageServer
from concont.report.watched import Watch
from concont.runs.folder import RunFolder
from made_runs import make_rows, make_run


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run", epochs=9, rows=make_rows(2), finished=False)


@pytest.fixture
def server(run, monkeypatch):
    monkeypatch.setattr("concont.report.live.FRESH", 0.0)
    with PageServer(LivePage(Watch(run)), 0) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        yield server
        server.shutdown()


def ask(server, path="/", method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer, body


def test_only_what_has_changed_is_told(server, run):
    _, body = ask(server, "/state.json?since=0")
    first = json.loads(body)
    assert set(first["parts"]) == {"html/summary", "html/origin", "runs", "shared", "run/run"}
    _, body = ask(server, f"/state.json?since={first['version']}")
    assert json.loads(body) == {"version": first["version"], "parts": {}}
    RunFolder(run).append_metrics(make_rows(3)[-1])
    _, body = ask(server, f"/state.json?since={first['version']}")
    second = json.loads(body)
    assert second["version"] > first["version"]
    assert set(second["parts"]) == {"html/summary", "shared", "run/run"}
    assert second["parts"]["shared"]["accuracy"]["data"][0]["x"] == [1, 2, 3]


def test_a_page_knows_the_version_that_it_shows(server):
    _, html = ask(server)
    told = json.loads(ask(server, "/state.json")[1])
    assert f'"version": {told["version"]}' in html


def test_parts_are_told_by_the_version_in_which_they_changed():
    changes = Changes()
    changes.update({"a": 1, "b": 2})
    first = changes.version
    changes.update({"a": 1, "b": 2})
    assert changes.version == first
    changes.update({"a": 1, "b": 3})
    assert json.loads(changes.tell_since(first))["parts"] == {"b": 3}
    assert json.loads(changes.tell_since(0))["parts"] == {"a": 1, "b": 3}
    changes.update({"a": 1})
    assert json.loads(changes.tell_since(0))["parts"] == {"a": 1}


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1:1", ""])
def test_a_name_that_leads_here_from_elsewhere_is_refused(server, host):
    answer, body = ask(server, Host=host.format(port=server.server_port))
    assert answer.status == 403
    assert "for this machine alone" in body


def test_this_machine_may_be_called_localhost(server):
    assert ask(server, Host=f"localhost:{server.server_port}")[0].status == 200


@pytest.mark.parametrize(
    "path", ["/../run/config.yaml", "/config.yaml", "//etc/passwd", "/%2e%2e/"]
)
def test_no_address_names_a_file(server, path):
    answer, body = ask(server, path)
    assert (answer.status, body) == (404, "there is nothing here")


def test_it_is_read_and_never_written(server):
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert ask(server, method=method)[0].status == 501
    answer, body = ask(server, method="HEAD")
    assert (answer.status, body) == (200, "")
    assert int(answer.headers["Content-Length"]) > 1_000_000


def test_answers_are_kept_by_nobody_and_framed_by_nobody(server):
    answer, _ = ask(server)
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert "Python" not in answer.headers["Server"]


@pytest.mark.parametrize("since", ["x", "-1", "1e9", "9" * 30, "9" * 5000])
def test_a_wrong_version_is_no_error(server, since):
    answer, body = ask(server, f"/state.json?since={since}")
    assert answer.status == 200
    assert "version" in json.loads(body)


def test_it_listens_on_this_machine_alone(server):
    assert server.server_address[0] == "127.0.0.1"
    assert server.url == f"http://127.0.0.1:{server.server_port}/"


def test_a_port_that_is_taken_is_told(run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConcontError, match=f"port {port} is in use; choose another"):
            PageServer(LivePage(Watch(run)), port)


def test_a_request_that_fails_is_told_in_a_line_and_the_next_is_answered(
    server, monkeypatch, capfd
):
    def fail(since):
        raise ValueError("no")

    with monkeypatch.context() as broken:
        broken.setattr(server.page, "tell_since", fail)
        with pytest.raises(http.client.RemoteDisconnected):
            ask(server, "/state.json")
    assert ask(server, "/state.json")[0].status == 200
    assert capfd.readouterr().err == "a request failed: ValueError: no\n"
