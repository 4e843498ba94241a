#!/usr/bin/env python3
"""Count the code lines of each room (top-level folder) and compare them with its budget.

A code line is not empty and not only a comment. Every source that git tracks counts, except data,
generated tables and peers' scripts. Lines of manuals and Markdown all count, apart from the rooms.
So do the lines of the public headers, comments included, which have a limit each.
A change that makes a room smaller lowers its budget. Exit with 1 if a budget is exceeded."""
import os
import re
import subprocess
import sys

BUDGET = {
    "tokenize": 13088,
    "loader": 7033,
    "train": 13359,
    "kernels": 10165,
    "tools": 13510,
    "tests": 41537,
    "manuals": 1760,
    "pages": 1344,
}
HEADERS = {"loader/sgt_loader.h": 300, "tokenize/sgt_tokenize.h": 220}  # lines of public headers
DATA = set(
    "json jsonl bin safetensors tsv txt ids parquet idx png tiktoken bpe tables in typed map toml pattern out gz zst"
    .split())
APART = ("tests/data/", "tests/gpu-results/", "tests/fuzz/seeds/", "tests/peers/")
C = {"c", "h", "cu", "cuh", "cpp"}
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)


def without_comments(text, ending):
    if ending in C:
        return TOKEN.sub(lambda m: m[0] if m[0][0] in "\"'" else "\n" * m[0].count("\n"), text)
    return re.sub(r"^\s*#(?!include).*$", "", text, flags=re.M)


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    files = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True)
    if files.returncode:
        print("not a git repository: left out the budgets of lines")
        return 0
    count, long = dict.fromkeys(BUDGET, 0), False
    for path in files.stdout.split("\0")[:-1]:
        file, room = os.path.join(root, path), path.split("/")[0]
        ending = os.path.basename(path).rpartition(".")[2] if "." in os.path.basename(path) else ""
        if ending in DATA or path.endswith("unicode_tables.c") or path.startswith(APART) or os.path.islink(file):
            continue
        try:
            with open(file, encoding="utf8") as f:
                text = f.read()
        except (OSError, UnicodeDecodeError):
            continue
        if text.count("\n") > HEADERS.get(path, 1 << 30):
            print(f"{path} has {text.count(chr(10))} lines, more than {HEADERS[path]} (tests/lint/count.py)")
            long = True
        kind = {"1": "manuals", "3": "manuals", "7": "manuals", "md": "pages"}.get(ending)
        code = text if kind else without_comments(text, ending)
        lines = code.count("\n") if kind else sum(bool(line.strip()) for line in code.split("\n"))
        count[kind or (room if room in BUDGET else "tools")] += lines
    for room, n in count.items():
        if n > BUDGET[room]:
            print(f"{room} has {n} lines of code, {n - BUDGET[room]} more than its budget (tests/lint/count.py)")
    return long or any(n > BUDGET[room] for room, n in count.items())


if __name__ == "__main__":
    sys.exit(main())
