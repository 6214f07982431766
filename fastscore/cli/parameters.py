"""Commands with headings, groups that suggest names, and the values that a shell completes."""

import contextlib
import functools
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from fastscore.errors import FastscoreError, UsageError, did_you_mean
from fastscore.terminal import write_line

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

PATH = click.Path(path_type=Path)

quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

Verb = TypeVar("Verb", bound=Callable[..., Any])


def several(*options: Callable[[Any], Any]) -> Callable[[Verb], Verb]:
    """Give a command several options, listed in this order."""
    return lambda verb: functools.reduce(lambda made, add: add(made), reversed(options), verb)


def format_option(help: str, among: Sequence[str] = ()) -> Callable[[Verb], Verb]:
    """Give a command ``--format``, and ``--json`` for one of its values; it takes ``format``."""
    from fastscore.terminal.grids import FORMATS

    def decorate(verb: Verb) -> Verb:
        @functools.wraps(verb)
        def call(*arguments: Any, format: str, as_json: bool, **given: Any) -> Any:
            return verb(*arguments, format="json" if as_json else format, **given)

        as_json = click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
        formats = click.Choice(among or FORMATS)
        return click.option(
            "--format", type=formats, default="table", show_default=True, help=help
        )(as_json(cast(Verb, call)))

    return decorate


_HYPHEN, _SPACE = "\ue000", "\ue001"
"""A hyphen and a space of ``--help`` at which no line is broken."""


class HelpFormatter(click.HelpFormatter):
    """A formatter that breaks no line within a word with hyphens, such as a flag to copy."""

    def write_text(self, text: str) -> None:
        """Write paragraphs."""
        super().write_text(text.replace("-", _HYPHEN))

    def write_dl(self, rows: Iterable[tuple[str, str]], *widths: int, **named: int) -> None:
        """Write names and what they mean."""
        super().write_dl(
            [(name, text.replace("-", _HYPHEN)) for name, text in rows], *widths, **named
        )

    def write(self, string: str) -> None:
        """Write what has its lines."""
        super().write(string.replace(_HYPHEN, "-").replace(_SPACE, " "))


class Context(click.Context):
    """The context of a command, which writes its ``--help``."""

    formatter_class = HelpFormatter


HEADING = "Options"
"""The heading of options where a command names no headings."""


class HeadedOption(click.Option):
    """An option that shows its default and its environment variable in ``--help``.

    It may declare its heading there; others are under the last one. `expected` says which numbers
    it takes, if not all that its type does.
    """

    def __init__(
        self, *arguments: Any, heading: str = "", expected: str = "", **declared: Any
    ) -> None:
        shown = {
            "show_default": declared.get("default") is not None,
            "show_envvar": "envvar" in declared,
        }
        super().__init__(*arguments, **(shown | declared))
        self.heading = heading
        self.expected = expected


option = functools.partial(click.option, cls=HeadedOption)


def ranged(name: str) -> click.FloatRange:
    """Return the type of an option, within the bounds of the argument of its name."""
    from fastscore.settings.options import ARGUMENTS

    rules = ARGUMENTS[name]
    return click.FloatRange(rules["above"], rules.get("below"), True, "below" in rules)


cluster_option = functools.partial(
    option,
    "--cluster",
    metavar="COLUMN",
    help="Unit of intervals and tests, such as the user: columns of table dialogues, separated by "
    "commas. Default: the suite's.",
)


def design_options(**declared: Any) -> Callable[[Verb], Verb]:
    """Give a command the options that change a suite's design: pairs, and the unit."""
    unpaired = "Compare all dialogues as independent samples."
    return several(
        option(
            "--pair-by",
            metavar="COLUMN",
            help="Columns whose equal values are a pair, separated by commas, or a regular "
            "expression with one group that finds the pair's name in the dialogue id. Default: "
            "the suite's.",
            **declared,
        ),
        option("--unpaired", is_flag=True, help=unpaired, **declared),
        cluster_option(**declared),
    )


def scores_options(
    columns: str = "judge_columns", scale: str = "judge_scale", **declared: Any
) -> Callable[[Verb], Verb]:
    """Give a command the options of files of scores: more columns, and the range of scores."""
    column = "Another column that contains scores. Repeatable."
    extremes = (
        "The smallest and largest possible score. Others are refused and counted. Default: the "
        "scale of a judge's folder, else 1 5."
    )
    bounds: dict[str, Any] = {"type": (float, float), "default": None, "help": extremes}
    return several(
        option("--judge-column", columns, multiple=True, help=column, **declared),
        option("--judge-range", scale, **bounds, **declared),
    )


class HeadedCommand(click.Command):
    """A command whose ``--help`` puts options under `headings`, then those that they declare."""

    def __init__(self, *arguments: Any, headings: Sequence[str] = (), **declared: Any) -> None:
        super().__init__(*arguments, **declared)
        self.headings = tuple(headings)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section a heading."""
        for heading, options in options_by_heading(self, ctx).items():
            records = [option.get_help_record(ctx) for option in options]
            with formatter.section(heading):
                formatter.write_dl([record for record in records if record])


def options_by_heading(
    command: click.Command, ctx: click.Context
) -> Mapping[str, Sequence[click.Option]]:
    """Return the options that a command's ``--help`` shows by their headings, in its order."""
    headings = getattr(command, "headings", ()) or (HEADING,)
    found: dict[str, list[click.Option]] = {heading: [] for heading in headings}
    for parameter in command.get_params(ctx):
        if isinstance(parameter, click.Option) and not parameter.hidden:
            heading = getattr(parameter, "heading", "") or headings[-1]
            found.setdefault(heading, []).append(parameter)
    return {heading: options for heading, options in found.items() if options}


class SuggestingGroup(click.Group):
    """A group that suggests the nearest of its commands, or what a word of `elsewhere` is here."""

    elsewhere: Mapping[str, str] = {}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is named, or say which was probably meant."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and self.get_command(ctx, name) is None:
            known = self.list_commands(ctx)
            if name in self.elsewhere:
                hint = f"Type `{ctx.command_path} {self.elsewhere[name]}`."
            elif os.path.exists(name):
                hint = f"A command comes before a path. Known: {', '.join(map(repr, known))}."
            else:
                hint = did_you_mean(name, known)
            raise UsageError(f"No such command {name!r} of `{ctx.command_path}`.", hint)
        return super().resolve_command(ctx, args)


def click_message(error: click.ClickException) -> str:
    """Return what is shown of an error of click; a group without a command shows its help."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error.format_message()
    if isinstance(error, click.UsageError):
        return f"Error: {_usage_error(error)}"
    return f"Error: {error.format_message()}"


def _usage_error(error: click.UsageError) -> UsageError:
    """Return click's refusal of what was typed in our words: found, expected, an example."""
    ctx, parameter = error.ctx, getattr(error, "param", None)
    if ctx is None:
        return UsageError(error.format_message())
    if isinstance(error, click.NoSuchOption):
        import difflib  # late: an option that is known needs no other

        parameters, word = ctx.command.get_params(ctx), error.option_name.removeprefix("--")
        names = [name for each in parameters for name in each.opts if name != "--help"]
        close = difflib.get_close_matches(error.option_name, names, n=1)
        if word == "model" and "--embedder" in names:
            close = ["--embedder"]
        if any(each.name == "format" and word in _known_values(ctx, each) for each in parameters):
            close = [f"--format {word}"]
        return UsageError(
            f"`{ctx.command_path}` has no option {error.option_name!r}.",
            f"Did you mean {close[0]!r}?" if close else _see_help(ctx),
        )
    if parameter is None:
        return UsageError(f"{error.format_message().rstrip('.')}.", _see_help(ctx))
    if isinstance(error, click.MissingParameter):
        known = _known_values(ctx, parameter)
        listed = f"Known: {', '.join(map(repr, known))}. " if known else ""
        example = _first_example(ctx.command)
        return UsageError(
            f"No {_typed_name(parameter)} {'is' if parameter.nargs == 1 else 'are'} named.",
            listed + (f"For example: `{example}`." if example else _see_help(ctx)),
        )
    name = _typed_name(parameter).lower()
    if ctx.get_parameter_source(parameter.name or "") is click.core.ParameterSource.ENVIRONMENT:
        name = str(getattr(parameter, "envvar", name))
    found = re.match(r"(.*) is not (?:a valid|in the range|one of)", error.message, re.DOTALL)
    if found is None:
        return UsageError(f"{name}: {error.message}", _see_help(ctx))
    value = found[1]
    if isinstance(parameter.type, click.Choice):
        return UsageError(
            f"{name} is {value}.", did_you_mean(value.strip("'"), parameter.type.choices)
        )
    return UsageError(f"{name} is {value}, expected {_expected(parameter)}.")


def _typed_name(parameter: click.Parameter) -> str:
    """Return an option's name as messages have it, and an argument's as ``--help`` shows it."""
    if isinstance(parameter, click.Option):
        return _called(parameter).removeprefix("--").replace("-", "_")
    shown = parameter.metavar or (parameter.name or "")
    return shown.removesuffix("...").upper()


def _known_values(ctx: click.Context, parameter: click.Parameter) -> Sequence[str]:
    if isinstance(parameter.type, click.Choice):
        return tuple(map(str, parameter.type.choices))
    words = _ARGUMENTS.get((ctx.command.name or "", parameter.name or ""))
    with contextlib.suppress(FastscoreError, OSError):
        return () if words is None else tuple(words(ctx))
    return ()


def _expected(parameter: click.Parameter) -> str:
    """Describe the numbers that an option takes, with its default as the example."""
    from fastscore.settings.options import describe_number

    kind = parameter.type
    if isinstance(kind, click.Tuple):
        return f"{len(kind.types)} numbers"
    if isinstance(kind, click.types.BoolParamType):
        return "true or false"
    text = getattr(parameter, "expected", "")
    if not text:
        low, high = getattr(kind, "min", None), getattr(kind, "max", None)
        rules: dict[str, Any] = {"minimum": low, "maximum": high}
        if getattr(kind, "min_open", False):
            rules |= {"above": low} | ({} if high is None else {"below": high})
        text = describe_number(int if isinstance(kind, click.types.IntParamType) else float, rules)
    default = parameter.default
    has_example = " such as " in text or isinstance(default, bool)
    is_number = isinstance(default, int | float) and not has_example
    return f"{text}, such as {default}" if is_number else text


def _see_help(ctx: click.Context) -> str:
    return f"`{ctx.command_path} --help` lists what it takes."


Words = Callable[[click.Context], Iterable[str]]


def prepared(command: click.Command) -> click.Command:
    """Have a command and its subcommands show examples, and complete values of parameters.

    Only a shell that asks for words (``_FASTSCORE_COMPLETE``) needs the latter.
    """
    vars(command)["format_epilog"] = functools.partial(_write_epilog, command)
    vars(command)["context_class"] = Context
    is_asked = "_FASTSCORE_COMPLETE" in os.environ
    for parameter in command.params if is_asked else ():
        words = _WORDS.get(_called(parameter))
        words = _ARGUMENTS.get((command.name or "", parameter.name or ""), words)
        if words is not None and not isinstance(parameter.type, click.Choice):
            vars(parameter)["shell_complete"] = _completion(words)
    if isinstance(command, click.Group):
        for each in command.commands.values():
            prepared(each)
    return command


_VALUED = re.compile(r"( -\S+) (?!-)")
"""An option and the space before its value."""


def _write_epilog(
    command: click.Command, ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    """Write what an epilog says, then each example as it is pasted into a shell."""
    said, examples = _examples(command)
    if said:
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(said)
    if examples:
        with formatter.section("Examples"):
            indent, width = " " * formatter.current_indent, formatter.width - 2
            for each in examples:
                lines = textwrap.wrap(
                    _VALUED.sub(rf"\1{_SPACE}", each),
                    width,
                    initial_indent=indent,
                    subsequent_indent=indent * 3,
                    break_long_words=False,
                    break_on_hyphens=False,
                )
                formatter.write(" \\\n".join(lines) + "\n")


def _examples(command: click.Command) -> tuple[str, list[str]]:
    """Split an epilog into its words and its examples."""
    said, _, examples = (command.epilog or "").partition("Example")
    return said, examples.partition(": ")[2].split("; ") if examples else []


def _first_example(command: click.Command) -> str:
    """Return the first example of a command itself, as one is typed before it in some."""
    examples = _examples(command)[1]
    own = (each for each in examples if f" {command.name} " in f"{each} ")
    return next(own, examples[0] if examples else "")


def _called(parameter: click.Parameter) -> str:
    """Return the long flag of an option, the name of an argument."""
    return next((name for name in parameter.opts if name.startswith("--")), parameter.name or "")


def _completion(words: Words) -> "Callable[[click.Context, str], list[CompletionItem]]":
    from click.shell_completion import CompletionItem

    def complete(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        with contextlib.suppress(FastscoreError, OSError):
            begun, comma, last = incomplete.rpartition(",")
            return [
                CompletionItem(f"{begun}{comma}{word}")
                for word in words(ctx)
                if word.startswith(last)
            ]
        return []

    return complete


def _runs(ctx: click.Context) -> list[Path]:
    """Return the paths that were typed before, as far as they are folders."""
    given: list[Any] = [Path(word) for word in ctx.args]  # not parsed yet, before a bare flag
    for value in ctx.params.values():
        given += value if isinstance(value, tuple | list) else [value]
    return [each for each in given if isinstance(each, Path) and each.is_dir()]


def _metrics(ctx: click.Context) -> list[str]:
    from fastscore.results.runs import open_run
    from fastscore.suites.registry import load_suite, suite_names

    runs = _runs(ctx)
    suites = [open_run(runs[0]).suite] if runs else [load_suite(name) for name in suite_names()]
    return sorted({metric.id for suite in suites for metric in suite.metrics})


def _labels(ctx: click.Context) -> list[str]:
    import polars as pl

    from fastscore.results.runs import open_run

    found: set[str] = set()
    for run in _runs(ctx):
        schema = open_run(run).scan("dialogues").collect_schema()
        found |= {name for name, dtype in schema.items() if dtype == pl.String}
    return sorted(found)


def _layouts(ctx: click.Context) -> list[str]:
    from fastscore.logs.inputs.layout import layout_names

    return sorted(layout_names())


def _models(ctx: click.Context) -> list[str]:
    from fastscore.vectors.models import list_models

    return [each.name for each in list_models()]


def _embedders(ctx: click.Context) -> list[str]:
    return ["none", *_models(ctx)]


def _suites(ctx: click.Context) -> list[str]:
    from fastscore.suites.registry import suite_names

    return list(suite_names())


_ARGUMENTS: dict[tuple[str, str], Words] = {
    ("export", "name"): _models,
    ("layouts", "name"): _layouts,
    ("metrics", "names"): _suites,
    ("verify", "name"): _models,
}
_WORDS: dict[str, Words] = {
    "--by": _labels,
    "--cluster": _labels,
    "--embedder": _embedders,
    "--group-by": _labels,
    "--layout": _layouts,
    "--metric": _metrics,
    "--pair-by": _labels,
    "--suite": _suites,
    "metric": _metrics,
    "suite": _suites,
}


SHELLS = ("bash", "zsh", "fish")


@click.command("completion", epilog='Example: eval "$(fastscore completion bash)"')
@click.argument("shell", type=click.Choice(SHELLS))
def completion_command(shell: str) -> None:
    """Print the script that completes fastscore's words in SHELL."""
    from click.shell_completion import get_completion_class

    program = click.get_current_context().find_root().command
    completion = get_completion_class(shell)
    assert completion is not None
    write_line(completion(program, {}, "fastscore", "_FASTSCORE_COMPLETE").source())
