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
    {"configured in another thread", SIGILL, other_thread},
    {"a load from a page without access", SIGSEGV, no_memory},
    {0},
};
#endif
