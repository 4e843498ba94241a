"""Run the code blocks of tools/python/walkthrough.md in a folder that has a corpus/."""

import re

from conftest import ROOT


def test_walkthrough(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus").symlink_to(f"{folder}/../corpus")
    text = (ROOT / "tools/python/walkthrough.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    assert len(blocks) == 8
    names = {}
    for block in blocks:
        exec(compile(block, "walkthrough.md", "exec"), names)
