"""The completion of `daq-bench` in a shell, from the commands' own arguments."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping

NAME = "daq-bench"
BASH = """\
# Completion of {name} for bash (zsh: autoload -U bashcompinit; bashcompinit first). Use: eval "$({name} completion)"
_daq_bench() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" words
    case "$COMP_CWORD:${{COMP_WORDS[1]}}" in
    1:*) words="{commands}" ;;
{cases}
    *:{programs}) [[ "$word" != -* ]] || words="$({name} "${{COMP_WORDS[1]}}" --help 2> /dev/null | grep -oE -e '--[a-z-]+' | sort -u)" ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    [ "${{#COMPREPLY[@]}}" -gt 0 ] || COMPREPLY=($(compgen -f -- "$word"))
}}
complete -F _daq_bench {name}
"""


def completion(commands: Mapping[str, argparse.ArgumentParser], programs: Iterable[str]) -> str:
    """A script for bash: commands, their options, and files where none of these fits. `programs` are asked for theirs."""
    cases = []
    for name, command in commands.items():
        words = [option for action in command._actions for option in action.option_strings]
        words += [
            str(choice) for action in command._actions if not action.option_strings for choice in action.choices or ()
        ]
        cases.append(f'    *:{name}) words="{" ".join(words)}" ;;')
    every = [*commands, *programs]
    return BASH.format(name=NAME, commands=" ".join(every), cases="\n".join(cases), programs="|*:".join(programs))
