/* loader_limits.c: compares each part of the loader with its limit: the best that other programs
 * reach, memory, or the disk. A line compares two results of one group, which were measured in
 * alternating turns. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/bench/loader.h"

typedef enum line_kind {
    SPEED, /* compare the speed of ours with the other's */
    CPU,   /* show the CPU time that each takes, in cores */
    WAIT   /* show microseconds */
} line_kind;
typedef enum unit { TOKENS, REQUESTS, BYTES } unit;

/* Groups of lines. Lines of one group are measured together; the user selects lines by name. */
typedef enum group_kind { WARM, NARROW, COLD, BLOCKS, FILL, GROUPS } group_kind;

typedef struct side {
    int who, output;
    loader_way way;
    int threads;
} side;

typedef struct loader_limit {
    const char *name;
    group_kind group;
    side ours, other;
    const char *ours_text, *other_text;
    line_kind kind;
    unit unit;
} loader_limit;

#define U16 SGT_OUTPUT_U16
#define I32 SGT_OUTPUT_I32
#define PRELOAD SGT_READER_PRELOAD
#define MMAP SGT_READER_MMAP
#define URING SGT_READER_URING

static const loader_limit limits[] = {
    {"numpy",
     WARM,
     {PRELOAD, I32, 0, 1},
     {LOADER_WINDOW, I32, 0, 1},
     "preload, i32",
     "numpy, sliding windows, i32",
     SPEED,
     TOKENS},
    {"memcpy",
     WARM,
     {PRELOAD, U16, 0, 1},
     {LOADER_MEMCPY, U16, 0, 1},
     "preload, u16",
     "memcpy of the same windows",
     SPEED,
     TOKENS},
    {"memcpy",
     WARM,
     {PRELOAD, I32, 0, 1},
     {LOADER_MEMCPY, U16, 0, 1},
     "preload, i32",
     "memcpy of the same windows",
     SPEED,
     TOKENS},
    {"memory",
     WARM,
     {PRELOAD, U16, 0, 1},
     {LOADER_READ, U16, 0, 1},
     "preload, u16",
     "reading them and no more",
     SPEED,
     TOKENS},
    {"memory",
     WARM,
     {PRELOAD, U16, 0, 2},
     {LOADER_READ, U16, 0, 2},
     "preload, u16, two threads",
     "reading them and no more",
     SPEED,
     TOKENS},
    {"scalar",
     NARROW,
     {PRELOAD, I32, 0, 1},
     {PRELOAD, I32, LOADER_SCALAR, 1},
     "preload, i32, 64 rows of 512",
     "a token at a time",
     SPEED,
     TOKENS},
    {"mmap",
     WARM,
     {MMAP, U16, 0, 1},
     {PRELOAD, U16, 0, 1},
     "mmap, warm, u16",
     "preload",
     SPEED,
     TOKENS},
    {"mmap",
     WARM,
     {MMAP, I32, 0, 1},
     {PRELOAD, I32, 0, 1},
     "mmap, warm, i32",
     "preload",
     SPEED,
     TOKENS},
    {"threads",
     WARM,
     {PRELOAD, U16, 0, 2},
     {PRELOAD, U16, 0, 1},
     "preload, u16, two threads",
     "one thread",
     SPEED,
     TOKENS},
    {"threads",
     WARM,
     {PRELOAD, I32, 0, 2},
     {PRELOAD, I32, 0, 1},
     "preload, i32, two threads",
     "one thread",
     SPEED,
     TOKENS},
    {"threads",
     WARM,
     {LOADER_MEMCPY, U16, 0, 2},
     {LOADER_MEMCPY, U16, 0, 1},
     "(memcpy, two threads)",
     "one thread",
     SPEED,
     TOKENS},
    {"stream",
     WARM,
     {PRELOAD, U16, LOADER_STREAM, 1},
     {PRELOAD, U16, 0, 1},
     "stream, u16: wait for a batch",
     "a batch without a stream",
     WAIT,
     TOKENS},
    {"stream",
     WARM,
     {PRELOAD, I32, LOADER_STREAM, 1},
     {PRELOAD, I32, 0, 1},
     "stream, i32: wait for a batch",
     "a batch without a stream",
     WAIT,
     TOKENS},
    {"random",
     COLD,
     {URING, I32, 0, 1},
     {LOADER_FIO, LOADER_BYTES, 0, 1},
     "uring, cold, i32",
     "fio, random, depth 128",
     SPEED,
     REQUESTS},
    {"random",
     COLD,
     {URING, I32, 0, 1},
     {LOADER_FIO, LOADER_BYTES, 0, 1},
     "  CPU that it takes",
     "fio",
     CPU,
     REQUESTS},
    {"ahead",
     COLD,
     {MMAP, I32, 0, 1},
     {LOADER_FIO, LOADER_BYTES, 0, 1},
     "mmap, cold, i32",
     "fio, random, depth 128",
     SPEED,
     REQUESTS},
    {"block",
     BLOCKS,
     {URING, I32, 0, 1},
     {LOADER_FIO, LOADER_BYTES, 0, 1},
     "uring, cold, block, i32",
     "fio, random 256 KiB, depth 16",
     SPEED,
     BYTES},
    {"block",
     BLOCKS,
     {URING, I32, 0, 1},
     {LOADER_FIO, LOADER_BYTES, 0, 1},
     "  CPU that it takes",
     "fio",
     CPU,
     BYTES},
    {"fill",
     FILL,
     {PRELOAD, U16, LOADER_FILL, 1},
     {LOADER_FIO, LOADER_BYTES, LOADER_FILL, 1},
     "preload, cold: opening",
     "fio, in turn, 1 MiB, depth 16",
     SPEED,
     BYTES},
    {"fill",
     FILL,
     {PRELOAD, U16, LOADER_FILL, 1},
     {LOADER_FIO, LOADER_BYTES, LOADER_FILL, 1},
     "  CPU that it takes",
     "fio",
     CPU,
     BYTES},
};
enum { LIMITS = sizeof limits / sizeof *limits };
_Static_assert((int)LIMITS <= (int)LOADER_LINES, "room for all lines");

static const char *const names[] = {"numpy",  "memcpy", "memory", "scalar", "mmap", "threads",
                                    "stream", "random", "ahead",  "block",  "fill"};

int loader_limit_count(void) { return sizeof names / sizeof *names; }
const char *loader_limit_name(int i) { return names[i]; }

static int wanted(const loader_bench *b, const loader_limit *l)
{
    for (int i = 0; i < b->in.line_count; i++)
        if (!strcmp(names[b->in.lines[i]], l->name)) return 1;
    return 0;
}

/* ---- groups ---- */

static uint32_t narrow_seq(const loader_bench *b)
{
    uint32_t seq = 512;
    while (seq > 1 && seq >= b->longest) seq /= 2;
    return seq;
}

static loader_result blank(const loader_bench *b, group_kind kind, const side *s)
{
    return (loader_result){.who = s->who,
                           .output = s->output,
                           .way = s->way,
                           .threads = s->threads,
                           .cold = kind >= COLD,
                           .sampling = kind == BLOCKS ? SGT_SAMPLING_BLOCK
                                       : kind == FILL ? SGT_SAMPLING_SEQUENTIAL
                                                      : SGT_SAMPLING_RANDOM,
                           .batch = kind == NARROW ? 64 : b->in.batches[0],
                           .seq = kind == NARROW ? narrow_seq(b) : b->in.seqs[0]};
}

/* Return the group's result for this combination; append `r` if there is none yet. */
static const loader_result *find(loader_group *g, loader_result r)
{
    for (size_t i = 0; i < g->count; i++) {
        const loader_result *o = &g->results[i];
        if (o->who == r.who && o->output == r.output && o->way == r.way && o->threads == r.threads)
            return o;
    }
    return loader_add_result(g, r);
}

static int lay_out_group(loader_bench *b, group_kind kind, sgt_error *err)
{
    static const side copy = {LOADER_MEMCPY, U16, 0, 1};
    loader_group *g = NULL;
    for (int i = 0; i < LIMITS; i++) {
        const loader_limit *l = &limits[i];
        if (l->group != kind || !wanted(b, l)) continue;
        int rc = g ? SGT_OK : loader_add_group(b, 2 * LIMITS + 1, &g, err);
        if (rc < 0) return rc;
        g->lenient = 1;
        loader_line *line = &b->lines[b->line_count++];
        line->limit = l;
        /* memcpy must be the first result of a group */
        if (kind == WARM) find(g, blank(b, kind, &copy));
        line->ours = find(g, blank(b, kind, &l->ours));
        if (l->other.who == LOADER_WINDOW && !b->o->peer) line->why = "--peer PYTHON was not given";
        else line->other = find(g, blank(b, kind, &l->other));
    }
    return SGT_OK;
}

int loader_limits_lay_out(loader_bench *b, sgt_error *err)
{
    int rc = SGT_OK;
    for (int kind = 0; kind < GROUPS && rc == SGT_OK; kind++)
        rc = lay_out_group(b, (group_kind)kind, err);
    return rc;
}

void loader_limits_conclude(loader_bench *b)
{
    for (size_t i = 0; i < b->line_count; i++) {
        loader_line *l = &b->lines[i];
        if (l->ours->why[0]) l->why = l->ours->why;
        else if (l->other && l->other->why[0]) l->why = l->other->why;
    }
}

/* ---- figures ---- */

static double rate(const loader_bench *b, const loader_limit *l, const loader_result *r)
{
    if (r->way == LOADER_FILL) return 2e-3 * (double)b->tokens / r->us_per_batch;
    if (l->unit == REQUESTS) return 1e3 * r->batch / r->us_per_batch;
    if (l->unit == BYTES) return 2e-3 * r->batch * r->seq / r->us_per_batch;
    return loader_tokens_per_s(r) * 1e-6;
}

static double figure(const loader_bench *b, const loader_limit *l, const loader_result *r)
{
    if (l->kind == CPU) return r->cpu_share;
    return l->kind == WAIT ? r->us_per_batch : rate(b, l, r);
}

static const char *unit_name(const loader_limit *l)
{
    static const char *const rates[] = {"Mtokens/s", "k rows/s", "GB/s"};
    if (l->kind == CPU) return "cores";
    return l->kind == WAIT ? "us" : rates[l->unit];
}

/* A line that compares waits or CPU times has no share. */
double loader_line_share(const loader_bench *b, const loader_line *line)
{
    if (line->why || line->limit->kind != SPEED) return 0;
    return figure(b, line->limit, line->ours) / figure(b, line->limit, line->other);
}

const char *loader_line_ours(const loader_line *line) { return line->limit->ours_text; }
const char *loader_line_other(const loader_line *line) { return line->limit->other_text; }

/* ---- output ---- */

void loader_limits_show(const loader_bench *b)
{
    if (!b->line_count) return;
    char heading[96];
    snprintf(heading, sizeof heading,
             "each beside its limit (batches of %" PRIu32 " x %" PRIu32 ", random windows)",
             b->in.batches[0], b->in.seqs[0]);
    printf("%s%-92s  share\n", b->grid_count ? "\n" : "", heading);
    for (size_t i = 0; i < b->line_count; i++) {
        const loader_line *line = &b->lines[i];
        const loader_limit *l = line->limit;
        if (line->why) {
            printf("%-30s not measured: %.54s\n", l->ours_text, line->why);
            continue;
        }
        int digits = l->kind == CPU || l->unit == BYTES ? 3 : l->kind == WAIT ? 2 : 1;
        printf("%-30s %9.*f %-9s  %-30s %9.*f", l->ours_text, digits, figure(b, l, line->ours),
               unit_name(l), l->other_text, digits, figure(b, l, line->other));
        if (l->kind == SPEED) printf("  %6.3f", loader_line_share(b, line));
        printf("\n");
    }
}

json_t *loader_limits_json(const loader_bench *b)
{
    json_t *all = json_array();
    for (size_t i = 0; i < b->line_count; i++) {
        const loader_line *line = &b->lines[i];
        const loader_limit *l = line->limit;
        json_t *j = json_pack("{s:s, s:s, s:s, s:s}", "limit", l->name, "ours",
                              l->ours_text + strspn(l->ours_text, " "), "other", l->other_text,
                              "unit", unit_name(l));
        if (line->why) json_object_set_new(j, "left_out", json_string(line->why));
        else {
            json_object_set_new(j, "ours_is", json_real(figure(b, l, line->ours)));
            json_object_set_new(j, "other_is", json_real(figure(b, l, line->other)));
            if (l->kind == SPEED)
                json_object_set_new(j, "share", json_real(loader_line_share(b, line)));
        }
        json_array_append_new(all, j);
    }
    return all;
}
