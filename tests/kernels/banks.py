"""banks.py: which accesses to shared memory conflict, as far as the machine code alone tells: the code is followed once
from its beginning, for the 32 lanes of a block's first warp. What comes from parameters or from the block's place is
unknown but the same for all lanes, so that it moves all addresses alike and makes no conflict. What comes from memory
may differ, and is nothing that is known.

A value is None (nothing is known), or (known, lanes): a number for each lane, to which something unknown is added, the
same for all of them and a multiple of 16, unless `known`."""
import re

LANES = range(32)
UNIFORM = (False, (0,) * 32)
MASK = 0xffffffff


def number(n):
    return True, (n & MASK,) * 32


def is_uniform(v):
    return v is not None and len(set(v[1])) == 1


def known(*values):
    return all(v is not None and v[0] for v in values)


def each(f, *values):
    return True, tuple(f(*x) & MASK for x in zip(*(v[1] for v in values)))


def add(*values):
    if None in values:
        return None
    return all(v[0] for v in values), tuple(sum(x) & MASK for x in zip(*(v[1] for v in values)))


def times(a, b):
    if known(a, b):
        return each(lambda x, y: x * y, a, b)
    for v, by in ((a, b), (b, a)):
        if v is not None and known(by) and is_uniform(by):
            return v[0], tuple(x * by[1][0] & MASK for x in v[1])
    return UNIFORM if is_uniform(a) and is_uniform(b) else None


def bitwise(f, *values):
    """Of numbers, or of what all lanes have alike."""
    if known(*values):
        return each(f, *values)
    return UNIFORM if all(map(is_uniform, values)) else None


def lop3(table, a, b, c):
    table = table[1][0]
    return bitwise(lambda x, y, z: sum(((x if k & 4 else ~x) & (y if k & 2 else ~y) & (z if k & 1 else ~z)) & MASK
                                       for k in range(8) if table >> k & 1), a, b, c)


class Machine:
    def __init__(self):
        self.registers = {}

    def value(self, text):
        text = text.replace(".reuse", "").strip()
        if text in ("RZ", "URZ"):
            return number(0)
        if re.fullmatch(r"-?0x[0-9a-f]+|-?\d+", text):
            return number(int(text, 0))
        negative = re.fullmatch(r"-(U?R\d+)", text)
        if negative:
            return times(self.registers.get(negative.group(1)), number(-1))
        if text.startswith(("c[", "UR")) and text not in self.registers:
            return UNIFORM
        return self.registers.get(text)

    def result(self, i):
        name, op = i.name, i.op.lstrip("U") if i.op not in ("UMOV",) else "MOV"
        # a predicate that takes a carry or says "or" is among the operands, and no number
        v = [self.value(x) for x in i.operands if not re.fullmatch(r"!?U?P[0-9T]", x)][1:]
        if op in ("S2R", "S2UR", "CS2R"):
            return (True, tuple(LANES)) if "SR_TID.X" in i.operands else UNIFORM
        if op in ("LDC", "R2UR", "R2R"):
            return UNIFORM
        if op == "MOV" or name.startswith("IMAD.MOV"):
            return v[-1] if v else None
        if name.startswith("IMAD.IADD"):
            return add(v[0], v[2])
        if name.startswith("IMAD.SHL") or name in ("IMAD", "IMAD.U32", "UIMAD"):
            return add(times(v[0], v[1]), v[2])
        if op in ("IADD3", "VIADD") and ".X" not in name:
            return add(*v)
        if name in ("LEA", "ULEA") and len(v) == 3 and known(v[2]):
            return add(times(v[0], number(1 << v[2][1][0])), v[1])
        if name.startswith(("SHF.L.U32", "USHF.L.U32")) and known(v[1]):
            return times(v[0], number(1 << (v[1][1][0] & 31)))
        if name.startswith(("SHF.R", "USHF.R")) and known(v[1]) and len(v) == 3:
            return bitwise(lambda x, s, y: x >> (s & 31), v[2] if name.endswith(".HI") else v[0], v[1], v[2])
        if op == "LOP3" and len(v) >= 4:
            return lop3(v[3], *v[:3])
        return UNIFORM if v and all(map(is_uniform, v)) else None

    def follow(self, i):
        target = re.fullmatch(r"U?R\d+", i.target)
        if not target or i.op in ("STS", "STG", "STL", "BRA"):
            return
        new, old = self.result(i), self.registers.get(target.group(0))
        if i.guard and new != old:
            new = UNIFORM if is_uniform(new) and is_uniform(old) else None
        for n in i.written() or ():
            self.registers["R%d" % n] = None
        self.registers[target.group(0)] = new

    def address(self, text):
        """Of [R5+UR4+0x10]; None where it is not known."""
        inside = re.search(r"\[([^\]]+)\]", text)
        if not inside:
            return None
        parts = []
        for part in inside.group(1).replace("+-", "+ -").split("+"):
            scale = re.search(r"\.X(4|8|16)", part)
            v = self.value(re.sub(r"\.(X\d+|64|U32)", "", part))
            parts.append(times(v, number(int(scale.group(1)))) if scale else v)
        return add(*parts)


def conflicts(address, width):
    """Whether a bank is asked for two words at once: of 4 bytes by all lanes, of 8 by half of them, of 16 by eight."""
    at_once = 32 * 4 // max(width, 4)
    for first in range(0, 32, at_once):
        words = {(a + 4 * k) // 4 for a in address[1][first:first + at_once] for k in range(max(1, width // 4))}
        if len(words) > len({w % 32 for w in words}):
            return True
    return False


def count(code):
    """How many accesses conflict, of how many whose addresses are known."""
    machine, bad, all_known = Machine(), 0, 0
    for i in code:
        if i.op in ("LDS", "STS", "LDSM", "LDGSTS"):
            at = machine.address(i.operands[1] if i.op in ("LDS", "LDSM") else i.operands[0])
            if at is not None:
                all_known += 1
                bad += conflicts(at, 16 if i.op in ("LDSM", "LDGSTS") else i.width())
        machine.follow(i)
    return bad, all_known
