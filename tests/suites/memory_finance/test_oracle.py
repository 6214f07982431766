"""Any traces, against the plain scorer that was written from the definitions."""

import json

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fastscore.suites.memory_finance import SUITE, MemoryFinance
from fastscore.suites.memory_finance.summarise import published_files
from fastscore.vectors.view import VectorView
from tests.conftest import often
from tests.oracles import memory_finance as plain
from tests.suites.memory_finance.tracing import dialog, read, turn

WORDS = plain.read_words()
PARTS = (
    "波动", "回撤", "不确定性", "仅供参考", "杠杆", "不建议", "短线", "12%", "9 %", "依据", "1.",
    "保守", "稳健", "6月", "长期", "保留现金", "国债", "A", "\n", '"', "\\", "\x01", "é", "😀",
)  # fmt: skip
CONSTRAINTS = ("最大回撤<10%", "最大回撤<x", "不使用杠杆", "不做短线交易", "A", "国债\nA", "")
KEYS = (
    "profile_gt.risk_level_gt", "profile_gt.horizon_gt", "profile_gt.liquidity_need_gt",
    "profile_gt.risk_level_gt\n", " profile_gt.risk_level_gt", "profile_gt.risk_level",
    *(f"profile_gt.constraints_gt[{at}]" for at in ("0", "01", "-1", "１", "２", "9" * 20)),
    "profile_gt.constraints_gt[1]\n", "profile_gt.constraints_gt[2]\n",
    "profile_gt.preferences_gt[0]", "profile_gt.preferences_gt[1]",
    *(f"history_turn_index:{at}" for at in (0, 1, 2, "2\n", 3, 4, 5, 7, 8, 9)), "x", "", None,
)  # fmt: skip
LABELS = (" 波动风险", "不确定性", "无明确风险提示", "POLICY", "Credit_Risk", "", None)
ITEMS = ("信息依据", "边界声明", "可执行步骤", "A", "国债\n", "")

texts = st.lists(st.sampled_from(PARTS), max_size=5).map("".join)
maybe_texts = st.none() | texts


def lists(values, size=3):
    return st.none() | st.lists(st.sampled_from(values), max_size=size)


def objects(**fields):
    """Make objects in which two fields at most are absent."""
    absent = st.sets(st.sampled_from(sorted(fields)), max_size=2)
    return st.builds(
        lambda whole, left_out: {key: whole[key] for key in whole if key not in left_out},
        st.fixed_dictionaries(fields),
        absent,
    )


turns = objects(
    turn_pair_id=st.sampled_from((None, 0, 3, 2.5, "8", True)),
    turn_status=st.sampled_from(("ok", "ok", "ok", "error", None, 1)),
    user_text=maybe_texts,
    role=st.sampled_from(("user", "assistant", None)),
    text=maybe_texts,
    pred_assistant_text=maybe_texts | st.sampled_from((5, 0, False, 1.5, ["波动"], {})),
    gt_turn_tags=st.sampled_from((None, [], ""))
    | objects(
        memory_required_keys_gt=lists(KEYS),
        risk_disclosure_required_gt=lists(LABELS),
        explainability_rubric_gt=lists(ITEMS, 6),
        compliance_label_gt=st.sampled_from((None, "Compliant", "minor_violation ", "x")),
    ),
    recall=st.none()
    | objects(
        short_term_context=maybe_texts,
        profile_context=maybe_texts,
        items=st.none() | st.lists(objects(content=maybe_texts), max_size=3),
    ),
    compliance=st.none()
    | objects(
        violations=st.none()
        | st.lists(
            objects(
                type=st.sampled_from((None, "guarantee", "x", 1)),
                severity=st.sampled_from((None, "High", "low", True)),
            ),
            max_size=2,
        )
    ),
    profile_snapshot=st.sampled_from((None, [], "x", {}))
    | objects(
        risk_level=st.sampled_from((None, "low", " 稳健 ", "unknown")),
        investment_horizon=st.sampled_from((None, "short", "2年以上")),
        liquidity_need=st.sampled_from((None, "中")),
        preferred_topics=lists(("国债", "A", "")),
        forbidden_assets=lists(CONSTRAINTS),
    ),
)
spoken = st.none() | objects(role=st.sampled_from(("user", "assistant", "x")), text=maybe_texts)
dialogs = objects(
    dialog_id=st.sampled_from(("a", "b", "c")),
    run_id=st.sampled_from(("r", "")),
    dialog_status=st.sampled_from(("ok", "failed", "skipped", None)),
    valid_dialog=st.sampled_from((True, True, True, True, False, None, 1, "")),
    turns=st.one_of(*[st.lists(turns, min_size=1, max_size=3)] * 4, st.sampled_from((None, []))),
    profile_gt=st.sampled_from((None, {}))
    | objects(
        risk_level_gt=st.sampled_from((None, "保守", "稳健", "", 3)),
        horizon_gt=st.sampled_from((None, "<=6月", " long")),
        liquidity_need_gt=st.sampled_from((None, "高", "x")),
        constraints_gt=lists(CONSTRAINTS),
        preferences_gt=lists(("国债", "A", "A", "\n")),
    ),
    blueprint=st.none() | objects(forbidden_list=lists(("A", "国债", "", None, "没有", 0), 4)),
    raw_turns=st.none() | st.lists(spoken, max_size=5),
)
traces = st.lists(dialogs, min_size=1, max_size=4)


def expected_files(traced, ignore_memory_keys):
    rows = plain.score_turns(traced, WORDS, ignore_memory_keys)
    return plain.summarise(traced, rows, WORDS, "set"), rows


ANSWERED = ({"role": "user", "text": "A"}, {"role": "assistant", "text": "第一答"})
EVERY_KEY = dialog(
    turn(
        "稳健，波动，依据",
        keys=list(KEYS),
        recall={"items": [{"content": each} for each in ("A", "B\nA")]},
        risks=["波动", "无明确风险提示"],
        rubric=["信息依据", "没有"],
    ),
    turn(keys=["history_turn_index:1"], recall={"profile_context": "稳健"}, risks=["波动"]),
    profile_gt={
        "risk_level_gt": "稳健",
        "horizon_gt": None,
        "liquidity_need_gt": "",
        "constraints_gt": ["不使用杠杆", "最大回撤<10%"],
        "preferences_gt": ["国债"],
    },
    raw_turns=[
        {"role": "system", "text": "开始"},
        ANSWERED[0],
        *({"role": "user", "text": "没有答复的一问"}, ANSWERED[1], None, *ANSWERED),
        {"role": "user", "text": "最后一问"},
    ],
)


@example(traced=[EVERY_KEY], ignore_memory_keys=False)
@settings(max_examples=often(20, 1_000), suppress_health_check=list(HealthCheck))
@given(traced=traces, ignore_memory_keys=st.booleans())
def test_the_published_files_are_those_of_the_plain_scorer(traced, ignore_memory_keys):
    options = MemoryFinance(profile="published", ignore_memory_keys=ignore_memory_keys)
    events = read(*traced, options=options)
    assert events.rejects.is_empty(), events.rejects.to_dicts()
    tables = SUITE.score(events, VectorView.empty(), options)
    for table in SUITE.tables:
        assert dict(tables[table.name].schema) == table.schema
    files = published_files(tables, dataset_path="set")
    summary, rows = expected_files(traced, ignore_memory_keys)
    lines = files["turn_eval.jsonl"].decode().split("\n")[:-1]
    assert lines == [json.dumps(row, ensure_ascii=False) for row in rows]
    assert files["metrics_summary.json"].decode() == json.dumps(
        summary, ensure_ascii=False, indent=2
    )
