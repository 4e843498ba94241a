"""The build hook: call make, and compute the wheel's tag from what its files need."""

import os
import pathlib
import re
import subprocess
from typing import Any, Dict, List

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def newest_glibc(files: List[pathlib.Path]) -> int:
    """Return N of the newest GLIBC_2.N whose symbols the files need."""
    text = subprocess.run(
        ["objdump", "-T", *map(str, files)], check=True, capture_output=True, text=True
    ).stdout
    return max(int(n) for n in re.findall(r"GLIBC_2\.(\d+)", text))


class Hook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: Dict[str, Any]) -> None:
        if version == "editable":
            return
        here = pathlib.Path(self.root)
        source = here / "source" if (here / "source").is_dir() else here.parent.parent
        given = os.environ.get("SGT_WHEEL_FILES")
        built = pathlib.Path(given or source / "build" / "wheel-files")
        if not given:  # pip calls us, not make
            jobs = f"-j{len(os.sched_getaffinity(0))}"
            command = ["make", "-C", str(source), jobs, "NVCC=none", "wheel-files"]
            subprocess.run(command, check=True)
        libraries = sorted((built / "lib").glob("lib*.so.*"))
        programs = sorted((built / "bin").glob("sgt-*"))
        if len(libraries) != 3 or not programs:
            raise RuntimeError(f"{built} is not whole, or old: rm -r it; make wheel-files")
        for file in libraries:
            build_data["force_include"][str(file)] = f"sgtokens/lib/{file.name}"
        for file in programs:
            build_data["shared_scripts"][str(file)] = file.name
        machine = os.uname().machine
        glibc = newest_glibc(libraries + programs)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_2_{glibc}_{machine}"
