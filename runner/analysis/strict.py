"""Operations of a cell that PyTorch itself calls not deterministic: refused or warned about under strict algorithms."""

from collections import Counter
from collections.abc import Sequence

from runner.record import Record


def not_deterministic(records: Sequence[Record]) -> dict[str, int]:
    """The names of these operations, each with the number of trials in which PyTorch spoke of it, most first."""
    found = Counter(name for record in records for name in record.not_deterministic)
    return dict(found.most_common())
