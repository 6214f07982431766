"""Pages that `make docs` generates from declarations: commands, output tables, Python.

MkDocs calls the functions that begin with ``on_``. Pages keep the paths that they have in the
repository, so that a link is good in both places or in neither.
"""

import functools
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click
from latex2mathml.converter import convert as to_mathml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import fastscore
from fastscore import sets, text
from fastscore.cli import cli
from fastscore.cli.parameters import options_by_heading
from fastscore.suites.base import Suite
from fastscore.suites.registry import load_suite, suite_names

ROOT = Path(__file__).parent.parent
BESIDE_DOCS = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "benchmarks/*.md",
    "fastscore/**/*.toml",
)
"""What pages link to outside of docs/."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the generated pages after the written ones."""
    sections: dict[str, list[str]] = {}
    for path in _generated():
        sections.setdefault(path.split("/")[1], []).append(path)
    titles = {
        "commands": "Commands",
        "tables": "Output tables",
        "python": "Python interface",
    }
    assert config.nav is not None
    (reference,) = (entry["Reference"] for entry in config.nav if "Reference" in entry)
    reference += [{titles[name]: pages} for name, pages in sections.items()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Lay the pages out as the repository does, and add the generated ones."""
    docs = Path(config.docs_dir)
    inside = [file for file in files if docs in Path(str(file.abs_src_path)).parents]
    for file in inside:
        files.remove(file)
    written = {Path(str(file.abs_src_path)) for file in inside}
    written |= {path for pattern in BESIDE_DOCS for path in ROOT.glob(pattern)}
    for path in sorted(written):
        if path.suffix != ".py":
            name = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    for name, content in _generated().items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Write formulas as MathML, and give each metric its id as an anchor too."""
    if page.file.src_uri.startswith("docs/suites/"):
        anchored = r'<a id="\1"></a>\n\n\g<0>'
        markdown = re.sub(r"^### (\w+): .*$", anchored, markdown, flags=re.MULTILINE)
        markdown = re.sub(r"\$([^$\n]+)\$", lambda found: _formula(found[1]), markdown)
    return re.sub(
        r"^```math\n(.*?)^```$",
        lambda found: f'<div class="formula">{_formula(found[1], display="block")}</div>',
        markdown,
        flags=re.MULTILINE | re.DOTALL,
    )


def _formula(latex: str, display: str = "inline") -> str:
    """Return a formula as MathML, with the set minus that common fonts have."""
    return to_mathml(latex, display=display).replace("&#x029F5;", "&#x02216;")


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> None:
    """Refuse a page that fetches anything from elsewhere, or cuts a command at the margin."""
    found = re.search(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="(https?:[^"]*)', output)
    if found:
        raise PluginError(f"{page.file.src_uri} fetches {found[1]}")
    if '<div class="highlight">' in output:  # site.css wraps commands by the language of a block
        raise PluginError(f"{page.file.src_uri} has a block of code without its language")


@functools.cache
def _generated() -> dict[str, str]:
    pages = {f"reference/tables/{name}.md": tables_page(load_suite(name)) for name in suite_names()}
    for words, command in _pages_of_commands():
        name = "_".join(words.split()[1:]) or "index"
        pages[f"reference/commands/{name}.md"] = "\n".join(command_section(command, words, 1))
    public = [f"fastscore.{name}" for name in fastscore.__all__ if not name.startswith("__")]
    public = [name for name in public if name not in ("fastscore.sets", "fastscore.text")]
    pages["reference/python/fastscore.md"] = _python_page("From Python", public)
    pages["reference/python/suites.md"] = (
        "# What a suite declares\n\n"
        "::: fastscore.suites.declarations\n    options: {show_root_heading: false}\n\n"
        "::: fastscore.suites.base\n    options: {show_root_heading: false}\n"
    )
    columns = [f"{each.__name__}.{name}" for each in (text, sets) for name in each.__all__]
    pages["reference/python/kernels.md"] = _python_page("Columns of texts and lists", columns)
    return pages


def tables_page(suite: Suite) -> str:
    """Return the tables of a suite with the type and description of each column."""
    lines = [f"# Output tables of {suite.name}", ""]
    lines += ["Each table is a folder of Parquet files in the run directory.", ""]
    for table in suite.tables:
        lines += [f"## {table.name} {{ #{table.name} }}", "", f"A row is {table.grain}.", ""]
        lines += ["| Column | Type | Null | Description |", "|---|---|---|---|"]
        for column in table.columns:
            null = "possible" if column.nullable else "never"
            kind = str(column.dtype).partition("(")[0]
            cells = (f"`{column.name}`", f"`{kind}`", null, _plain(column.description))
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def command_section(command: click.Command, words: str, level: int) -> Iterator[str]:
    """Yield the ``--help`` of a command, and of its subcommands that have no page."""
    context = click.Context(command, info_name=words, help_option_names=["-h", "--help"])
    yield f"{'#' * level} {words}\n"
    yield f"```text\n{words} {' '.join(command.collect_usage_pieces(context))}\n```\n"
    yield from _paragraphs(command.help or "")
    for heading, options in options_by_heading(command, context).items():
        yield f"{'#' * (level + 1)} {heading} {{ #{_anchor(words, heading)} }}\n"
        for option in options:
            flags, said = option.get_help_record(context) or ("", "")
            yield f"`{flags}`\n:   {_plain(said) or '&nbsp;'}\n"
    yield from _epilog(command.epilog or "")
    yield from _table_of_subcommands(command, words, level)
    for name, inner in _inner(command):
        if f"{words} {name}" not in dict(_pages_of_commands()):
            yield from command_section(inner, f"{words} {name}", level + 1)


def _table_of_subcommands(command: click.Command, words: str, level: int) -> Iterator[str]:
    """Yield a table of the subcommands, each with a link to its page or section."""
    inner = dict(_inner(command))
    if not inner:
        return
    pages = dict(_pages_of_commands())
    yield f"{'#' * (level + 1)} Subcommands {{ #{_anchor(words, 'subcommands')} }}\n"
    lines = ["| Command | Purpose |", "|---|---|"]
    for name, each in inner.items():
        called = f"{words} {name}"
        is_page = called in pages
        link = f"{'_'.join(called.split()[1:])}.md" if is_page else f"#{'-'.join(called.split())}"
        lines.append(f"| [`{called}`]({link}) | {_plain(each.get_short_help_str(200))} |")
    yield "\n".join(lines) + "\n"


def _pages_of_commands() -> Iterator[tuple[str, click.Command]]:
    """Yield the commands that have a page: all of them, each verb, each suite's ``score``."""
    yield "fastscore", cli
    for name, verb in _inner(cli):
        yield f"fastscore {name}", verb
        if name == "score":
            yield from ((f"fastscore score {suite}", command) for suite, command in _inner(verb))


def _inner(command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield name, inner


def _epilog(text: str) -> Iterator[str]:
    """Yield the paragraphs of an epilog, with its examples as code."""
    for paragraph in text.split("\n\n") if text else ():
        before, _, examples = " ".join(paragraph.split()).partition("Example")
        if before:
            yield _plain(before) + "\n"
        if examples:
            commands = examples.removeprefix("s").removeprefix(": ").split("; ")
            yield "\n".join(["```sh", *commands, "```\n"])


def _paragraphs(text: str) -> Iterator[str]:
    """Yield a help's paragraphs; those that click leaves as they are become code."""
    for paragraph in inspect.cleandoc(text.replace("\f", "")).split("\n\n"):
        if paragraph.startswith("\b\n"):
            yield f"```sh\n{paragraph[2:]}\n```\n"
        else:
            yield _plain(paragraph) + "\n"


def _plain(text: str) -> str:
    """Return text in which Markdown finds nothing but code between backticks."""
    parts = " ".join(text.split()).split("`")
    for i in range(0, len(parts), 2):
        for mark in "\\*_[]<>#|":
            parts[i] = parts[i].replace(
                mark, f"\\{mark}" if mark not in "<>" else f"&{'lg'[mark == '>']}t;"
            )
    return "`".join(parts)


def _anchor(words: str, heading: str) -> str:
    return "-".join(f"{words} {heading}".lower().replace(":", "").replace(",", "").split())


def _python_page(title: str, names: list[str]) -> str:
    return "\n\n".join([f"# {title}", *(f"::: {name}" for name in names)]) + "\n"
