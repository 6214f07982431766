"""Reading objects from a slow store: read-ahead, and many small objects.

A server on this machine answers like S3, after 30 ms, with at most 90 MiB/s per stream: about the
rate of one connection to a real store in the same region. One object is read from its beginning to
its end with few and many blocks of read-ahead. Small objects are downloaded as `score` does, beside
the same requests one after another.

Usage: python -m benchmarks.object_store [--quick]
"""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import click

from benchmarks.figures import Figure, describe_host, publish
from fastscore.logs import objects

FIRST_BYTE_SECONDS = 0.03
BYTES_A_SECOND = 90 << 20
LARGE, SMALL = 800 << 20, 2_000
BLOCKS = (2, 8, 16)
N_SMALL = 2_100
_PIECE = bytes(256 << 10)
_RANGE = re.compile(rb"range: bytes=(\d+)-(\d+)", re.IGNORECASE)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of a connection: keys that begin with ``large`` are large."""
    now = asyncio.get_running_loop().time
    try:
        while True:
            request = await reader.readuntil(b"\r\n\r\n")
            size = LARGE if b"/large" in request.split(b"\r\n")[0] else SMALL
            span = _RANGE.search(request)
            start, stop = (int(span[1]), int(span[2]) + 1) if span else (0, size)
            await asyncio.sleep(FIRST_BYTE_SECONDS)
            writer.write(
                b"HTTP/1.1 206 Partial Content\r\nETag: x\r\nContent-Length: %d\r\n"
                b"Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
                b"Content-Range: bytes %d-%d/%d\r\n\r\n" % (stop - start, start, stop - 1, size)
            )
            begun, sent = now(), 0
            while sent < stop - start:
                piece = _PIECE[: stop - start - sent]
                writer.write(piece)
                await writer.drain()
                sent += len(piece)
                await asyncio.sleep(max(0.0, begun + sent / BYTES_A_SECOND - now()))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def _served() -> Iterator[None]:
    """Serve in another process inside the block."""
    command = [sys.executable, "-m", "benchmarks.object_store", "--serve"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        tempfile.TemporaryDirectory() as cache,
    ):
        assert server.stdout is not None
        variables = {
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "word",
            "AWS_REGION": "region",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.stdout.readline().strip()}",
            "AWS_ALLOW_HTTP": "true",
            "FASTSCORE_CACHE": cache,
        }
        try:
            with mock.patch.dict(os.environ, variables):
                yield
        finally:
            server.terminate()


def _large(n_bytes: int) -> Iterator[Figure]:
    for blocks in BLOCKS:
        with (
            mock.patch.object(objects, "BLOCKS_AHEAD", blocks),
            objects.ObjectFile(objects.Object(f"s3://bucket/large-{blocks}", LARGE, "x")) as file,
        ):
            started, begun, left = time.perf_counter(), time.process_time(), n_bytes
            while left > 0:
                left -= len(file.read(4 << 20))
            seconds, cpu = time.perf_counter() - started, time.process_time() - begun
        what = f"an object, {blocks} blocks on their way"
        yield Figure(what=what, rows=n_bytes, unit="MB/s", ours=n_bytes / seconds / 1e6)
        yield Figure(what=what, rows=n_bytes, unit="CPU s/GB", ours=cpu / n_bytes * 1e9)


def _small(count: int) -> Figure:
    several = [objects.Object(f"s3://bucket/{number}", SMALL, "x") for number in range(count)]
    started = time.perf_counter()
    objects.fetch(several)
    seconds = time.perf_counter() - started
    started = time.perf_counter()
    for each in several[: count // 20]:
        objects.ObjectFile(each).read()
    alone = (time.perf_counter() - started) * count / (count // 20)
    return Figure(
        what="small objects",
        rows=count,
        unit="s",
        ours=seconds,
        peer="one after another",
        theirs=alone,
        ratio=alone / seconds,
    )


@click.command()
@click.option("--quick", is_flag=True, help="A tenth of all bytes and objects.")
@click.option("--serve", is_flag=True, hidden=True)
def main(quick: bool, serve: bool) -> None:
    """Measure reading from a slow store."""
    if serve:
        asyncio.run(_serve())
        return
    click.echo(describe_host())
    part = 10 if quick else 1
    with _served():
        figures = [*_large(LARGE // part), _small(N_SMALL // part)]
    for each in figures:
        click.echo(f"{each.what}: {each.ours:,.2f} {each.unit}")
    publish(figures)


if __name__ == "__main__":
    main()
