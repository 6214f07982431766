"""The suite memory_finance: synthetic traces of any size, and the comparison with a plain scorer.

``logs``: the text is real (KdConv-shaped: one JSON object per line with a list ``turns`` of
utterances). Labels, profiles, recalled contexts and violations are synthetic, drawn at fixed rates
so that every rule of the suite applies somewhere. A reply is a few utterances, mixed with
disclosures, advice, percentages and forbidden phrases.

``compare``: both scorers read the same file from disk and write results: ours a run directory
(Parquet tables and summary), the plain one the public evaluation's files (turn rows as JSON Lines,
summary). They alternate, in this process, and as whole processes with start-up. The two results are
compared in full before any output.

Usage: python -m benchmarks.memory_finance compare [--turns 100000] [--repeats 3]
       python -m benchmarks.memory_finance logs --data FILE --output traces.jsonl --turns 100000
"""

import gzip
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import orjson
import polars as pl

import fastscore
from benchmarks.figures import Figure, publish
from fastscore.settings.options import available_processors
from fastscore.suites.memory_finance.summarise import legacy_summary
from tests.oracles import memory_finance as plain

TURNS_PER_DIALOGUE = 12
UTTERANCES_PER_REPLY = 8
REMEMBERED_TURNS = 2
INVALID_RATE = 0.02
ERROR_RATE = 0.04

RISK_LEVELS = ("保守", "稳健", "进取")
HORIZONS = ("<=6月", "6-24月", "2年以上")
LIQUIDITIES = ("高", "中", "低")
CONSTRAINTS = (
    "最大回撤<10%",
    "最大回撤<15%",
    "不使用杠杆",
    "不做短线交易",
    "不投分级基金",
    "不投海外市场",
    "不参与题材炒作",
    "单一资产仓位不超过30%",
    "保留20%现金应急",
)
PREFERENCES = ("大盘蓝筹股", "宽基指数基金", "高等级信用债", "红利基金", "短债基金", "国债")
RISK_LABELS = (
    "波动风险",
    "市场不确定性",
    "适当性匹配",
    "不保证收益",
    "不构成个股买卖建议",
    "仅供参考",
    "过往业绩不预示未来",
    "无明确风险提示",
    "政策风险",
)
ELEMENTS = ("信息依据", "风险收益平衡", "与画像匹配", "方案比较维度", "可执行步骤", "边界声明")
FORBIDDEN = ("保本保收益", "明确买入指令", "确定性预测涨跌", "代客操作", "无明确风险提示")
ADVICE = (
    "根据财报数据，该指标有所回升。",
    "以上内容仅供参考，不构成投资建议。",
    "市场存在不确定性，波动风险不可忽视。",
    "历史最大回撤曾达到18%，请注意。",
    "过往业绩不预示未来，不保证收益。",
    "考虑到您的风险承受能力，建议先比较各方案。",
    "不建议使用杠杆，也不要追热点。",
    "可以适当配置美股与港股。",
    "稳健型投资者适合长期持有宽基指数基金。",
    "1. 先留出现金 2. 然后分批买入。",
    "本产品保本保收益。",
)
SCENARIOS = ("投资教育", "行情解读", "资产配置")
DIFFICULTIES = ("easy", "medium", "hard")


def read_dialogues(path: Path) -> list[list[str]]:
    """Read the utterances of each dialogue of a KdConv-shaped file."""
    content = path.read_bytes()
    lines = gzip.decompress(content) if path.suffix == ".gz" else content
    return [orjson.loads(line)["turns"] for line in lines.splitlines()]


def make_traces(
    dialogues: Sequence[Sequence[str]], n_turns: int, seed: int = 0
) -> Iterator[dict[str, Any]]:
    """Make traced dialogues of `TURNS_PER_DIALOGUE` turns until there are `n_turns` turns.

    Utterances are taken from all dialogues in order, cyclically.
    """
    random_ = random.Random(seed)
    utterances = [utterance for dialogue in dialogues for utterance in dialogue]
    index = 0
    while n_turns > 0:
        size = min(TURNS_PER_DIALOGUE, n_turns)
        start = random_.randrange(len(utterances))
        yield _make_dialogue(random_, utterances, start, size, index)
        n_turns -= size
        index += 1


def _make_dialogue(
    random_: random.Random, utterances: Sequence[str], start: int, size: int, index: int
) -> dict[str, Any]:
    profile = {
        "risk_level_gt": random_.choice(RISK_LEVELS),
        "horizon_gt": random_.choice(HORIZONS),
        "liquidity_need_gt": random_.choice(LIQUIDITIES),
        "constraints_gt": random_.sample(CONSTRAINTS, 4),
        "preferences_gt": random_.sample(PREFERENCES, 3),
    }
    questions, replies, turns = [], [], []
    for turn in range(size):
        at = start + turn * (UTTERANCES_PER_REPLY + 1)
        question = utterances[at % len(utterances)]
        parts = [utterances[(at + 1 + i) % len(utterances)] for i in range(UTTERANCES_PER_REPLY)]
        parts += random_.sample(ADVICE, random_.randrange(3))
        random_.shuffle(parts)
        turns.append(
            _make_turn(random_, turn + 1, question, "".join(parts), profile, questions, replies)
        )
        questions.append(question)
        replies.append("".join(parts))
    valid = random_.random() >= INVALID_RATE
    raw_turns = [
        {"role": role, "text": text, "turn_tags": None}
        for pair in zip(questions, replies, strict=True)
        for role, text in zip(("user", "assistant"), pair, strict=True)
    ]
    return {
        "trace_version": "v1",
        "run_id": "synthetic",
        "dialog_id": f"dialogue-{index:06d}",
        "dataset_index": index + 1,
        "scenario_type": random_.choice(SCENARIOS),
        "difficulty": random_.choice(DIFFICULTIES),
        "dialog_status": "ok" if valid else "skipped",
        "valid_dialog": valid,
        "turns": turns if valid else [],
        "profile_gt": profile,
        "blueprint": {"forbidden_list": list(FORBIDDEN)},
        "raw_turns": raw_turns,
    }


def _make_turn(
    random_: random.Random,
    number: int,
    question: str,
    reply: str,
    profile: dict[str, Any],
    questions: Sequence[str],
    replies: Sequence[str],
) -> dict[str, Any]:
    keys = ["profile_gt.risk_level_gt", "profile_gt.horizon_gt", "profile_gt.liquidity_need_gt"]
    keys += [f"profile_gt.constraints_gt[{position}]" for position in range(4)]
    keys += [f"profile_gt.preferences_gt[{position}]" for position in range(4)]
    keys += [f"history_turn_index:{turn}" for turn in range(1, number)]
    violated = random_.random() < 0.1
    recalled = random_.sample(range(len(questions)), min(3, len(questions)))
    recent = list(zip(questions, replies, strict=True))[-REMEMBERED_TURNS:]
    return {
        "turn_pair_id": number,
        "user_text": question,
        "gt_turn_tags": {
            "memory_required_keys_gt": random_.sample(keys, random_.randrange(4)),
            "risk_disclosure_required_gt": random_.sample(RISK_LABELS, random_.randrange(4)),
            "compliance_label_gt": random_.choice(("compliant", "compliant", "minor_violation")),
            "explainability_rubric_gt": random_.sample(ELEMENTS, random_.randrange(5)),
        },
        "pred_assistant_text": reply,
        "turn_status": "error" if random_.random() < ERROR_RATE else "ok",
        "recall": {
            "query": question,
            "short_term_context": "\n".join(f"user: {q}\nassistant: {r}" for q, r in recent),
            "profile_context": f"风险偏好：{profile['risk_level_gt']}" if number % 2 else "",
            "items": [
                {"rank": rank, "content": questions[turn], "score": 1 / (rank + 1)}
                for rank, turn in enumerate(recalled)
            ],
        },
        "compliance": {
            "is_compliant": not violated,
            "violations": [{"type": "trading_advice", "severity": "low"}] if violated else [],
        },
        "profile_snapshot": {
            "risk_level": random_.choice((*RISK_LEVELS, "unknown")),
            "investment_horizon": "unknown",
            "liquidity_need": "unknown",
            "preferred_topics": random_.sample(PREFERENCES, random_.randrange(3)),
            "forbidden_assets": [],
        },
    }


def write_traces(
    path: Path, dialogues: Sequence[Sequence[str]], n_turns: int, seed: int = 0
) -> int:
    """Write traces as JSON Lines; return the bytes written."""
    with path.open("wb") as output:
        for trace in make_traces(dialogues, n_turns, seed):
            output.write(orjson.dumps(trace))
            output.write(b"\n")
        return output.tell()


@click.command("logs")
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--output", type=click.Path(path_type=Path), required=True)
@click.option("--turns", type=click.IntRange(min=1), default=100_000, show_default=True)
@click.option("--seed", default=0, show_default=True)
def logs(data: Path, output: Path, turns: int, seed: int) -> None:
    """Write synthetic traces of a number of turns."""
    n_bytes = write_traces(output, read_dialogues(data), turns, seed)
    click.echo(f"{output}: {turns} turns, {n_bytes / 1e6:.1f} MB")


SAMPLE = Path(__file__).parent / "data" / "kdconv_sample.jsonl.gz"
QUICK_TURNS = 5_000
AIMS = {("in one process", "wall"): 20.0}


@dataclass(frozen=True, slots=True)
class Contender:
    """One side's way to score a trace into a folder, and its processor and wall seconds."""

    score: Callable[[Path, Path], Any]
    in_process: bool
    times: list[tuple[float, float]] = field(default_factory=list)

    def run(self, traces: Path, output: Path) -> None:
        """Flush the disk, score into an empty folder, and record the time."""
        shutil.rmtree(output, ignore_errors=True)
        os.sync()
        processor, wall = self._processor_seconds(), time.perf_counter()
        self.score(traces, output)
        self.times.append((self._processor_seconds() - processor, time.perf_counter() - wall))

    def medians(self) -> tuple[float, float]:
        """Return the medians of processor and wall seconds."""
        processor, wall = zip(*self.times, strict=True)
        return statistics.median(processor), statistics.median(wall)

    def _processor_seconds(self) -> float:
        if self.in_process:
            return time.process_time()
        times = os.times()
        return times.children_user + times.children_system


def ours_inside(traces: Path, output: Path) -> fastscore.Run:
    """Score a trace with the suite, in this process."""
    return fastscore.score(traces, "memory_finance", output=output, embedder=None)


def ours_as_process(traces: Path, output: Path) -> None:
    """Score a trace with the command line."""
    command = ["fastscore", "score", "memory_finance", str(traces), "-o", str(output), "-q"]
    subprocess.run([sys.executable, "-m", *command], check=True)


def plain_as_process(traces: Path, output: Path) -> None:
    """Score a trace with the plain scorer, in a separate process."""
    command = ["tests.oracles.memory_finance", str(traces), str(output)]
    subprocess.run([sys.executable, "-m", *command], check=True)


def check_equal(run: fastscore.Run, summary: Any) -> None:
    """Compare the public evaluation's summary from both sides."""
    turns, dialogues = (run.scan(name).collect() for name in ("turns", "dialogues"))
    ours = legacy_summary(turns, dialogues, summary["dataset_path"])
    if json.dumps(ours) != json.dumps(summary):
        raise click.ClickException("the two scorers disagree")


def show(title: str, rows: int, ours: Contender, peer: Contender) -> None:
    """Print medians and ratios of a pair."""
    fast, slow = ours.medians(), peer.medians()
    publish(
        Figure(
            what=f"{title}, {clock}",
            rows=rows,
            unit="s",
            ours=mine,
            peer="plain scorer",
            theirs=theirs,
            ratio=theirs / mine,
            aim=AIMS.get((title, clock)),
        )
        for clock, mine, theirs in zip(("CPU", "wall"), fast, slow, strict=True)
    )
    click.echo(
        f"{title:<14} ours {fast[0]:6.2f} s CPU {fast[1]:6.2f} s wall   "
        f"plain {slow[0]:6.2f} s CPU {slow[1]:6.2f} s wall   "
        f"{slow[0] / fast[0]:5.1f}x CPU {slow[1] / fast[1]:5.1f}x wall"
    )


@click.command("compare")
@click.option("--data", type=click.Path(exists=True, path_type=Path), default=SAMPLE)
@click.option("--turns", type=click.IntRange(min=1), default=100_000, show_default=True)
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--quick", is_flag=True, help=f"{QUICK_TURNS:,} turns, once.")
def compare(data: Path, turns: int, repeats: int, seed: int, quick: bool) -> None:
    """Compare the suite with a plain scorer."""
    if quick:
        turns, repeats = QUICK_TURNS, 1
    inside = Contender(ours_inside, True), Contender(plain.evaluate, True)
    alone = Contender(ours_as_process, False), Contender(plain_as_process, False)
    with tempfile.TemporaryDirectory() as folder:
        traces, output = Path(folder) / "dialog_trace.jsonl", Path(folder) / "output"
        n_bytes = write_traces(traces, read_dialogues(data), turns, seed)
        # compile kernels
        check_equal(ours_inside(traces, output), plain.evaluate(traces, Path(folder) / "plain"))
        for _ in range(repeats):
            for contender in (*inside, *alone):
                contender.run(traces, output)
    click.echo(
        f"fastscore {fastscore.__version__}, Python {platform.python_version()}, polars "
        f"{pl.__version__}, {platform.machine()}, {available_processors()} processors, load "
        f"{os.getloadavg()[0]:.1f}; {turns} synthetic turns, {n_bytes / 1e6:.0f} MB, seed {seed}, "
        f"medians of {repeats}; results equal"
    )
    show("in one process", turns, *inside)
    show("as processes", turns, *alone)


main = click.Group("memory_finance", commands=[logs, compare])


if __name__ == "__main__":
    main()
