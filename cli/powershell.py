"""Completion in PowerShell, which click lacks."""

from __future__ import annotations

import os

from click.shell_completion import CompletionItem, ShellComplete, add_completion_class, split_arg_string

_SCRIPT = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $env:COMP_WORDS = $commandAst.ToString()
    $env:COMP_CWORD = $wordToComplete
    $env:%(complete_var)s = "powershell_complete"
    try {
        %(prog_name)s | ForEach-Object {
            $kind, $value, $help = $_ -split "`t", 3
            if ($kind -ne "plain") {
                Get-ChildItem "$wordToComplete*" -Directory:($kind -eq "dir") | ForEach-Object {
                    $path = Resolve-Path -Relative $_.FullName
                    $kind = "ProviderItem"
                    [System.Management.Automation.CompletionResult]::new($path, $_.Name, $kind, $path)
                }
            } else {
                if (-not $help) { $help = $value }
                [System.Management.Automation.CompletionResult]::new($value, $value, "ParameterValue", $help)
            }
        }
    } finally {
        Remove-Item Env:COMP_WORDS, Env:COMP_CWORD, Env:%(complete_var)s
    }
}
"""


class PowerShellComplete(ShellComplete):
    """Completes commands, options, choices and files."""

    name = "powershell"
    source_template = _SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        """Returns the words before the one to complete, and that one."""
        line = os.environ.get("COMP_WORDS", "").replace("\\", "\\\\")  # which separates folders
        words, incomplete = split_arg_string(line)[1:], os.environ.get("COMP_CWORD", "")
        if incomplete and words and words[-1] == incomplete:
            words.pop()
        return words, incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """Returns a line: kind, value and help, separated by tabs."""
        help = " ".join((item.help or "").split())
        return f"{item.type}\t{item.value}\t{help}"


add_completion_class(PowerShellComplete)
