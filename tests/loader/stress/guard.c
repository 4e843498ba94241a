/* guard.c: stress the guard against SIGBUS. Shards are cut short while threads draw from them.
 * Other threads raise and handle SIGBUS at addresses of their own, and others open and close
 * loaders. A plain program without Criterion, so that it runs under the sanitizers:
 *
 *     make SAN=thread build/thread/tests/stress-guard && build/thread/tests/stress-guard [ROUNDS]
 *
 * In each of ROUNDS rounds (default 40), every batch must be right, or fail because some of its
 * windows were cut off. Exit 0: that was so, and every SIGBUS that a thread raised itself reached
 * its handler. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/loader/stress/shards.h"

enum { B = 4, T = 512, SHARDS = 3, TOKENS = 60000, DRAWERS = 3, BATCHES = 300, PAGE = 4096 };

static int ending; /* atomic */

static uint16_t token_at(uint32_t shard, uint64_t i)
{
    return (uint16_t)((shard * 7919 + i * 31 + (i >> 8)) % 50256 + 1);
}

static char *name_of(char name[32], uint32_t shard)
{
    snprintf(name, 32, "d/train_%06u.bin", shard);
    return name;
}

/* Write new files: loaders that have mapped the old ones keep those. */
static void make_shards(void)
{
    char name[32];
    for (uint32_t s = 0; s < SHARDS; s++) make_shard(name_of(name, s), s, TOKENS);
}

static sgt_loader *open_set(void)
{
    sgt_loader *l;
    sgt_error err;
    sgt_loader_options o = {
        .size = sizeof o, .data = "d", .reader = SGT_READER_MMAP, .batch = B, .seq = T};
    if (sgt_loader_open(&l, &o, &err) < 0) fail("opening", err.text);
    return l;
}

/* ---- threads that draw, while shard 1 is cut ---- */

typedef struct drawer {
    const sgt_loader *l;
    uint64_t first, size; /* size: bytes left of shard 1 */
    int failed;
    pthread_t id;
} drawer;

static void check_row(const drawer *d, uint64_t row, const uint16_t *got)
{
    uint32_t shard;
    uint64_t at;
    sgt_loader_window(d->l, row, &shard, &at);
    for (uint64_t t = 0; t <= T; t++)
        if (got[t] != token_at(shard, at + t)) fail("a row", "not its tokens");
}

static int past(const drawer *d, uint64_t batch)
{
    int n = 0;
    for (uint64_t r = 0; r < B; r++) {
        uint32_t shard;
        uint64_t at;
        sgt_loader_window(d->l, batch * B + r, &shard, &at);
        n += shard == 1 && SGT_SHARD_HEADER + 2 * (at + T + 1) > d->size;
    }
    return n;
}

static void *draw(void *arg)
{
    drawer *d = arg;
    uint16_t rows[B * (T + 1)];
    scoped(sgt_cursor) *c = NULL;
    sgt_error err;
    if (sgt_cursor_open(&c, d->l, &err) < 0) fail("a cursor", err.text);
    for (uint64_t k = d->first; k < d->first + BATCHES; k++) {
        if (read_rows(d->l, c, k, rows, &err) < 0) {
            if (!past(d, k) || !strstr(err.text, "d/train_000001.bin: "))
                fail("a batch that is there", err.text);
            d->failed++;
        } else {
            for (uint64_t r = 0; r < B; r++) check_row(d, k * B + r, rows + r * (T + 1));
        }
    }
    return NULL;
}

/* Run round n. In every other round the shard's name is replaced before the cut, so that only
 * SIGBUS reveals it. */
static void round_of(unsigned n)
{
    drawer d[DRAWERS];
    int fd, failed = 0;
    make_shards();
    scoped(sgt_loader) *l = open_set();
    fd = open("d/train_000001.bin", O_WRONLY);
    if (fd < 0 || (n % 2 && unlink("d/train_000001.bin") < 0)) fail("shard 1", "cannot be had");
    uint64_t size = n % 2 ? (n % 7 + 1) * PAGE : n * 1111 % 50000;
    for (unsigned i = 0; i < DRAWERS; i++) {
        d[i] = (drawer){.l = l, .first = i * BATCHES, .size = size};
        start_thread(&d[i].id, draw, &d[i]);
    }
    usleep(n % 5 * 300);
    if (ftruncate(fd, (off_t)size) < 0) fail("shard 1", "cannot be cut");
    close(fd);
    for (unsigned i = 0; i < DRAWERS; i++) {
        pthread_join(d[i].id, NULL);
        failed += d[i].failed;
    }
    if (!failed) fprintf(stderr, "stress-guard: round %u: the cut came too late\n", n);
}

/* ---- threads that raise SIGBUS at addresses of their own ---- */

static __thread sigjmp_buf escape;
static __thread void *volatile caught;

static void own(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    caught = info->si_addr;
    siglongjmp(escape, 1);
}

static void *fault(void *arg)
{
    volatile char *p = arg;
    unsigned volatile times = 0;
    while (!__atomic_load_n(&ending, __ATOMIC_RELAXED)) {
        volatile char *at = p + times % PAGE;
        if (!sigsetjmp(escape, 1)) {
            (void)*at;
            fail("a fault", "there was none");
        }
        if (caught != (void *)(p + times % PAGE)) fail("a fault", "not where it was");
        times++;
        usleep(100);
    }
    return NULL;
}

static void *open_and_close(void *arg)
{
    while (!__atomic_load_n(&ending, __ATOMIC_RELAXED)) {
        scoped(sgt_loader) *l = NULL;
        sgt_loader_options o = {.size = sizeof o, .data = "still.bin", .reader = SGT_READER_MMAP};
        if (sgt_loader_open(&l, &o, NULL) < 0) fail("opening", "another set");
    }
    return arg;
}

int main(int argc, char **argv)
{
    unsigned rounds = (unsigned)argument(argc, argv, 1, 1, 40);
    char folder[SCRATCH_SIZE];
    pthread_t id[2];
    sgt_error err;
    struct sigaction a = {.sa_sigaction = own, .sa_flags = SA_SIGINFO};
    enter_scratch(folder, "/tmp");
    if (mkdir("d", 0777) < 0) fail("d", "cannot make it");
    make_shards();
    if (rename("d/train_000002.bin", "still.bin") < 0) fail("still.bin", "cannot make it");
    if (sigaction(SIGBUS, &a, NULL) < 0 || sgt_loader_guard_sigbus(&err) < 0)
        fail("the guard", err.text);
    int fd = open("empty", O_RDWR | O_CREAT, 0666);
    char *nothing = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    if (fd < 0 || nothing == MAP_FAILED) fail("empty", "cannot map it");
    start_thread(&id[0], fault, nothing);
    start_thread(&id[1], open_and_close, NULL);
    for (unsigned n = 1; n <= rounds; n++) round_of(n);
    __atomic_store_n(&ending, 1, __ATOMIC_RELAXED);
    pthread_join(id[0], NULL);
    pthread_join(id[1], NULL);
    remove_scratch(folder);
    printf("stress-guard: %u rounds\n", rounds);
    return 0;
}
