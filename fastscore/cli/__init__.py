"""The command line: a verb's module is loaded when the verb is used."""

import atexit
import errno
import gc
import importlib
import os
import re
import signal
import sys
from collections.abc import Mapping
from types import FrameType
from typing import NoReturn, cast

import click

from fastscore.cli.parameters import Context, SuggestingGroup, click_message, prepared
from fastscore.errors import EXIT_INCOMPLETE, EXIT_INTERRUPTED, FastscoreError
from fastscore.settings.extras import EntryPoint, entry_points
from fastscore.terminal import drop, prepare_streams, write_note
from fastscore.version import __version__

EXIT_TERMINATED = 143

VERBS = {
    "score": ("score", "Score logs into a run directory."),
    "summary": ("show", "Show the summary of a run."),
    "runs": ("show", "List the runs in a folder, or write a page with links to their reports."),
    "compare": (
        "compare",
        "Compare two or more runs, or the levels of one: intervals, effects, tests.",
    ),
    "analyse": ("compare", "Analyse a run of preference_shift: tables, figures, a page."),
    "inspect": ("show", "Say what logs hold, which suites fit, and what to type."),
    "example": ("show", "Write a small example log of a suite."),
    "simulate": ("chat_models", "Simulate users who talk with a recommender, into logs."),
    "judge": ("chat_models", "Judge dialogues of any suite by a chat model and a rubric."),
    "agreement": ("compare", "Compare the scores of several judges or people."),
    "rank": ("compare", "Rank systems that were judged in pairs."),
    "annotate": ("chat_models", "Let a chat model read concepts or states from logs, into a file."),
    "experiment": ("chat_models", "Simulate, judge, score and analyse recommenders in one folder."),
    "migrate": ("compare", "Compare a run with the scores that a public script wrote."),
    "check": ("compare", "Check whether a run keeps to limits, for continuous integration."),
    "explain": ("show", "Show how a metric of a dialogue was computed."),
    "report": ("show", "Write one self-contained page about a run, or several."),
    "layouts": ("show", "List layouts of other tools' logs, each with an example."),
    "metrics": ("show", "List suites and their metrics: formula, range, null rule, source."),
    "models": ("installation", "List, export and verify embedding models."),
    "vectors": ("installation", "Look after the stores of vectors."),
    "kernels": ("installation", "Compile what runs compute with, ahead."),
    "doctor": ("installation", "Say what is installed, exported, compiled and writable."),
    "completion": ("parameters", "Print the completion script of a shell."),
}


SUITE_VERBS = "fastscore.verbs"
"""The entry-point group of verbs that suites contribute: each names a click command."""
_OWN_SUITE_VERBS = (EntryPoint("catalogue", "fastscore.suites.preference_shift.verbs:command"),)


def suite_verbs() -> dict[str, EntryPoint]:
    """Return the verbs of installed suites by name, sorted; our own names are taken."""
    found = sorted({*_OWN_SUITE_VERBS, *entry_points(group=SUITE_VERBS)})
    return {entry.name: entry for entry in found if entry.name not in VERBS}


_WITHOUT_A_FILE = ("group_travel", "guest_simulation", "memory_finance", "score_dialogue")
_OPTION = re.compile(r"^--\w[\w-]*")


class _Verbs(SuggestingGroup):
    """A group that lists its verbs by name and imports the one that is used."""

    context_class = Context
    elsewhere: Mapping[str, str] = {
        **dict.fromkeys(("csv", "export"), "summary RUN --format csv"),
        **dict.fromkeys(("eval", "evaluate", "run"), "score SUITE LOGS -o RUN"),
        **{suite: f"score {suite} LOGS -o RUN" for suite in _WITHOUT_A_FILE},
        "preference_shift": "score preference_shift LOGS -o RUN --catalogue FILE",
        "score-dialogue": "score score_dialogue LOGS -o RUN",
        "diff": "compare RUN RUN2",
        "help": "--help",
        "leaderboard": "compare RUN --by COLUMN",
        "list": "runs",
        "plot": "report RUN",
        "show": "summary RUN",
        "suites": "metrics",
        "validate": "inspect LOGS",
        "version": "--version",
    }

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read `--lex_weight`, as messages name the option, as `--lex-weight`."""
        end = args.index("--") if "--" in args else len(args)
        options = [
            _OPTION.sub(lambda option: option[0].replace("_", "-"), word) for word in args[:end]
        ]
        return super().parse_args(ctx, [*options, *args[end:]])

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*VERBS, *suite_verbs()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            entry = suite_verbs().get(cmd_name)
            return None if entry is None else prepared(cast("click.Command", entry.load()))
        if ctx.obj:
            gc.disable()  # imports make no garbage, and searching took a tenth of a small run
        module = importlib.import_module(f"fastscore.cli.{VERBS[cmd_name][0]}")
        if ctx.obj:
            gc.freeze()
            gc.enable()
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return prepared(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in VERBS.items()])
        lines = []
        for name, entry in suite_verbs().items():
            # the suite is the package: loading the verb may load it, which takes a while
            suite = entry.value.partition(".verbs")[0].rpartition(".")[2]
            lines.append((name, f"For {suite}: see `fastscore {name} --help`."))
        if lines:
            with formatter.section("Commands of suites"):
                formatter.write_dl(lines)


@click.command(
    cls=_Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Messages name an option as in Python: lex_weight is --lex-weight, and --lex_weight "
    "is taken, too.\n\n"
    "Exit codes: 0 success, 1 a check failed, 2 usage or configuration, 3 input refused "
    "(nothing scored, or too many rejects), 4 incomplete, 130 interrupted, 143 terminated.",
)
@click.version_option(__version__, prog_name="fastscore")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Score dialogue logs by published metrics: exact, fast, on one workstation.

    \b
    fastscore example score_dialogue -o example                        a small log
    fastscore score score_dialogue example/logs -o run --lex-weight 1  score it
    fastscore summary run                                              the scores
    fastscore metrics score_dialogue                                   each metric
    """
    if ctx.obj:
        # a last search for garbage takes as long as importing did, and frees nothing that is needed
        ctx.call_on_close(gc.freeze)


class _Interrupted(KeyboardInterrupt):
    """Ctrl-C by another name: Python ends by the signal if its own ever left an ``eval``.

    SIGTERM ends the work alike, with an exit code of its own.
    """


_EXIT_CODES = {signal.SIGINT: EXIT_INTERRUPTED, signal.SIGTERM: EXIT_TERMINATED}
_signal_codes: list[int] = []
_NOT_WRITTEN = (errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """Have kernels and tasks end too, for what is raised may be swallowed by who called back."""
    _signal_codes.append(_EXIT_CODES[signal.Signals(number)])
    threads = sys.modules.get("fastscore_jit.threads")
    if threads is not None:
        threads.request_stop(signalled=True)
    raise _Interrupted


def main() -> NoReturn:
    """Run the command line and exit with the documented code."""
    sys.unraisablehook = _tell_no_signal
    os.environ["RUST_BACKTRACE"] = "0"  # a refusal is told in one sentence
    prepare_streams()
    _hear(signal.SIGTERM)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a shell may ignore it
        _hear(signal.SIGINT)
    try:
        code = _run(ends_process=True)
        _hear_to_the_end()
    except KeyboardInterrupt:  # another one, while the first was told of
        _hear_to_the_end()
        code = _signal_codes[0]
    sys.exit(code)


def _tell_no_signal(ignored: "sys.UnraisableHookArgs") -> None:
    """Leave a signal unsaid that is raised where nothing can be: it was noted."""
    if not isinstance(ignored.exc_value, _Interrupted):
        sys.__unraisablehook__(ignored)


def _hear(number: signal.Signals) -> None:
    signal.signal(number, _interrupt)
    # the last of all hooks; Python takes handlers away as it ends, but lets what is ignored be
    atexit.register(signal.signal, number, signal.SIG_IGN)


def _hear_to_the_end() -> None:
    """Have a signal end the process by its code while Python ends, too."""
    for number in _EXIT_CODES:
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, _leave)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """End at once: all work is done or given up."""
    os._exit(_signal_codes[0] if _signal_codes else _EXIT_CODES[signal.Signals(number)])


def _check_names() -> None:
    """Refuse arguments that are not UTF-8."""
    for argument in sys.argv[1:]:
        if not argument.isascii():
            from fastscore.files import check_path  # late: help opens no file

            check_path(argument)


def _run(*, ends_process: bool = False) -> int:
    code: object = 0
    try:
        _check_names()
        code = cli.main(standalone_mode=False, obj=ends_process)
        sys.stdout.flush()
    except click.ClickException as error:
        write_note(click_message(error))
        return error.exit_code
    except FastscoreError as error:
        if _signal_codes:
            return _report_interruption()
        write_note(f"Error: {error}")
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _report_interruption()
    except MemoryError:
        write_note(
            "Error: the machine, or a limit on this process, gives no more memory. Name less input "
            "at once, or fewer workers."
        )
        return EXIT_INCOMPLETE
    except BrokenPipeError:
        drop(sys.stdout)  # python must not complain of it at exit
    except OSError as error:
        if error.filename is None and error.errno == errno.ENOENT:  # only `tempfile` names no file
            write_note("Error: no temporary folder can be written. Set TMPDIR to one that can be.")
            return EXIT_INCOMPLETE
        if error.filename is not None or error.errno not in _NOT_WRITTEN:
            raise
        drop(sys.stdout)
        write_note(f"Error: standard output cannot be written: {error.strerror}.")
        return EXIT_INCOMPLETE
    except BaseException as error:
        # a panic is no Exception: Rust makes one of what is raised while it calls Python
        if _signal_codes:
            return _report_interruption()
        if type(error).__name__ != "CompilationError":  # whose module is imported late
            raise
        write_note(f"Error: {error}")
        return EXIT_INCOMPLETE
    return code if isinstance(code, int) else 0


def _report_interruption() -> int:
    write_note("Interrupted; the same command finishes the work.")
    return _signal_codes[0] if _signal_codes else EXIT_INTERRUPTED
