"""machine_code.py SASS... -- LIST...: a row for each kernel in the lists of launches (launches.sh), of what its sm_90a
code holds, on stdout: the table that machine-code.txt keeps. Each SASS is what nvdisasm -c printed, with what cuobjdump
-res-usage printed in SASS.res; machine-code.sh makes both.

machine_code.py --compare KEPT NEW: a line for each row that is worse than the kept one, or is in one table alone; exit
1 if there is any. Rows that are better, or differ otherwise, are told of and are no failure.

What the columns mean is said in HEAD, which the table begins with."""
import os
import re
import subprocess
import sys

import banks

HEAD = """# What nvcc made of the kernels of a training step of GPT-2 for sm_90a: `make machine-code` writes this table,
# `make check-nvcc` compares with it where the disassemblers can be had, and `make predict` computes times from it.
# Nothing of it was measured on a GPU. registers.txt beside it holds limits for every kernel on every architecture, for
# the build itself, which needs neither Python nor the network: that is why there are two tables.
#   threads: in a block     regs: of a thread     static, given: bytes of shared memory, the kernel's and the launch's
#   warps: that a multiprocessor of an H100 holds, from those four (64: all)
#   flight: most global loads that a warp issues before it waits for one of them, in the order of the code
#   lane: bytes that these are for each lane
#   mean: bytes for each lane of such runs as have the widest load: the mean of all, or of those in loops, if less
#   load: bytes of the widest load     per16: instructions for each 16 bytes that loops with such accesses move
#   loads, local, hmma, hgmma, bulk: instructions: global loads (LDG, LDGSTS), accesses to local memory (spills),
#   products of tensor cores by a warp, by a warpgroup, and bulk copies; mma: instructions for each hmma in their loop
#   banks: accesses to shared memory that conflict, of so many whose addresses the code itself tells
"""
COLUMNS = ("kernel", "threads", "regs", "static", "given", "warps", "flight", "lane", "mean", "load", "per16", "loads",
           "local", "hmma", "hgmma", "bulk", "mma", "banks")
WIDTHS = {"": 4, "64": 8, "128": 16, "U8": 1, "S8": 1, "U16": 2, "S16": 2}
BULK = ("UBLKCP", "UTMALDG", "UTMASTG", "UBLKRED", "UTMAREDG")


# ---- the code ----

class Instruction:
    """One line: its address, name ("LDG.E.128"), operands, and the label that it jumps to, if it does."""

    def __init__(self, at, guard, name, rest):
        self.at, self.guard, self.name, self.op = at, guard, name, name.split(".")[0]
        self.operands = [x.strip() for x in rest.split(",")] if rest else []
        label = re.search(r"\((\.L_\w+)\)", rest)
        # where the result goes: SHFL and LOP3 may name a predicate before it
        second = self.op in ("SHFL", "LOP3") and self.operands[0].startswith("P")
        self.target = self.operands[1 if second else 0].split(".")[0] if self.operands else ""
        self.label = label.group(1) if label and self.op == "BRA" else None

    def width(self):
        """Bytes that each lane moves."""
        for part in self.name.split(".")[1:]:
            if part in WIDTHS and part:
                return WIDTHS[part]
        return 4

    def written(self):
        """Registers that it writes: of a load, the bytes' number of them."""
        first = re.fullmatch(r"R(\d+)", self.target)
        if not first or self.op in ("STG", "STS", "STL", "ST", "LDGSTS", "RED", "ATOMS"):
            return set()
        count = max(1, self.width() // 4) if self.op in ("LDG", "LDS", "LDL", "LD") else 1
        return set(range(int(first.group(1)), int(first.group(1)) + count))

    def read(self):
        """Registers that it reads; wide operands count from their first, with as many as their suffix says."""
        found = set()
        stores = self.op in ("STG", "STS", "STL", "ST")
        for i, text in enumerate(self.operands):
            if i == 0 and not stores and self.op not in ("LDGSTS", "RED", "BRA", "ATOMS") and "[" not in text:
                continue
            for name, wide in re.findall(r"\bR(\d+)(\.64)?", text):
                count = 2 if wide else self.width() // 4 if stores and "[" not in text else 1
                count = 4 if self.op in ("HMMA",) and i == 1 else count
                found |= set(range(int(name), int(name) + max(1, count)))
        return found


def parse(lines):
    """Instructions of each function, and the addresses of its labels."""
    functions, name, labels, pending = {}, None, {}, []
    for line in lines:
        section = re.match(r"\s*\.section\s+\.text\.([^\s,\"]+)", line)
        if section:
            name = section.group(1)
            functions[name] = ([], {})
            continue
        if name is None:
            continue
        label = re.match(r"(\.L_\w+):", line)
        code = re.match(r"\s+/\*([0-9a-f]+)\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z0-9_.]+)\s*(.*?)\s*;", line)
        instructions, labels = functions[name]
        if label:
            labels[label.group(1)] = len(instructions)
        elif code:
            instructions.append(Instruction(int(code.group(1), 16), *code.groups()[1:]))
    return functions


def resources(path):
    """Registers and bytes of static shared memory of each function."""
    found, name = {}, None
    for line in open(path):
        if line.startswith(" Function "):
            name = line.split()[1].rstrip(":")
        usage = re.search(r"REG:(\d+) .*SHARED:(\d+)", line)
        if usage and name:
            found[name] = (int(usage.group(1)), int(usage.group(2)))
    return found


# ---- loads in flight ----

def runs(code):
    """(where, bytes of each load): a run ends where one of its loads is waited for, or control leaves."""
    run, waited, out, began = [], set(), [], 0
    for n, i in enumerate(code):
        leaves = i.op in ("EXIT", "RET") or (i.op == "BRA" and not i.guard)
        waits = i.op in ("DEPBAR", "SYNCS") # for LDGSTS, and for bulk copies
        if run and (leaves or waits or i.read() & waited):
            out.append((began, run))
            run, waited = [], set()
        began = began if run else n
        if i.op in ("LDG", "LDGSTS", "LD"):
            run.append(i.width())
            waited |= i.written()
        elif i.op in BULK[:2]:
            run.append(0)
    return out + [(began, run)] if run else out


def mean_run(every, loops, widest):
    """Bytes of the runs with the widest load: the mean of all, or of those in loops, whichever is less."""
    wide = [(n, sum(r)) for n, r in every if widest in r]
    looped = [b for n, b in wide if any(first <= n <= last for first, last in loops)]
    means = [sum(b) / len(b) for b in ([b for n, b in wide], looped) if b]
    return round(min(means)) if means else 0


# ---- loops ----

def loops_of(code, labels):
    """[first, last] instruction of each: from where a branch leads back to, to the branch."""
    return sorted({(labels[i.label], n) for n, i in enumerate(code) if i.label in labels and labels[i.label] < n})


def innermost(code, labels):
    """The loops without a loop inside."""
    loops = loops_of(code, labels)
    return [l for l in loops if not any(o != l and l[0] <= o[0] and o[1] <= l[1] for o in loops)]


def per_16_bytes(code, labels, widest):
    """Instructions for 16 bytes moved by loops that have the widest access; of all the code where no loop has."""
    bodies = [code[a:b + 1] for a, b in innermost(code, labels)]
    moving = [b for b in bodies if any(i.op in ("LDG", "STG", "LDGSTS") and i.width() == widest for i in b)]
    if not moving:
        moving = [code]
    moved = sum(i.width() for b in moving for i in b if i.op in ("LDG", "STG", "LDGSTS"))
    return 16 * sum(len(b) for b in moving) / moved if moved else 0


def per_hmma(code, labels):
    """Instructions for each HMMA, of the smallest loop that holds as many as any."""
    bodies = [code] + [code[a:b + 1] for a, b in loops_of(code, labels)]
    body = min(bodies[1:] or bodies, key=lambda b: (-sum(i.op == "HMMA" for i in b), len(b)))
    count = sum(i.op == "HMMA" for i in body)
    return len(body) / count if count else 0


# ---- what an H100's multiprocessor holds ----

def resident_warps(threads, regs, shared):
    """Registers are given to a warp by 256, to each of four schedulers 16,384; shared memory by 128 bytes, 1 KiB more
    to each block, of 228 KiB; 32 blocks, 64 warps."""
    warps = (threads + 31) // 32
    by_regs = 4 * (16384 // (-(-max(regs, 1) * 32 // 256) * 256)) // warps
    by_shared = 228 * 1024 // (-(-(shared + 1024) // 128) * 128)
    return warps * min(by_regs, by_shared, 32, 64 // warps)


# ---- rows ----

def launched(path):
    """Kernels of a list, with their threads and the shared memory that the launch gives."""
    found = set()
    for line in open(path):
        words = line.split()
        if words[0] == "kernel":
            found.add((words[1], int(words[words.index("block") + 1]), int(words[words.index("smem") + 1])))
    return found


def row_of(kernel, threads, given, code, labels, regs, static):
    ops = [i.op for i in code]
    every = runs(code)
    widest = max((w for n, r in every for w in r), default=0)
    longest = max((r for n, r in every), key=lambda r: (sum(r), len(r)), default=[])
    conflicts, known = banks.count(code)
    return (kernel, threads, regs, static, given, resident_warps(threads, regs, static + given),
            len(longest), sum(longest), mean_run(every, innermost(code, labels), widest), widest,
            "%.1f" % per_16_bytes(code, labels, widest), ops.count("LDG") + ops.count("LDGSTS"),
            ops.count("LDL") + ops.count("STL"), ops.count("HMMA"), sum(o.endswith("GMMA") for o in ops),
            sum(ops.count(b) for b in BULK), "%.1f" % per_hmma(code, labels), "%d/%d" % (conflicts, known))


def names_of(functions):
    """Names as lists have them, by kernel-name.sh."""
    plain = subprocess.run(["c++filt"], input="\n".join(functions), capture_output=True, text=True, check=True).stdout
    pairs = "".join("%d %s\n" % p for p in enumerate(plain.splitlines()))
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernel-name.sh")
    out = subprocess.run([script], input=pairs, capture_output=True, text=True, check=True).stdout
    return {name: functions[int(n)] for n, name in (line.split(" ", 1) for line in out.splitlines())}


def table(sass, lists):
    functions, usage = {}, {}
    for path in sass:
        functions.update(parse(open(path)))
        usage.update(resources(path + ".res"))
    names = names_of(list(functions))
    rows, missing = [], set()
    for kernel, threads, given in sorted(set().union(*map(launched, lists))):
        if kernel in names:
            rows.append(row_of(kernel, threads, given, *functions[names[kernel]], *usage[names[kernel]]))
        else:
            missing.add(kernel)
    if missing:
        sys.exit("machine-code: launched, but not in the sm_90a code: " + ", ".join(sorted(missing)))
    wide = max(len(r[0]) for r in rows)
    line = "%%-%ds %%7s %%4s %%6s %%6s %%5s %%6s %%4s %%4s %%4s %%6s %%5s %%5s %%4s %%5s %%4s %%5s %%6s" % (wide + 1)
    print(HEAD + line % (("#" + COLUMNS[0],) + COLUMNS[1:]))
    for r in rows:
        print(line % r)


# ---- comparison ----

def read_table(path):
    rows = {}
    for line in open(path):
        if not line.startswith("#") and line.strip():
            row = dict(zip(COLUMNS, line.split()))
            rows[row["kernel"], row["threads"], row["given"]] = row
    return rows


def worse(old, new):
    """What of a kernel got worse, in words."""
    said = []
    for column, what in (("warps", "resident warps"), ("flight", "loads in flight"), ("load", "bytes of a load"),
                         ("hmma", "HMMA"), ("hgmma", "HGMMA"), ("bulk", "bulk copies")):
        if int(new[column]) < int(old[column]):
            said.append("%s %s, were %s" % (new[column], what, old[column]))
    for column, what in (("local", "accesses to local memory"), ):
        if int(new[column]) > int(old[column]):
            said.append("%s %s, were %s" % (new[column], what, old[column]))
    if int(new["banks"].split("/")[0]) > int(old["banks"].split("/")[0]):
        said.append("%s bank conflicts, were %s" % (new["banks"], old["banks"]))
    return said


def compare(kept, new):
    old, now = read_table(kept), read_table(new)
    bad = 0
    for key in sorted(set(old) | set(now)):
        where = "%s, %s threads, %s bytes" % key
        if key not in now:
            print("FAIL %s: in machine-code.txt, but launched no more" % where)
        elif key not in old:
            print("FAIL %s: launched, but not in machine-code.txt" % where)
        elif worse(old[key], now[key]):
            print("FAIL %s: %s" % (where, "; ".join(worse(old[key], now[key]))))
        else:
            differs = [c for c in COLUMNS if old[key][c] != now[key][c]]
            if differs:
                print("note %s: %s" % (where, ", ".join("%s %s, was %s" % (c, now[key][c], old[key][c])
                                                        for c in differs)))
            continue
        bad = 1
    if bad:
        print("if that is meant: make machine-code, and commit tests/kernels/machine-code.txt")
    return bad


def main(args):
    if args[:1] == ["--compare"] and len(args) == 3:
        return compare(args[1], args[2])
    if "--" not in args or not args.index("--") or args[-1] == "--":
        sys.exit("usage: machine_code.py SASS... -- LIST..., or --compare KEPT NEW")
    cut = args.index("--")
    table(args[:cut], args[cut + 1:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
