"""No ten lines are in the bodies of two functions."""

from pathlib import Path
from textwrap import dedent

from tests.repetition import repeated

ROOT = Path(__file__).parents[1]
FOLDERS = ("fastscore", "kernels", "models", "benchmarks", "examples", "docs")


def test_no_ten_lines_stand_in_two_functions() -> None:
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(files) > 300
    assert [f"{a} ~ {b}" for a, b in repeated(files, ROOT)] == []


def test_repetition_is_found_whatever_names_and_literals_are(tmp_path: Path) -> None:
    work = """
        def {name}({given}):
            \"\"\"{name}.\"\"\"
            found = []
            for each in {given}:
                # a comment
                if each > {number}:
                    found.append(each * {number})
                elif each:
                    found.insert({number}, each)
            while len(found) > {number}:
                last = found.pop()
                print(last, "{name}")
            return found
        """
    for name, number in (("first", 1), ("second", 2)):
        source = dedent(work.format(name=name, given=f"{name}_values", number=number))
        (tmp_path / f"{name}.py").write_text(source)
    (tmp_path / "third.py").write_text(
        dedent(work.format(name="third", given="values", number=3)).replace("insert", "insert\\\n")
    )
    files = sorted(tmp_path.glob("*.py"))
    found = repeated(files, tmp_path, least=10)
    assert [(str(a), str(b)) for a, b in found] == [("first.py:4-14", "second.py:4-14")]
    assert repeated(files, tmp_path, least=11) == []


def test_declarations_may_have_one_shape(tmp_path: Path) -> None:
    table = "A = (\n" + "".join(f'    ("name{n}", {n}),\n' for n in range(12)) + ")\n"
    signature = "def f(\n" + "".join(f"    a{n}: int,\n" for n in range(12)) + ") -> int:\n"
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text(f"{table}\n\n{signature}    return 1\n")
    assert repeated(sorted(tmp_path.glob("*.py")), tmp_path) == []
