"""The CUDA backend of sgt's programs. The wheel installs libsgt-cuda.so in the environment's folder
lib/sgt, in which sgt-train, sgt-sample, sgt-eval and sgt-bench look for it.

    python -m sgtokens_cuda      # try the GPU; or say in one line what is missing
"""

import os
import subprocess
import sys
import sysconfig

__all__ = ["self_check"]


def self_check() -> int:
    """Run the self-check of the GPU's kernels. Return its exit code: 0 if CUDA can be used."""
    places = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    programs = [os.path.join(place, "sgt-train") for place in places]
    program = next(filter(os.path.exists, programs), "sgt-train")
    try:
        return subprocess.run([program, "--self-check", "--device", "cuda"]).returncode
    except FileNotFoundError:
        print("sgtokens-cuda: no sgt-train (pip install the wheel sgtokens)", file=sys.stderr)
        return 1
