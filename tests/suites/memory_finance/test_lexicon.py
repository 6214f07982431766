"""Word tables of one's own."""

import re
from pathlib import Path

from fastscore.suites.memory_finance import MemoryFinance
from tests.suites.memory_finance.tracing import dialog, score, turn
from tests.suites.reading import changed_lexicon, lexicon_of


def test_a_lexicon_of_ones_own_replaces_the_built_in_one(tmp_path: Path) -> None:
    path = changed_lexicon(
        "memory_finance", tmp_path, 'keywords = ["波动风险", "波动", "回撤"]', 'keywords = ["起伏"]'
    )
    options = MemoryFinance(lexicon=path)
    turns = score(dialog(turn("波动"), turn("起伏")), options=options)["turns"]
    assert turns["risk_pred_tags"].to_list() == [[], ["volatility_risk"]]


def test_a_lexicon_without_risk_tags_requires_what_labels_name_and_finds_nothing(
    tmp_path: Path,
) -> None:
    head, *tables = re.split(
        r"(?m)^(?=\[)", lexicon_of("memory_finance").read_text(encoding="utf-8")
    )
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
