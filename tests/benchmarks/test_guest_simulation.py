"""The generated logs of guests are the same each time, and both scorers agree on them."""

import json
from pathlib import Path

from benchmarks.guest_simulation import check_equal, ours_inside, plain_inside
from benchmarks.guest_simulation_logs import (
    make_conversations,
    read_orders,
    write_csv,
    write_shards,
)

COUNT = 60


def test_the_sample_holds_orders_of_one_or_two_items() -> None:
    orders = read_orders()
    assert len(orders) > 100
    items = [item for turns in orders for turn in turns for item in turn.added]
    assert {"Mocha", "Latte"} <= {item.name for item in items}
    assert any(item.modifiers for item in items)


def test_the_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_shards(tmp_path / name, read_orders(), COUNT)
    first, second = ([path.read_bytes() for path in sorted((tmp_path / name).iterdir())]
                     for name in ("a", "b"))  # fmt: skip
    assert first == second
    assert len(first) == 1


def test_rows_are_as_the_public_logs_have_them() -> None:
    made = list(make_conversations(read_orders(), COUNT))
    assert [each.level for each in made[:6]] == [1, 2, 3, 4, 5, 1]
    assert (
        len({each.id for each in made[:5]}) == len({each.expected.target for each in made[:5]}) == 1
    )
    for conversation in made:
        assert conversation.rows[0]["role"] == "assistant"
        assert conversation.rows[-2]["content"] == "exit"
        case = json.loads(conversation.rows[-1]["content"])
        assert case.keys() == {"guest_persona", "target_order"}
    cells = [row["tool_calls"] for each in made for row in each.rows if row.get("tool_calls")]
    assert any("name=\\'" in cell for cell in cells)
    assert any("name='" in cell for cell in cells)


def test_csv_has_a_file_a_conversation(tmp_path: Path) -> None:
    write_csv(tmp_path / "logs", read_orders(), 10)
    files = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.csv"))
    assert len(files) == 10
    assert {name.split("/")[1] for name in files} == {f"exp{level}" for level in range(1, 6)}


def test_both_scorers_agree(tmp_path: Path) -> None:
    write_shards(tmp_path / "logs", read_orders(), COUNT)
    ours_inside(tmp_path / "logs", tmp_path / "run")
    plain_inside(tmp_path / "logs", tmp_path / "plain")
    check_equal(tmp_path / "run", tmp_path / "plain")
    means = json.loads((tmp_path / "plain" / "summary.json").read_text())
    assert set(means) == {"all", "1", "2", "3", "4", "5"}
