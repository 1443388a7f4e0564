import json
import logging

import pytest

from drumline.cli.logs import set_up_logging
from drumline.model.context import Context, active


@pytest.fixture(autouse=True)
def root_logger():
    """The root logger as it was before."""
    root = logging.getLogger()
    before = (root.level, root.handlers[:])
    yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]


def test_a_line_of_text_has_time_level_and_message(capsys):
    set_up_logging("info", "text")
    logging.getLogger("shop").info("open for %s", "business")
    logging.getLogger("shop").debug("not shown")
    line = capsys.readouterr().err
    assert line.endswith("Z INFO     open for business\n")
    assert line.count("\n") == 1


def test_a_line_of_json_has_the_same_facts(capsys):
    set_up_logging("info", "json")
    try:
        raise ValueError("boom")
    except ValueError:
        logging.getLogger("shop").exception("closed")
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["logger"], line["message"]) == ("error", "shop", "closed")
    assert line["error"].endswith("ValueError: boom")
    assert "job" not in line


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_line_of_a_job_names_it(capsys, form):
    set_up_logging("info", form)
    token = active.set(Context(job_id="job-1"))
    logging.getLogger("shop").info("at work")
    active.reset(token)
    assert "job-1" in capsys.readouterr().err
