from datetime import UTC, datetime

import pytest

from drumline.errors import BadOption
from drumline.model.claim import ANY_QUEUE, Claim, ClaimRef
from drumline.model.options import JobOptions

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_claim_is_named_by_its_job_and_fence():
    claim = Claim("id", 7, "job", "default", 1, b"{}", JobOptions(), "r1:1", NOW, NOW, NOW, NOW)
    assert claim.ref == ClaimRef("id", 7)
    assert len({claim.ref, ClaimRef("id", 7), ClaimRef("id", 8)}) == 2


def test_no_queue_can_have_the_name_that_stands_for_all():
    with pytest.raises(BadOption, match=r"^queue must be"):
        JobOptions(queue=ANY_QUEUE)
