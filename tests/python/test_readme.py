"""Run the code blocks of tools/python/README.md in a folder that has corpus/."""

import re

from conftest import ROOT


def test_page(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus").symlink_to(f"{folder}/../corpus")
    text = (ROOT / "tools/python/README.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    assert len(blocks) == 8
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
