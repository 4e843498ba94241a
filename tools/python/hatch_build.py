"""The build hook: call make, and compute the wheel's tag from the symbols that its files need."""

import os
import pathlib
import re
import subprocess
from typing import Any, Dict, List

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def tag(files: List[pathlib.Path]) -> str:
    """Return the tag of a wheel with these files. It names their processor and a glibc version 2.N,
    where N is the highest in the symbols GLIBC_2.N that they need, but at least 28."""
    text = subprocess.run(
        ["readelf", "-hVW", *map(str, files)], check=True, capture_output=True, text=True
    ).stdout
    glibc = max(28, *map(int, re.findall(r"GLIBC_2\.(\d+)", text)))
    machine = "aarch64" if "AArch64" in text else "x86_64"
    return f"py3-none-manylinux_2_{glibc}_{machine}"


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
        if len(libraries) != 2 or not programs:
            raise RuntimeError(f"{built} is incomplete or old (remove it, then make wheel-files)")
        for file in libraries:
            build_data["force_include"][str(file)] = f"sgtokens/lib/{file.name}"
        for file in programs:
            build_data["shared_scripts"][str(file)] = file.name
        build_data["pure_python"] = False
        build_data["tag"] = tag(libraries + programs)
