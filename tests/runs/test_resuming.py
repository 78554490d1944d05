from dataclasses import replace

from concont.config.resolve import resolve
from concont.runs.resuming import resume_command
from concont.runs.settings import MethodSource


def test_what_goes_on_with_a_run_names_the_code_that_it_needs():
    plain = resolve({"data": {"source": "digits"}})
    assert resume_command("runs/one", plain) == "concont train --resume runs/one"
    named = replace(plain.model, own="nets.mine:make", own_digest="1")
    own = replace(plain, method_source=MethodSource("method.py:Mine", "2"), model=named)
    wanted = "concont train --resume runs/one --method method.py:Mine --model nets.mine:make"
    assert resume_command("runs/one", own) == wanted


def test_a_module_that_python_was_given_is_given_again():
    plain = resolve({"data": {"source": "digits"}})
    given = replace(plain, model=replace(plain.model, own="torch.nn.modules:Flatten"))
    assert resume_command("runs/one", given) == "concont.train(resume='runs/one', model=...)"
    both = replace(given, method_source=MethodSource("method.py:Mine", "2"))
    wanted = "concont.train({'method': {'name': 'method.py:Mine'}}, resume='runs/one', model=...)"
    assert resume_command("runs/one", both) == wanted
