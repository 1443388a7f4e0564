from pathlib import Path

import pytest

import drumline.stores.base
from tests.support.promises import find_unquoted, promises, read_promises, read_quotes

PROMISES = read_promises(Path(drumline.stores.base.__file__))
QUOTES = read_quotes(Path(__file__).parent)


@promises("base", "Each sentence of a docstring here has a test that names it.")
@pytest.mark.parametrize("about", PROMISES)
def test_every_sentence_is_quoted_by_a_test(about):
    assert find_unquoted(PROMISES[about], [quote.text for quote in QUOTES if quote.about == about]) == []


def test_every_quote_stands_in_the_protocol():
    assert [quote for quote in QUOTES if quote.text not in PROMISES.get(quote.about, "")] == []


def test_a_sentence_that_no_test_quotes_is_named_with_its_missing_words():
    docstring = "Take jobs, all or none. A second one, never. Paused queues give nothing."
    assert find_unquoted(docstring, ["Take jobs", "Paused queues give nothing."]) == [
        "Take jobs, all or none. [all or none]",
        "A second one, never. [A second one never]",
    ]
