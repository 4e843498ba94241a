"""predict.py LIST MACHINE-CODE WORK: the time that a step should take on an H100 SXM, on stdout: a row for each kind
of launch in LIST (launches.sh), what bounds it, and the sum. MACHINE-CODE is machine-code.txt, WORK is work.txt.
Nothing here was measured on a GPU, and no time is given: all of them follow from bytes,
operations and machine code, and from the rates below.

A kernel waits for its first load, and then takes as long as the slower of two: its bytes from memory, or its loads at
the rate that they are in flight (Little's law: bytes under way / latency); then its writes, which nobody waits for but
which share the memory. Where issuing its instructions takes longer, that is it. A product of matrices takes its
operations, or its bytes; then what its epilogue reads or writes beside."""
import re
import sys

from machine_code import resident_warps

# ---- the machine: H100 SXM. Each number with its source; "assumed" ones are to be measured on the first card ----
MEMORY = 3.0e12           # bytes/s that long streams reach, of 3.35e12 by the datasheet: assumed
PRODUCTS = (650e12, 700e12)  # operations/s of cuBLASLt in bf16 at GPT-2's shapes: assumed, and assumed at best
MULTIPROCESSORS = 132     # by the datasheet
TENSOR = 4096             # operations of a multiprocessor's tensor cores in a cycle: 989.4e12 (datasheet) at 1.83 GHz
CLOCK = 1.755e9           # Hz under load: assumed
LATENCY = 800e-9          # s from a load to its use while memory is busy: assumed. CUB wants 48 KiB under way on each
#                           multiprocessor, which at MEMORY's rate would be twice as long
NEAR_LATENCY = 300e-9     # s, where all that is read was just written and lies in the second-level cache: assumed
NEAR = 25e6               # bytes: half of that cache
CUDNN = {2: 312e12, 5: 258e12}  # operations/s of cuDNN's attention, by its number of products, forward and backward:
#                           assumed, .33 and 1.0 ms for 103 and 258e9
GAP = 1.25e-6             # s between two nodes of a graph: assumed, .5 ms for 400
HMMA_FLOPS = 16 * 8 * 16 * 2  # operations of one mma.sync
HMMA_LATENCY, LATENCY_EACH = 32, 4  # cycles from an HMMA, and from another instruction, to one that needs it: assumed
HMMA_RATE = .62           # share of the tensor cores' peak that mma.sync reaches on Hopper: assumed


def fail(text):
    sys.exit("predict: " + text)


# ---- the tables ----

def read_work(path):
    """KERNEL -> (argument names, {"reads": expression, ...})."""
    work, lines = {}, [line for line in open(path) if line.strip() and not line.startswith("#")]
    for line in re.sub(r"\n\s+", " ", "".join(lines)).splitlines():
        head, *terms = [x.strip() for x in line.split("|")]
        if not head or any(" = " not in t for t in terms):
            fail("%s: no kernel, or no \" = \", in: %s" % (path, line.strip()))
        name, *arguments = head.split()
        work[name] = arguments, dict(t.split(" = ", 1) for t in terms)
    return work


def read_code(path):
    """(kernel, threads) -> its row. Rows that differ in the shared memory given have the same code."""
    rows, columns = {}, None
    for line in open(path):
        words = line.split()
        if line.startswith("#kernel"):
            columns = ["kernel"] + words[1:]
        elif not line.startswith("#") and words:
            row = dict(zip(columns, words))
            rows[row["kernel"], int(row["threads"])] = row
    return rows


class Launch:
    """One line of the list."""

    def __init__(self, line):
        head, _, arguments = line.partition(":")
        words = head.split()
        self.kind, self.line, self.arguments = words[0], line, arguments.split()
        self.pairs = dict(w.split("=") for w in words if "=" in w)
        if self.kind == "kernel":
            self.name = words[1]
            self.grid = [int(x) for x in words[3:6]]
            self.threads, self.shared = int(words[7]), int(words[9])
            self.blocks = self.grid[0] * self.grid[1] * self.grid[2]

    def number(self, name):
        return float(self.pairs[name])


def names_of(launch, wanted):
    """Values by name; the table must have as many names, and pointers where the list has them."""
    given, open_end = launch.arguments, wanted[-1:] == ["..."]
    wanted = wanted[:-1] if open_end else wanted
    if len(given) < len(wanted) or (len(given) > len(wanted) and not open_end):
        fail("%s has %d arguments, work.txt names %d" % (launch.name, len(given), len(wanted)))
    values = dict(zip(("grid_x", "grid_y", "grid_z"), launch.grid), threads=launch.threads, shared=launch.shared)
    for name, text in zip(wanted, given):
        if (name[0] == "*") != (text[0] == "p"):
            fail("%s: %s is %s in the list, another kind in work.txt" % (launch.name, name.lstrip("*"), text))
        if text != "?":  # of which the list tells nothing: an expression that needs it fails
            values[name.lstrip("*")] = float(text.lstrip("p"))
    return values


def work_of(launch, work):
    for name in (launch.name, launch.name.split("<")[0]):
        if name in work:
            arguments, terms = work[name]
            values = names_of(launch, arguments)
            try:
                done = {k: float(eval(e, {"__builtins__": {"min": min, "max": max}}, values)) for k, e in terms.items()}
            except NameError as e:
                fail("work.txt, %s: %s" % (name, e))
            done.setdefault("loads", done.get("reads", 0))
            return {**dict.fromkeys(("reads", "writes", "flops", "rate"), 0.0), **done}
    fail("%s is launched, but has no line in work.txt" % launch.name)


# ---- times ----

def resident(launch, row):
    return resident_warps(launch.threads, int(row["regs"]), int(row["static"]) + launch.shared)


def latency(reads):
    return NEAR_LATENCY if reads <= NEAR else LATENCY


def in_flight(launch, row, reads):
    """Bytes/s that the loads under way allow."""
    warps = min(resident(launch, row), launch.blocks * launch.threads / 32 / MULTIPROCESSORS)
    under_way = 32 * float(row["mean"]) * warps
    if int(row["bulk"]):  # a bulk copy waits for nothing but room: what is under way fills the shared memory
        under_way = max(under_way, launch.shared * warps / (launch.threads / 32))
    return MULTIPROCESSORS * under_way / latency(reads)


def tensor_time(launch, row, w, rate):
    """By warpgroups: at the rate that work.txt names, which cuBLASLt's bounds. By warps: the slowest of issuing all
    instructions, of tensor cores, and of each warp waiting for its own."""
    if int(row["hgmma"]):
        return w["flops"] / min(w["rate"] * 1e12 or rate, rate)
    if not int(row["hmma"]):
        fail("%s has flops in work.txt, but neither HMMA nor HGMMA in machine-code.txt" % launch.name)
    each = float(row["mma"])
    waiting = resident(launch, row) / ((each - 1) * LATENCY_EACH + HMMA_LATENCY)
    per_cycle = min(waiting, 4 / each, HMMA_RATE * TENSOR / HMMA_FLOPS)
    return w["flops"] / HMMA_FLOPS / (MULTIPROCESSORS * CLOCK * per_cycle)


def kernel(launch, work, code, rate):
    row = code.get((launch.name, launch.threads))
    if not row:
        fail("%s with %d threads is not in machine-code.txt (make machine-code)" % (launch.name, launch.threads))
    w = work_of(launch, work)
    flying = in_flight(launch, row, w["reads"]) if w["loads"] else 0
    memory, loads = w["reads"] / MEMORY, w["loads"] / flying if flying else 0
    issue = (w["loads"] + w["writes"]) / 16 / 32 * float(row["per16"]) / (4 * MULTIPROCESSORS * CLOCK)
    writes = w["writes"] / MEMORY
    bounds = {"memory": memory + writes, "latency": loads + writes, "issue": issue}
    if w["flops"]:
        bounds = {"memory": bounds["memory"], "tensor": tensor_time(launch, row, w, rate)}
    bound = max(bounds, key=bounds.get)
    return bounds[bound] + latency(w["reads"]), bound, w["reads"] + w["writes"], w["flops"]


def product(launch, rate):
    """Its epilogue's matrix is read or written while the tensor cores wait: nothing here says how much overlaps."""
    m, n, k, batch, size, out = (launch.number(x) for x in ("m", "n", "k", "batch", "in", "out"))
    flops, aux = 2 * m * n * k * batch, m * n * launch.number("aux")
    moved = batch * ((m * k + k * n) * size + m * n * out * (1 + launch.number("add")))
    bound = "tensor" if flops / rate > moved / MEMORY else "memory"
    return max(flops / rate, moved / MEMORY) + aux / MEMORY, bound, moved + aux, flops


def attention(launch, rate):
    """cuDNN's, causal: half of the operations that its graph names."""
    flops, products = launch.number("flops") / 2, int(launch.number("products"))
    if products not in CUDNN:
        fail("an attention of %d products" % products)
    return flops / CUDNN[products], "tensor", 0, flops


def time_of(launch, work, code, rate):
    """(seconds, what bounds them, bytes, operations)."""
    if launch.kind == "kernel":
        return kernel(launch, work, code, rate)
    if launch.kind == "product":
        return product(launch, rate)
    if launch.kind == "attention":
        return attention(launch, rate)
    size = float(launch.line.split()[1])
    return (size / MEMORY, "memory", size, 0) if launch.kind == "fill" else (0, "beside", size, 0)


def label(launch):
    if launch.kind == "product":
        p = launch.pairs
        extra = (" +=" if p["add"] == "1" else "") + (" gelu" if p["aux"] != "0" else "")
        return "product %s x %s x %s%s" % (p["m"], p["n"], p["k"], extra)
    if launch.kind == "attention":
        return "cuDNN attention " + ("forward" if launch.pairs["products"] == "2" else "backward")
    if launch.kind != "kernel":
        return launch.line
    return "%s, %d blocks" % (launch.name, launch.blocks)


# ---- what is shown ----

def tokens_of(launches, work):
    """Those that the step's rows bring."""
    tokens = sum(names_of(l, work["take_kernel"][0])["n"] for l in launches if l.kind == "kernel"
                 and l.name == "take_kernel")
    return tokens or fail("no tokens: take_kernel is not in the list")


def show(launches, work, code):
    rows, tokens = {}, tokens_of(launches, work)
    for l in launches:
        rows.setdefault((label(l), l.line), []).append(l)
    print("    n  launch                                               MB      GF  bound       us      ms  ms at %d"
          % (PRODUCTS[1] / 1e12))
    sums, lines = [0.0, 0.0], []
    for (name, _), group in rows.items():
        t, bound, moved, flops = time_of(group[0], work, code, PRODUCTS[0])
        fast = time_of(group[0], work, code, PRODUCTS[1])[0]
        n = len(group)
        sums = [sums[0] + n * t, sums[1] + n * fast]
        lines.append((n * t, "%5d  %-46s %8.1f %7.1f  %-7s %7.1f %7.3f %8.3f" %
                      (n, name, moved / 1e6, flops / 1e9, bound, t * 1e6, n * t * 1e3, n * fast * 1e3)))
    for _, line in sorted(lines, key=lambda x: -x[0]):
        print(line)
    gaps = len([l for l in launches if l.kind != "copy"])
    print("%5d  %-46s %8s %7s  %-7s %7.1f %7.3f %8.3f" % (gaps, "gaps between nodes of a graph", "", "", "", GAP * 1e6,
                                                         gaps * GAP * 1e3, gaps * GAP * 1e3))
    totals = [s + gaps * GAP for s in sums]
    print("%5s  %-46s %8s %7s  %-7s %7s %7.3f %8.3f" % ("", "sum", "", "", "", "", totals[0] * 1e3, totals[1] * 1e3))
    print("products at %d TFLOP/s: %.1f ms, %d tokens/s" % (PRODUCTS[1] / 1e12, totals[1] * 1e3, tokens / totals[1]))
    print("predicted step: %.1f ms, %d tokens/s" % (totals[0] * 1e3, tokens / totals[0]))


def main(args):
    if len(args) != 3:
        sys.exit("usage: predict.py LIST MACHINE-CODE WORK")
    launches = [Launch(line.rstrip("\n")) for line in open(args[0])]
    if not launches:
        fail(args[0] + " lists nothing")
    show(launches, read_work(args[2]), read_code(args[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
