"""The word tables: the built-in file, a user's file, and their faults."""

import re
from pathlib import Path

import pytest

from fastscore.errors import UsageError
from fastscore.suites.memory_finance import MemoryFinance, replies
from fastscore.suites.memory_finance.replies import load_lexicon
from tests.suites.memory_finance.tracing import dialog, score, turn

BUILT_IN = Path(replies.__file__).parent / "lexicon.toml"


def changed(folder: Path, old: str, new: str) -> str:
    text = BUILT_IN.read_text(encoding="utf-8")
    assert old in text
    path = folder / "words.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return str(path)


def test_a_lexicon_of_ones_own_replaces_the_built_in_one(tmp_path: Path) -> None:
    path = changed(tmp_path, 'keywords = ["波动风险", "波动", "回撤"]', 'keywords = ["起伏"]')
    options = MemoryFinance(lexicon=path)
    turns = score(dialog(turn("波动"), turn("起伏")), options=options)["turns"]
    assert turns["risk_pred_tags"].to_list() == [[], ["volatility_risk"]]


def test_a_lexicon_without_risk_tags_requires_what_labels_name_and_finds_nothing(
    tmp_path: Path,
) -> None:
    head, *tables = re.split(r"(?m)^(?=\[)", BUILT_IN.read_text(encoding="utf-8"))
    others = [table for table in tables if not table.startswith("[[risk_tags]]")]
    path = tmp_path / "words.toml"
    path.write_text("".join([head, "risk_tags = []\n\n", *others]), encoding="utf-8")
    log = dialog(turn("波动", risks=["Volatility_Risk", " "]))
    row = score(log, options=MemoryFinance(lexicon=str(path)))["turns"].row(0, named=True)
    found = {name: row[name] for name in ("risk_required_tags", "risk_pred_tags", "risk_tag_hits")}
    assert found == {
        "risk_required_tags": ["volatility_risk"],
        "risk_pred_tags": [],
        "risk_tag_hits": 0,
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("guards = [", "gards = [", "unknown key contradictions.gards"),
        ('guards = ["不建议", ', 'guards = ["", ', "contradictions.guards is ''"),
        ('drawdown_mention = "回撤"', "drawdown_mention = 5", "drawdown_mention is 5"),
        ('severe_severities = ["high"]', "", "compliance.severe_severities is missing"),
        ("any_tag = true", "any_tag = 1", "any_tag is 1"),
        ('name = "credit_risk"', 'name = "volatility_risk"', "a name of its own"),
        ('version = "1"', "version = 1", "version is 1"),
        ('version = "1"', "version = ", "not TOML"),
    ],
)
def test_a_faulty_lexicon_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = changed(tmp_path, old, new)
    with pytest.raises(UsageError, match=r"\S") as refused:
        load_lexicon(path)
    assert message in f"{refused.value.message} {refused.value.hint}"
    assert path in str(refused.value)
