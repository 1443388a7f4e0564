"""How the claims of a benchmark end."""

from datetime import timedelta

from drumline.model.claim import Claim
from drumline.model.outcome import Outcome
from drumline.policy.verdict import Returned, verdict


def succeed(claim: Claim, replica: str) -> Outcome:
    """It has returned nothing, within a millisecond."""
    ended = claim.claimed_at + timedelta(milliseconds=1)
    return verdict(claim, Returned(b"null"), by=replica, started_at=claim.claimed_at, ended_at=ended)
