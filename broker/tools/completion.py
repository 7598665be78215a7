"""`odradek completion bash|zsh|fish`: prints a script that completes commands and options in a shell.

The scripts are made from the parsers of the commands, so nothing has to run while somebody types.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

SHELLS: Final = ("bash", "zsh", "fish")
_FILE_METAVARS: Final = frozenset({"FILE", "F", "DIR", "CSV", "server.properties", "file1,file2,..."})


class Flag(NamedTuple):
    """An option: its names, its help, whether a value follows, which values there are, and whether it names a file."""

    names: Sequence[str]
    text: str
    takes_value: bool
    choices: Sequence[str]
    is_file: bool


class Place(NamedTuple):
    """Where a word is completed: behind the words of a command, such as `transactions list`."""

    words: tuple[str, ...]
    commands: Mapping[str, str]
    """Subcommand -> help."""
    flags: Sequence[Flag]
    choices: Sequence[str]
    """Values of a positional argument."""
    takes_files: bool

    @property
    def key(self) -> str:
        return "".join(f" {word}" for word in self.words)


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """The script for a shell. `parser`: that of all commands."""
    write: Mapping[str, Callable[[Sequence[Place]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    return write[shell](list(places(parser)))


def places(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[Place]:
    """The place of a parser, and those of its subcommands."""
    commands: dict[str, str] = {}
    children: dict[str, argparse.ArgumentParser] = {}
    flags, choices, takes_files = [], [], False
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            children |= action.choices
            commands |= {choice.dest: choice.help or "" for choice in action._choices_actions}
        elif action.option_strings:
            if action.help != argparse.SUPPRESS:
                flags.append(_flag(action))
        elif action.choices:
            choices += [str(choice) for choice in action.choices]
        else:
            takes_files = takes_files or action.metavar in _FILE_METAVARS
    yield Place(words, commands, flags, choices, takes_files)
    for name, child in children.items():
        yield from places(child, (*words, name))


def _flag(action: argparse.Action) -> Flag:
    text = " ".join((action.help or "").split())
    return Flag(
        action.option_strings,
        text,
        takes_value=action.nargs != 0,
        choices=[str(choice) for choice in action.choices or ()],
        is_file=action.metavar in _FILE_METAVARS,
    )


def _known_places(found: Sequence[Place]) -> str:
    return "|".join(f"'{place.key}'" for place in found if place.words)


def _with_values(place: Place) -> Iterator[tuple[str, Flag]]:
    """The options that take a value, each with the patterns of a shell's `case` that match it."""
    for flag in place.flags:
        if flag.takes_value:
            yield "|".join(f"'{place.key} {name}'" for name in flag.names), flag


def _bash(found: Sequence[Place]) -> str:
    values, words = [], []
    for place in found:
        for patterns, flag in _with_values(place):
            reply = f'$(compgen -W "{" ".join(flag.choices)}" -- "$word")' if flag.choices else ""
            values.append(f"        {patterns}) COMPREPLY=({reply}); return ;;")
        names = [name for flag in place.flags for name in flag.names]
        offered = " ".join([*place.commands, *place.choices, *names])
        words.append(f"        '{place.key}') offered='{offered}' ;;")
    return _BASH.format(places=_known_places(found), values="\n".join(values), words="\n".join(words))


def _zsh(found: Sequence[Place]) -> str:
    values, words = [], []
    for place in found:
        for patterns, flag in _with_values(place):
            reply = f"compadd -- {' '.join(flag.choices)}" if flag.choices else "_files"
            values.append(f"        {patterns}) {reply}; return ;;")
        items = [_described(name, text) for name, text in place.commands.items()]
        items += [_described(choice, "") for choice in place.choices]
        options = [_described(name, flag.text) for flag in place.flags for name in flag.names]
        arrays = f"offered=({' '.join(items)}); options=({' '.join(options)})"
        words.append(f"        '{place.key}') {arrays}; files={int(place.takes_files)} ;;")
    return _ZSH.format(places=_known_places(found), values="\n".join(values), words="\n".join(words))


def _described(name: str, text: str) -> str:
    """A candidate for zsh's _describe, in single quotes."""
    item = name.replace(":", "\\:") + (f":{text}" if text else "")
    return "'" + item.replace("'", "'\\''") + "'"


def _fish(found: Sequence[Place]) -> str:
    lines = []
    for place in found:
        begin = f"complete -c odradek -n '__odradek_at \"{place.key}\"'"
        lines += [f"{begin} -a {name} -d {_fish_text(text)}" for name, text in place.commands.items()]
        lines += [f"{begin} -a {choice}" for choice in place.choices]
        if place.takes_files:
            lines.append(f"{begin} -F")
        for flag in place.flags:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names)
            line = f"{begin} {names}"
            if flag.takes_value:
                line += " -x" if flag.choices or not flag.is_file else " -r -F"
            if flag.choices:
                line += f" -a '{' '.join(flag.choices)}'"
            lines.append(f"{line} -d {_fish_text(flag.text)}")
    return _FISH.format(places=" ".join(f"'{place.key}'" for place in found if place.words), lines="\n".join(lines))


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_BASH: Final = """\
# bash completion for odradek: source <(odradek completion bash)
_odradek() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} place='' offered='' index
    for ((index = 1; index < COMP_CWORD; index++)); do
        case "$place ${{COMP_WORDS[index]}}" in
        {places}) place="$place ${{COMP_WORDS[index]}}" ;;
        esac
    done
    COMPREPLY=()
    case "$place ${{COMP_WORDS[COMP_CWORD - 1]}}" in
{values}
    esac
    case "$place" in
{words}
    esac
    COMPREPLY=($(compgen -W "$offered" -- "$word"))
}}
complete -o default -F _odradek odradek
"""

_ZSH: Final = """\
#compdef odradek
# zsh completion for odradek: source <(odradek completion zsh), or as the file _odradek in a directory of fpath
_odradek() {{
    local place='' files=0 word
    local -a offered options
    for word in ${{words[2,CURRENT-1]}}; do
        case "$place $word" in
        {places}) place="$place $word" ;;
        esac
    done
    case "$place ${{words[CURRENT-1]}}" in
{values}
    esac
    case "$place" in
{words}
    esac
    (( $#offered )) && _describe odradek offered
    _describe -o option options  # only behind a hyphen
    (( files )) && _files
    return 0
}}
if [ "$funcstack[1]" = "_odradek" ]; then
    _odradek "$@"
else
    compdef _odradek odradek
fi
"""

_FISH: Final = """\
# fish completion for odradek: odradek completion fish | source
function __odradek_at --description 'Whether the command line is at this command'
    set -l place ''
    for word in (commandline -opc)[2..-1]
        if contains -- "$place $word" {places}
            set place "$place $word"
        end
    end
    test "$place" = "$argv[1]"
end
complete -c odradek -e
complete -c odradek -f
{lines}
"""


def print_script(shell: str, parser: argparse.ArgumentParser) -> int:
    """Print the script for a shell. Returns the exit status."""
    sys.stdout.write(script(shell, parser))
    return 0
