#!/usr/bin/env python3
"""messages.py: check the form of every error and notice in the sources, by WORDS and the rules below.

An error is one line: it begins with the name of a thing or in lower case, has no full stop at its
end, names a thing (by a placeholder, an option, or a word before a colon), is short, and has no
word that only the authors know. Wrong usage says what is right. Print each text that breaks a rule,
and exit with 1 if there is one."""

import re
import subprocess
import sys

# the position of the text among the arguments of each function that reports an error or a notice
CALLS = {
    "sgt_fail": 2,
    "sgt_fail_errno": 1,
    "sgt_fail_hint": 2,
    "sgt_fail_memory": 1,
    "sgt_say": 1,
    "sgt_usage": 1,
    "sample_lines_fail": 1,
}
NOTICES = ("sgt_say",)
PIECES = ("sgt_fail_hint", "sgt_fail_memory")  # parts of a message, or its first word
ROOMS = ["kernels", "loader", "tokenize", "tools", "train"]
LONGEST = 200

# Words that a reader cannot know or that read like a translation, with what to write instead.
WORDS = {
    r"all the same|\bgo(es)? on\b": "anyway, continues",
    r"\bof no (name|type)": "unknown",
    r"\bserves?\b|\bmay be had\b|to be had": "can be used, is free",
    r"\btakes? no more\b|\bknows? no\b": "use less, supports no",
    r"\b(crew|courier|stretch|swap(s|ped)?|is said|are said)\b": "the field's word",
    r"\bleft out\b": "skipped, not included",
    r"\b(is|are) (whole|gone)\b|\bbeside\b": "is complete, no longer exists, next to",
    r"\bwhat (it|they|is|was)\b|\bmeets?\b|\btouch(es)?\b": "the thing and what happens to it",
    r"\bplease\b|\bsorry\b|\boops\b|!": "the fact",
}
# a text begins in lower case, with a value, an option, or one of these names
NAME = re.compile(r"[a-z0-9%-]|[A-Z_]+=|(OUT|INPUT|RANK|CPU|CUPTI|NCCL|MPI|Parquet|Scaled)\b")
# how a text names its thing
THING = re.compile(r"%|--|: |\b(OUT|INPUT)\b|^(no|more|fio|the|this|an?|expected|cannot|standard|out of memory)\b|(stopped|interrupted)")
# words of a text about an option that say what is right
RIGHT = re.compile(
    r"\(|must |need|expected |not (together|set|a )|at most|more than|below|no such|no value|only|unknown|%s$|: for |not gpt2|too large|no --"
)
TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[A-Za-z_]\w*|\s+|.', re.S
)


def tokens(source):
    """The tokens of a C source, with their lines, without comments and blanks."""
    line, found = 1, []
    for match in TOKEN.finditer(source):
        token = match.group()
        if not token.isspace() and not token.startswith(("//", "/*")):
            found.append((token, line))
        line += token.count("\n")
    return found


def texts(argument):
    """The strings of an argument: neighbours are joined, and a macro next to one counts as %s."""
    found, text, macro = [], None, ""
    for token, _ in argument:
        if token[0] == '"':
            text = (macro if text is None else text) + token[1:-1]
        elif text is not None and token.startswith("PRI"):
            text += token[3]
        elif text is not None and re.fullmatch("[A-Z][A-Z0-9_]+", token):
            text += "%s"
        elif text is not None:
            found.append(text)
            text = None
        macro = "%s" if re.fullmatch("[A-Z][A-Z0-9_]+", token) else ""
    return found + ([text] if text is not None else [])


def calls(source):
    """Yield (function, line, arguments) of each call of CALLS; an argument is a list of tokens."""
    all_tokens = tokens(source)
    for i, (name, line) in enumerate(all_tokens[:-1]):
        if name not in CALLS or all_tokens[i + 1][0] != "(":
            continue
        depth, arguments = 0, [[]]
        for token, at in all_tokens[i + 1 :]:
            depth += token in ("(", "{", "[")
            if token in (")", "}", "]"):
                depth -= 1
                if not depth:
                    break
            if token == "," and depth == 1:
                arguments.append([])
            elif depth > 1 or token != "(":
                arguments[-1].append((token, at))
        yield name, line, arguments


def faults(name, text, usage, part):
    """The rules that a text breaks. part: the text is inserted into another one."""
    found = [f"say '{better}'" for word, better in WORDS.items() if re.search(word, text)]
    if len(text) > LONGEST:
        found.append(f"has {len(text)} characters, more than {LONGEST}")
    if part or name in PIECES:
        return found
    if "\\n" in text:
        found.append("has more than one line")
    if not NAME.match(text):
        found.append("begins with a capital letter that begins no name")
    if re.search(r"[a-z)]\.$", text):
        found.append("ends with a full stop")
    if name not in NOTICES and not THING.search(text):
        found.append("does not name a thing")
    if usage and text.startswith("--") and not RIGHT.search(text):
        found.append("does not say what is right")
    return found


def check(source, path, show):
    """Call show for each text of a source, with its place and faults; return how many are bad."""
    bad = 0
    for name, line, arguments in calls(source):
        at = CALLS[name]
        usage = name == "sgt_usage" or any(t == "SGT_EUSAGE" for a in arguments[:at] for t, _ in a)
        for i, argument in enumerate(arguments[at:]):
            for text in texts(argument):
                wrong = faults(name, text, usage, i > 0)
                bad += bool(wrong)
                show(f"{path}:{line}", text, i > 0, wrong)
    return bad


def main():
    count = bad = 0

    def show(place, text, part, wrong):
        nonlocal count
        count += not part
        for fault in wrong:
            print(f"{place}: {fault}: {text}")

    listed = subprocess.run(["git", "ls-files", *ROOMS], capture_output=True, text=True)
    if listed.returncode:
        print("not a git repository: left out the form of messages")
        return
    for path in listed.stdout.split():
        if re.search(r"\.(c|h|cu|cuh)$", path):
            with open(path, encoding="utf-8") as file:
                bad += check(file.read(), path, show)
    if count < 500:
        sys.exit(f"messages.py: only {count} texts found: the functions of errors have new names")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
