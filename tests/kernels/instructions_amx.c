/* instructions_amx.c: single instructions of AMX, and a chain of tile products, for amx.c. */
#if defined(__x86_64__)
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/cpu/amx.h"
#include "tests/kernels/amx.h"

void amx_chain(float *c, const uint16_t *a, const uint16_t *b, int steps)
{
    tile_config();
    /* gcc 12 does not know that a tile load reads memory: finish the stores before it */
    __asm__ volatile("" : : : "memory");
    tile_load(0, c, 64);
    for (int i = 0; i < steps; i++) {
        tile_load(4, a + i * 512, 64);
        tile_load(6, b + i * 512, 64);
        tile_dp(0, 4, 6);
    }
    tile_store(0, c, 64);
    tile_release();
}

/* ---- misuse ---- */

typedef struct tile_shapes {
    uint8_t palette, start, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} tile_shapes;

/* Configure the first four tiles with 16 rows of 64 bytes, but tile t with other sizes. */
static void configure(int palette, int t, int rows, int bytes)
{
    tile_shapes c = {.palette = (uint8_t)palette};
    for (int i = 0; i < 4; i++) c.rows[i] = 16, c.bytes[i] = 64;
    c.rows[t] = (uint8_t)rows, c.bytes[t] = (uint16_t)bytes;
    __asm__ volatile("ldtilecfg %0" : : "m"(c));
}

static void zero_first(void) { __asm__ volatile("tilezero %tmm0"); }
static void not_configured(void) { zero_first(); }
static void released(void) { tile_config(), tile_release(), zero_first(); }
static void palette_0(void) { tile_config(), configure(0, 0, 16, 64), zero_first(); }
static void palette_2(void) { configure(2, 0, 16, 64); }
static void rows_17(void) { configure(1, 2, 17, 64); }
static void bytes_68(void) { configure(1, 2, 16, 68); }
static void rows_alone(void) { configure(1, 2, 16, 0); }
static void tile_9(void) { configure(1, 8, 16, 64); }
static void no_shape(void)
{
    configure(1, 2, 0, 0);
    tile_zero(2);
}
static void past_shapes(void)
{
    configure(1, 0, 16, 64);
    tile_zero(4);
}

static void reserved_byte(void)
{
    tile_shapes c = {.palette = 1, .reserved = {[13] = 1}};
    __asm__ volatile("ldtilecfg %0" : : "m"(c));
}

/* Encodings that assemblers refuse. */
#define BYTES(name, bytes)                \
    static void name(void)                \
    {                                     \
        tile_config();                    \
        __asm__ volatile(".byte " bytes); \
    }
BYTES(left_is_sum, "0xc4, 0xe2, 0x4a, 0x5c, 0xe4")     /* tdpbf16ps tmm4, tmm4, tmm6 */
BYTES(right_is_sum, "0xc4, 0xe2, 0x4a, 0x5c, 0xf4")    /* tdpbf16ps tmm6, tmm4, tmm6 */
BYTES(left_is_right, "0xc4, 0xe2, 0x4a, 0x5c, 0xc6")   /* tdpbf16ps tmm0, tmm6, tmm6 */
BYTES(sum_in_9, "0xc4, 0x62, 0x4a, 0x5c, 0xc4")        /* tdpbf16ps tmm8, tmm4, tmm6 */
BYTES(load_to_9, "0xc4, 0x62, 0x7b, 0x4b, 0x04, 0x20") /* tileloadd tmm8, [rax + riz] */
BYTES(without_sib, "0xc4, 0xe2, 0x7b, 0x4b, 0x00")     /* tileloadd tmm0, [rax], no SIB byte */
BYTES(third_operand, "0xc4, 0xe2, 0x43, 0x4b, 0x04, 0x20")

/* Tiles are configured in one thread, while another waits. (On Linux, a thread that begins later
 * has its creator's configuration.) */
static void *in_thread(void *configured)
{
    pthread_barrier_wait(configured);
    zero_first();
    return NULL;
}

static void other_thread(void)
{
    pthread_barrier_t configured;
    pthread_t thread;
    pthread_barrier_init(&configured, NULL, 2);
    if (pthread_create(&thread, NULL, in_thread, &configured) != 0) return;
    tile_config();
    pthread_barrier_wait(&configured);
    pthread_join(thread, NULL);
}

static void no_memory(void)
{
    char *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    tile_config();
    tile_load(0, none, 64);
}

const amx_misuse amx_misuses[] = {
    {"not configured", SIGILL, not_configured},
    {"released", SIGILL, released},
    {"palette 0", SIGILL, palette_0},
    {"palette 2", SIGSEGV, palette_2},
    {"17 rows", SIGSEGV, rows_17},
    {"68 bytes", SIGSEGV, bytes_68},
    {"rows of no bytes", SIGSEGV, rows_alone},
    {"shape of a 9th tile", SIGSEGV, tile_9},
    {"a reserved byte", SIGSEGV, reserved_byte},
    {"a tile without a shape", SIGILL, no_shape},
    {"a tile past the shapes", SIGILL, past_shapes},
    {"left tile is the sum", SIGILL, left_is_sum},
    {"right tile is the sum", SIGILL, right_is_sum},
    {"left tile is the right one", SIGILL, left_is_right},
    {"sum in a 9th tile", SIGILL, sum_in_9},
    {"a load into a 9th tile", SIGILL, load_to_9},
    {"a load without a SIB byte", SIGILL, without_sib},
    {"a load with a third operand", SIGILL, third_operand},
    {"configured in another thread", SIGILL, other_thread},
    {"a load from a page without access", SIGSEGV, no_memory},
    {0},
};

/* ---- addresses ---- */

#define LOAD(name, base, index, operand)                                                 \
    static void name(const char *from, long line)                                        \
    {                                                                                    \
        register const char *b __asm__(base) = from;                                     \
        register long i __asm__(index) = line;                                           \
        __asm__ volatile("tileloadd " operand ", %%tmm3" : : "r"(b), "r"(i) : "memory"); \
    }
LOAD(load_plain, "rax", "rcx", "(%%rax,%%rcx,1)")
LOAD(load_near, "r13", "r9", "0x40(%%r13,%%r9,1)")
LOAD(load_before, "r12", "rdi", "-64(%%r12,%%rdi,1)")
LOAD(load_far, "rsi", "r12", "0x400(%%rsi,%%r12,1)")
LOAD(load_scaled, "rbx", "r15", "(%%rbx,%%r15,4)")
LOAD(load_one_row, "rdx", "r8", "(%%rdx)")

static const struct {
    const char *name;
    void (*load)(const char *from, long line);
    long offset, index, line; /* the index register's value, and the bytes between rows */
} forms[] = {
    {"base and index", load_plain, 0, 64, 64},
    {"rows backwards", load_plain, 0, -100, -100},
    {"displacement of a byte", load_near, 64, 96, 96},
    {"negative displacement", load_before, -64, 72, 72},
    {"displacement of four bytes", load_far, 1024, 64, 64},
    {"scaled index", load_scaled, 0, 20, 80},
    {"no index", load_one_row, 0, 64, 0},
};

/* Return whether STTILECFG gives back what LDTILECFG took from an address relative to RIP. */
static int same_shapes(void)
{
    static const tile_shapes want = {
        .palette = 1, .bytes = {64, 64, 0, 64}, .rows = {16, 16, 0, 16}};
    tile_shapes got;
    __asm__ volatile("ldtilecfg %0" : : "m"(want));
    __asm__ volatile("sttilecfg %0" : "=m"(got));
    return memcmp(&got, &want, sizeof got) == 0;
}

const char *amx_wrong_address(void)
{
    static char memory[6144], out[16][96];
    const char *middle = memory + 2048;
    for (size_t i = 0; i < sizeof memory; i++) memory[i] = (char)(i * 7 + i / 256);
    if (!same_shapes()) return "configuration";
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        memset(out, 0x55, sizeof out);
        forms[f].load(middle, forms[f].index);
        tile_store(3, out, sizeof out[0]);
        for (int r = 0; r < 16; r++)
            if (memcmp(out[r], middle + forms[f].offset + r * forms[f].line, 64) != 0 ||
                out[r][64] != 0x55)
                return forms[f].name;
    }
    tile_release();
    return NULL;
}
#endif
