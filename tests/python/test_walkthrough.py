"""Run the code blocks of tools/python/walkthrough.md and of README.md where a corpus/ is."""

import re

import pytest
from conftest import ROOT


@pytest.mark.parametrize("page, count", [("walkthrough.md", 9), ("README.md", 1)])
def test_page(page, count, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus").symlink_to(f"{folder}/../corpus")
    text = (ROOT / "tools/python" / page).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    assert len(blocks) == count
    names = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
