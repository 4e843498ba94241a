/* trap_amx.c: implements trap_amx.h. Intel's manual, volume 2, defines the encodings
 * (VEX.128.0F38.W0) and the exceptions. kernels/cpu/amx.h defines the arithmetic. */
#include "tests/kernels/trap/trap_amx.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { TILES = 8, ROWS = 16, BYTES = 64 };

/* The 64 bytes of an LDTILECFG. */
typedef struct tile_shapes {
    uint8_t palette, start, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} tile_shapes;

static _Thread_local tile_shapes shapes; /* palette 0: no tile is configured */
static long held;

/* An instruction: the fields of its VEX prefix, its opcode and its operands. */
typedef struct instruction {
    unsigned prefix, opcode; /* prefix: 0 none, 1 0x66, 2 0xf3, 3 0xf2 */
    unsigned reg, rm, vvvv;  /* numbers of registers */
    /* memory: 1: the second operand is in memory; has_sib: 1: it has a SIB byte */
    int memory, has_sib;
    /* address of the memory operand; for a tile, without the index register */
    char *address;
    /* value of the index register times the scale; 0: no index register */
    int64_t line;
    const unsigned char *next; /* the instruction after it */
} instruction;

/* ---- the operations, in vectors of AVX-512 ---- */

static _Thread_local uint8_t amx_tiles[8][16][64];

/* Fill all tiles with NaN, so that code that relies on their old contents gives wrong results. */
static void fill_tiles(void) { memset(amx_tiles, 0xff, sizeof amx_tiles); }
static void tile_zero(int t) { memset(amx_tiles[t], 0, sizeof amx_tiles[t]); }
static void tile_load(int t, const void *from, long line)
{
    for (int r = 0; r < 16; r++) memcpy(amx_tiles[t][r], (const char *)from + r * line, 64);
}
static void tile_store(int t, void *to, long line)
{
    for (int r = 0; r < 16; r++) memcpy((char *)to + r * line, amx_tiles[t][r], 64);
}

/* Emulate a tile product. The vector unit flushes denormals to 0. The compiler barriers keep loads
 * and stores, and thus the arithmetic between them, where that mode is on. */
static void tile_dp(int c, int a, int b)
{
    const unsigned before = _mm_getcsr();
    _mm_setcsr(0x9fc0); /* round to nearest, denormals are 0, no exceptions */
    __asm__ volatile("" : : : "memory");
    for (int m = 0; m < 16; m++) {
        __m512 even = _mm512_setzero_ps(), odd = even;
        for (int k = 0; k < 16; k++) {
            uint32_t x;
            memcpy(&x, amx_tiles[a][m] + 4 * k, 4);
            __m512i left = _mm512_set1_epi32((int)x), right = _mm512_loadu_si512(amx_tiles[b][k]);
            const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
            even = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(left, 16)),
                                   _mm512_castsi512_ps(_mm512_slli_epi32(right, 16)), even);
            odd = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(left, upper)),
                                  _mm512_castsi512_ps(_mm512_and_si512(right, upper)), odd);
        }
        __m512 sum = _mm512_add_ps(even, odd);
        _mm512_storeu_ps(amx_tiles[c][m], _mm512_add_ps(_mm512_loadu_ps(amx_tiles[c][m]), sum));
    }
    __asm__ volatile("" : : : "memory");
    _mm_setcsr(before);
}

/* ---- faults ---- */

/* Print why the instruction at `at` faults, and raise the signal. The signal ends the process,
 * unless the program's own handler jumps away. */
static void fault(int signal_number, const void *at, const char *why)
{
    char text[160];
    int n = snprintf(text, sizeof text, "AMX emulation: at %p: %s\n", at, why);
    if (write(STDERR_FILENO, text, (size_t)n) < n) _exit(1);
    if (signal_number == SIGILL) signal(SIGILL, SIG_DFL); /* the present handler is on_illegal */
    raise(signal_number);
    _exit(1);
}

static void invalid(const instruction *i, const char *why) { fault(SIGILL, i->next, why); }

/* ---- decoding ---- */

static int64_t of_register(const ucontext_t *u, unsigned number)
{
    static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};
    return u->uc_mcontext.gregs[order[number]];
}

static int64_t displacement(const unsigned char *at, unsigned size)
{
    int32_t wide = 0;
    if (size == 1) return (int8_t)*at;
    memcpy(&wide, at, size);
    return wide;
}

/* Decode a memory operand from its ModRM byte on. `x` and `b` are VEX's extensions of the index and
 * the base register. */
static void decode_memory(instruction *i, const ucontext_t *u, const unsigned char *at, unsigned x,
                          unsigned b)
{
    unsigned mod = *at >> 6, size = mod == 1 ? 1 : mod == 2 ? 4 : 0, base = *at++ & 7;
    int64_t address = 0;
    i->has_sib = base == 4;
    if (i->has_sib) {
        unsigned index = (*at >> 3 & 7) | x, scale = *at >> 6;
        if (index != 4) i->line = (int64_t)((uint64_t)of_register(u, index) << scale);
        base = *at++ & 7;
    }
    int no_base = base == 5 && mod == 0;
    if (no_base) size = 4;
    else address = of_register(u, base | b);
    address += displacement(at, size);
    i->next = at + size;
    if (no_base && !i->has_sib) address += (int64_t)(uintptr_t)i->next; /* relative to RIP */
    i->address = (char *)(uintptr_t)address;
}

/* Decode the instruction at `at`. If it is not an AMX instruction, return 0. */
static int decode(instruction *i, const ucontext_t *u, const unsigned char *at)
{
    /* bytes: c4; R' X' B' 00010; W vvvv' L pp; opcode; ModRM. A ' marks bits that are stored
     * inverted. */
    if (at[0] != 0xc4 || (at[1] & 31) != 2 || at[2] & 0x84) return 0;
    unsigned opcode = at[3], r = at[1] >> 7 ? 0 : 8, x = at[1] >> 6 & 1 ? 0 : 8,
             b = at[1] >> 5 & 1 ? 0 : 8;
    if (opcode != 0x49 && opcode != 0x4b && opcode != 0x5c) return 0;
    *i = (instruction){.prefix = at[2] & 3,
                       .opcode = opcode,
                       .reg = (at[4] >> 3 & 7) | r,
                       .rm = (at[4] & 7) | b,
                       .vvvv = (unsigned)~at[2] >> 3 & 15,
                       .memory = at[4] >> 6 != 3,
                       .next = at + 5};
    if (i->memory) decode_memory(i, u, at + 4, x, b);
    return 1;
}

/* ---- the instructions ---- */

/* Use the 64 bytes at `from` as the shapes of tiles, as LDTILECFG does. Invalid shapes are general
 * protection faults. */
static void configure(const instruction *i, const char *from)
{
    tile_shapes c;
    int before = shapes.palette;
    memcpy(&c, from, sizeof c);
    for (int k = 0; k < 14; k++)
        if (c.reserved[k]) fault(SIGSEGV, i->next, "LDTILECFG: a reserved byte is not 0");
    for (int t = 0; t < 16 && c.palette; t++) {
        int is_none = !c.rows[t] && !c.bytes[t];
        if (t >= TILES && !is_none) fault(SIGSEGV, i->next, "LDTILECFG: shape of a 9th tile");
        if (c.rows[t] > ROWS || c.bytes[t] > BYTES || (!is_none && !(c.rows[t] && c.bytes[t])))
            fault(SIGSEGV, i->next, "LDTILECFG: no such shape");
        if (!is_none && (c.rows[t] < ROWS || c.bytes[t] < BYTES))
            fault(SIGSEGV, i->next, "LDTILECFG: the emulation has 16 rows of 64 bytes only");
    }
    if (c.palette > 1) fault(SIGSEGV, i->next, "LDTILECFG: no such palette");
    if (!c.palette) memset(&c, 0, sizeof c);
    shapes = c;
    fill_tiles();
    __atomic_fetch_add(&held, c.palette ? 1 : -before, __ATOMIC_RELAXED);
}

/* Fault unless tile number t is configured. */
static void need(const instruction *i, unsigned t)
{
    if (!shapes.palette) invalid(i, "no tile is configured");
    if (t >= TILES || !shapes.rows[t]) invalid(i, "this tile is not configured");
}

static void multiply(const instruction *i)
{
    need(i, i->reg), need(i, i->rm), need(i, i->vvvv);
    if (i->reg == i->rm || i->reg == i->vvvv || i->rm == i->vvvv)
        invalid(i, "TDPBF16PS: two of the tiles are the same");
    tile_dp((int)i->reg, (int)i->rm, (int)i->vvvv);
}

static void move(const instruction *i)
{
    need(i, i->reg);
    if (!i->has_sib) invalid(i, "TILELOADD or TILESTORED without a SIB byte");
    if (i->prefix == 2) tile_store((int)i->reg, i->address, i->line);
    else tile_load((int)i->reg, i->address, i->line);
}

/* Execute the instruction. If it turns out not to be an AMX instruction, return 0. */
static int execute(const instruction *i)
{
    /* opcode, prefix, and 4 for a memory operand */
    unsigned what = i->opcode << 4 | i->prefix | (i->memory ? 4 : 0);
    if (i->opcode != 0x5c && i->vvvv) invalid(i, "a register in VEX.vvvv");
    switch (what) {
    case 0x494: /* LDTILECFG */
        if (i->reg & 7) return 0;
        configure(i, i->address);
        break;
    case 0x490: { /* TILERELEASE */
        static const tile_shapes none;
        if (i->reg || i->rm) return 0;
        configure(i, (const char *)&none);
        break;
    }
    case 0x493: /* TILEZERO */
        if (i->rm) return 0;
        need(i, i->reg);
        tile_zero((int)i->reg);
        break;
    case 0x4b7: /* TILELOADD */
    case 0x4b5: /* TILELOADDT1 */
    case 0x4b6: /* TILESTORED */ move(i); break;
    case 0x5c2: /* TDPBF16PS */ multiply(i); break;
    default: return 0;
    }
    return 1;
}

/* Handle SIGILL: execute AMX instructions from the invalid instruction on, until the first
 * instruction that is not AMX's. */
static void on_illegal(int number, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    greg_t *rip = &u->uc_mcontext.gregs[REG_RIP];
    instruction i;
    int done = 0;
    (void)info;
    while (decode(&i, u, (const unsigned char *)*rip) && execute(&i)) {
        *rip = (greg_t)(uintptr_t)i.next;
        done = 1;
    }
    /* The instruction is executed again, and now the signal ends the process. */
    if (!done) signal(number, SIG_DFL);
}

void trap_amx(void)
{
    struct sigaction action = {.sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGILL, &action, NULL);
}

long trap_amx_held(void) { return __atomic_load_n(&held, __ATOMIC_RELAXED); }
#endif
