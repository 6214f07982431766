"""Which dialogues of a log are scored, where not all are."""

from dataclasses import dataclass

from fastscore.errors import UsageError


@dataclass(frozen=True, slots=True)
class Choice:
    """A part of a log.

    Parameters
    ----------
    limit
        Score so many dialogues, from the start.
    sample
        Score so many dialogues, those whose names have the smallest hashes.
    seed
        Which sample: it is part of what is hashed; 0 without one.

    Raises
    ------
    UsageError
        Both a limit and a sample, a seed without a sample, or none of a number.
    """

    limit: int | None = None
    sample: int | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.sample is not None:
            raise UsageError(
                "Both --limit and --sample are given.",
                "--limit takes dialogues from the start, --sample from everywhere; name one.",
            )
        if self.seed is not None and self.sample is None:
            raise UsageError(
                "--seed is given without --sample.",
                "It says which sample is scored: add --sample N.",
            )
        for flag, value in (("--limit", self.limit), ("--sample", self.sample)):
            if value is not None and value < 1:
                raise UsageError(f"{flag} is {value}, expected a number of at least 1.")

    def __bool__(self) -> bool:
        """Whether anything is left out."""
        return self.limit is not None or self.sample is not None

    @property
    def signed(self) -> tuple[str, ...]:
        """What stands in a signature: nothing, where all dialogues are scored."""
        if self.limit is not None:
            return (f"limit={self.limit}",)
        return (f"sample={self.sample}", f"seed={self.seed or 0}") if self else ()


EVERYTHING = Choice()
"""All dialogues are scored."""
