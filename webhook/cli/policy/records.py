"""Records of reviews in files, as `serve --record` writes them."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from webhook.admission.recorded import RecordedReview
from webhook.cli.terminal import counted

SUFFIX = ".jsonl"


@dataclass(slots=True)
class Records:
    """What is in some files, read one line after the other."""

    paths: list[Path]
    reviews: int = 0
    """Read so far."""
    unrecorded: int = 0
    """Reviews that the service answered and did not record."""
    redacted: int = 0
    """Of the reviews read, those of which values were taken out."""
    unreadable: int = 0
    """Lines that are no review, as the last one of a replica that was killed."""

    def __iter__(self) -> Iterator[RecordedReview]:
        decoder = msgspec.json.Decoder(RecordedReview)
        for path in self.paths:
            for line in _lines(path):
                try:
                    review = decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    self.unreadable += 1
                    continue
                self.reviews += 1
                self.unrecorded += review.unrecorded
                self.redacted += bool(review.redacted)
                yield review

    @property
    def coverage(self) -> str:
        """How much of what was answered this is, in a sentence."""
        told = f"{self.reviews:,} of {self.reviews + self.unrecorded:,} reviews were recorded"
        more = [f"{self.redacted:,} of them without values that may be secret"] if self.redacted else []
        more += [f"{counted(self.unreadable, 'line')} cannot be read"] if self.unreadable else []
        return "; ".join([told, *more])


def _lines(path: Path) -> Iterator[bytes]:
    with suppress(FileNotFoundError), path.open("rb") as lines:  # the service has made room meanwhile
        yield from lines


def of(folder: Path) -> Records:
    """The records in a folder, or in one file; OSError where there are none."""
    if folder.is_file():
        return Records([folder])
    found = sorted(path for path in folder.iterdir() if path.suffix == SUFFIX)
    if not found:
        raise FileNotFoundError(2, f"no {SUFFIX} files in it", str(folder))
    return Records(found)
