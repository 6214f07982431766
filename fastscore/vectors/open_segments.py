"""The segments of a store that are open: kept current while processes add, compact and damage them.

Safe to share between threads.
"""

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from fastscore.errors import StoreError
from fastscore.vectors.description import StoreStats
from fastscore.vectors.segments import (
    DAMAGED_SUFFIX,
    IDS_SUFFIX,
    INDEX_SUFFIX,
    DamagedSegmentError,
    Segment,
    VanishedSegmentError,
    list_segments,
    open_segment,
    set_aside,
)

_ATTEMPTS = 8

Result = TypeVar("Result")

_logger = logging.getLogger("fastscore.vectors")


class OpenSegments:
    """The segments of one folder.

    Parameters
    ----------
    folder
        The store's folder.
    dim, dtype
        Of every segment's vectors; one with others counts as damaged.
    """

    def __init__(self, folder: Path, dim: int, dtype: str) -> None:
        self.folder = folder
        self._kind = dim, dtype
        self._segments: dict[str, Segment] = {}
        self._damaged: dict[str, str] = {}
        # Held while `_segments` is replaced; the mapping itself is never changed in place.
        self._lock = threading.RLock()

    def now(self) -> list[Segment]:
        """Return the open segments, by name."""
        return list(self._segments.values())

    def damaged(self) -> tuple[tuple[str, str], ...]:
        """Return the segments that were set aside here, by name, and what was wrong with each."""
        with self._lock:
            return tuple(sorted(self._damaged.items()))

    def refresh(self, *, afresh: bool = False) -> None:
        """Open segments that have appeared, forget those that are gone; all anew if `afresh`.

        Raises
        ------
        OSError
            If the folder cannot be read.
        StoreError
            If a damaged segment cannot be renamed.
        """
        with self._lock:
            segments = {} if afresh else self._segments
            for _ in range(_ATTEMPTS):
                segments, vanished = self._open_listed(segments)
                if not vanished:
                    break
            self._segments = segments

    def using(self, segment: Segment, action: Callable[[Segment], Result]) -> Result:
        """Call `action` with a segment; one that proves damaged is set aside, and it raises."""
        try:
            return action(segment)
        except DamagedSegmentError as error:
            self._set_aside(segment.name, str(error))
            raise

    def retrying(self, action: Callable[[], Result]) -> Result:
        """Run `action` again when a segment was compacted away under it, or set aside.

        Raises
        ------
        StoreError
            If segments vanish again and again.
        """
        vanished = 0
        while vanished < _ATTEMPTS:
            try:
                return action()
            except DamagedSegmentError:
                continue  # it was set aside, so the next attempt has one less
            except VanishedSegmentError:
                vanished += 1
                self.refresh(afresh=True)
        raise StoreError(
            f"Segments of {self.folder} vanish while they are read.",
            "Is something else than fastscore removing files there?",
        )

    def count(self) -> StoreStats:
        """Count segments, vectors, bytes, and segments set aside, by other processes too.

        Raises
        ------
        VanishedSegmentError
            If a segment is gone.
        OSError
            If the folder cannot be read.
        """
        segments = self.now()
        files = os.listdir(self.folder)
        try:
            sizes = [
                (self.folder / (segment.name + suffix)).stat().st_size
                for segment in segments
                for suffix in (IDS_SUFFIX, INDEX_SUFFIX)
            ]
        except FileNotFoundError as error:
            raise VanishedSegmentError(str(error.filename)) from error
        damaged = {name.split(".")[0] for name in files if name.endswith(DAMAGED_SUFFIX)}
        return StoreStats(
            self.folder, len(segments), sum(map(len, segments)), sum(sizes), len(damaged)
        )

    def _open_listed(self, known: dict[str, Segment]) -> tuple[dict[str, Segment], bool]:
        """Open the listed segments that are not known; say whether one vanished meanwhile.

        A vanished segment was compacted: its vectors are in one listed next time.
        """
        segments: dict[str, Segment] = {}
        vanished = False
        for name in list_segments(self.folder):
            try:
                segments[name] = known[name] if name in known else self._open(name)
            except VanishedSegmentError:
                vanished = True
            except DamagedSegmentError as error:
                self._set_aside(name, str(error))
        return segments, vanished

    def _open(self, name: str) -> Segment:
        segment = open_segment(self.folder, name)
        if (segment.dim, segment.dtype) != self._kind:
            raise DamagedSegmentError(f"{name} holds other vectors than its store")
        return segment

    def _set_aside(self, name: str, reason: str) -> None:
        with self._lock:
            self._segments = {
                other: segment for other, segment in self._segments.items() if other != name
            }
            self._damaged[name] = reason
            try:
                set_aside(self.folder, name)
            except OSError as error:
                raise StoreError(
                    f"The segment {name} of {self.folder} is damaged ({reason}) and cannot be set "
                    f"aside: {error.strerror}."
                ) from error
        _logger.warning("The segment %s is damaged and was set aside: %s.", name, reason)
