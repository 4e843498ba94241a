#!/bin/sh
# registers.sh LOG...: check ptxas's reports on the kernels, which make keeps beside each object. No
# kernel may spill a register, have its wgmma serialized, or its setmaxnreg ignored: if only one of a
# block's groups keeps its registers, another waits for them forever. The kernels in registers.txt
# must exist and keep within their number of registers. Prints one line per violation and exits with
# 1.
set -u
for log; do c++filt < "$log"; done | awk '
    FNR == NR { if (!/^#/ && NF == 3) { limit[$1 " sm_80"] = $2; limit[$1 " sm_90a"] = $3 }; next }
    /Compiling entry function/ {
        name = $0
        sub(/.*entry function .(void )?/, "", name)
        sub(/[<(].*/, "", name)
        sub(/.*::/, "", name)
        arch = $NF
        gsub(/\047/, "", arch)
        seen[name " " arch] = 1
    }
    /bytes spill stores/ && $5 + $9 { print "FAIL " name " for " arch ": " $5 + $9 " bytes spilled"; bad = 1 }
    /wgmma.* serialized|setmaxnreg.* ignored/ { print "FAIL " $0; bad = 1 }
    /Used [0-9]+ registers/ {
        for (i = 1; i < NF; i++) if ($i == "Used") used = $(i + 1)
        which = name " " arch
        if (which in limit && used > limit[which]) {
            print "FAIL " name " for " arch ": " used " registers, at most " limit[which]
            bad = 1
        }
    }
    END {
        for (which in limit)
            if (!(which in seen)) { print "FAIL " which ": in registers.txt, in no kernel"; bad = 1 }
        exit bad
    }' "$(dirname "$0")/registers.txt" -
