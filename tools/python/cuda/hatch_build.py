"""The build hooks of the wheel sgtokens-cuda: its library, tag, and the wheel it belongs to."""

import os
import pathlib
import sys
from typing import Any, Dict

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from hatch_build import tag  # noqa: E402


class Metadata(MetadataHookInterface):
    def update(self, metadata: Dict[str, Any]) -> None:
        metadata["dependencies"] = [f"sgtokens=={metadata['version']}"]


class Hook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: Dict[str, Any]) -> None:
        folder = pathlib.Path(os.environ.get("SGT_CUDA_FILES", ".")).resolve()
        library = folder / "libsgt-cuda.so"
        if not library.is_file():
            raise RuntimeError(f"{folder} has no libsgt-cuda.so (with nvcc, make wheel builds it)")
        build_data["shared_data"][str(library)] = f"lib/sgt/{library.name}"
        build_data["pure_python"] = False
        build_data["tag"] = tag([library])
