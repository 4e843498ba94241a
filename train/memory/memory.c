/* memory.c: computes the memory of a run before it is allocated. The backend computes its layout
 * without allocating. For a CPU, this file adds the rest of the process: the program, the loader's
 * buffers, and those of a checkpoint. */
#include "train/memory/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "loader/base/arena.h"
#include "train/run/checkpoint.h"
#include "train/data/feed.h"
#include "train/log/metrics.h"
#include "train/run/safetensors.h"
#include "train/run/saver.h"

#define MOST_ROWS (1u << 20) /* largest --batch-size */
/* most bytes that libraries and kernel code may still take on a device */
#define SPARE ((uint64_t)512 << 20)

typedef struct plan {
    sgt_trainer *t;
    sgt_backend_options o;
    /* bytes of the process before data and backend; 0 on a device with its own memory */
    uint64_t program;
    uint64_t room;      /* bytes that the run may use; UINT64_MAX: unknown */
    uint64_t set_bytes; /* bytes of data read into memory, each split rounded up to huge pages */
    int evaluates;
    int copies; /* 1: a checkpoint is copied and then written in the background */
    /* the trainer's recompute_at, while it is being chosen; NULL: all layers recompute the same */
    uint8_t *at;
} plan;

static const char *size(char *buf, size_t n, uint64_t bytes)
{
    if (bytes < (uint64_t)1 << 30) snprintf(buf, n, "%.1f MiB", (double)bytes / 0x1p20);
    else snprintf(buf, n, "%.2f GiB", (double)bytes / 0x1p30);
    return buf;
}

static uint64_t huge_pages(uint64_t bytes)
{
    return (bytes + SGT_ARENA_PAGE - 1) / SGT_ARENA_PAGE * SGT_ARENA_PAGE;
}

/* ---- the data, from its headers ---- */

/* Open data without notices, because the run itself will print them. */
static int in_passing(int (*open)(sgt_trainer *t, const sgt_loader_options *o, sgt_error *err),
                      sgt_trainer *t, const sgt_loader_options *o, sgt_error *err)
{
    const sgt_train_options *said = t->o;
    sgt_train_options silent = *said;
    uint64_t batch = t->s->batch;
    silent.notice = silent.detail = (sgt_notice){0};
    t->o = &silent;
    t->s->batch = o->batch;
    int rc = open(t, o, err);
    t->s->batch = batch;
    t->o = said;
    return rc;
}

/* Add the bytes of the validation split, if they will be read into memory. */
static void look_at_validation(plan *p, const sgt_loader_options *o)
{
    sgt_trainer *t = p->t;
    sgt_loader_info info;
    if (!t->s->eval_every || !t->train || in_passing(sgt_trainer_open_val, t, o, NULL) < 0 ||
        !t->val)
        return;
    sgt_loader_get_info(t->val, &info);
    p->set_bytes += huge_pages(2 * info.tokens);
    p->evaluates = 1;
}

/* Read the headers of the data. Without data, the vocabulary is that of the model's name. */
static int look_at_data(plan *p, sgt_error *err)
{
    sgt_trainer *t = p->t;
    const sgt_settings *s = t->s;
    uint32_t ranks = sgt_ranks_size(t->o->ranks);
    sgt_loader_options o = {
        .reader = SGT_READER_MMAP, .batch = ranks, .ranks = ranks, .seq = (uint32_t)s->seq};
    /* these two also use shards that are shorter than a row */
    if (s->sampling == SGT_SAMPLING_DOCUMENTS || s->sampling == SGT_SAMPLING_PACKED)
        o.sampling = (sgt_sampling)s->sampling;
    if (!s->data) {
        sgt_model m;
        int rc = s->model ? sgt_model_named(&m, s->model, err) : SGT_OK;
        t->info.vocab = s->model ? m.vocab : t->model.vocab;
        return rc;
    }
    int rc = in_passing(sgt_trainer_open_train, t, &o, err);
    if (rc < 0) return rc;
    p->set_bytes = t->train ? huge_pages(2 * t->info.tokens) : 2 * t->info.tokens;
    look_at_validation(p, &o);
    /* mapped data is in the page cache, which the kernel can reclaim */
    if (t->train && s->loader != SGT_READER_PRELOAD) p->set_bytes = 0;
    if (s->sampling == SGT_SAMPLING_PACKED) p->set_bytes += 8 * t->info.documents; /* its plan */
    return SGT_OK;
}

/* ---- bytes ---- */

/* Return the bytes of data read into memory, of batches prepared ahead, and of an evaluation's
 * batch. */
static uint64_t loader_bytes(const plan *p)
{
    const sgt_settings *s = p->t->s;
    uint64_t batches = (s->no_overlap ? 1 : SGT_FEED_AHEAD) + (uint64_t)p->evaluates;
    return p->set_bytes + batches * p->o.batch * (p->o.seq + 1) * 2;
}

/* Return whether steps follow this rank's first save, so that it copies. If the number of steps is
 * undecided, it is computed for p->o's rows; one row per step gives the most steps. */
static int copies(const plan *p)
{
    const sgt_settings *s = p->t->s;
    uint64_t rows = (uint64_t)p->o.batch * sgt_ranks_size(p->t->o->ranks) * s->accum;
    double steps = (double)s->steps;
    if (s->steps == SGT_DEFAULT_COUNT && s->budget > 0)
        steps = s->budget / sgt_pf_days(sgt_model_parameters(&p->o.model), (double)(rows * s->seq));
    else if (s->steps == SGT_DEFAULT_COUNT && s->data)
        steps = ceil(s->epochs * (double)p->t->info.windows_per_epoch / (double)rows);
    return s->save_every && (double)s->save_every < steps && sgt_trainer_writes(p->t);
}

/* Return the bytes of a save's buffers: one for pieces of a tensor, one for pending writes. */
static uint64_t writer_bytes(const sgt_model *m)
{
    size_t most = 0;
    for (size_t i = 0; i < sgt_model_tensors(m); i++) {
        sgt_tensor t;
        sgt_model_tensor(m, i, &t);
        if (t.count > most) most = t.count;
    }
    uint64_t moments = 2 * sizeof(float) * sgt_model_parameters(m);
    return sizeof(float) * (most < SGT_CHECKPOINT_PIECE ? most : SGT_CHECKPOINT_PIECE) +
           (moments < SGT_SAFETENSORS_ROOM ? moments : SGT_SAFETENSORS_ROOM);
}

static void add(sgt_train_estimate *e, const char *name, uint64_t bytes)
{
    if (!bytes) return;
    e->kinds[e->count++] = (sgt_memory_kind){name, bytes};
    e->total += bytes;
}

/* Estimate the memory of steps with the options p->o. */
static int measure(const plan *p, sgt_train_estimate *e, sgt_error *err)
{
    const sgt_cuda_library *cuda = p->t->cuda;
    e->count = 0;
    e->checkpoint = p->copies ? sgt_saver_bytes(&p->o.model, p->o.optim.kind) : 0;
    if (cuda) return cuda->estimate(&p->o, e->kinds, &e->count, &e->total, err);
    int rc = sgt_cpu_backend_estimate(&p->o, e->kinds, &e->count, &e->total, err);
    if (rc < 0) return rc;
    add(e, "page rest", huge_pages(e->total) - e->total);
    add(e, "loader", loader_bytes(p));
    add(e, "checkpoint", e->checkpoint + writer_bytes(&p->o.model));
    add(e, "program", p->program);
    return SGT_OK;
}

/* Return the bytes of memory (the device's, if it is a GPU) that a run with the options p->o takes;
 * UINT64_MAX if they cannot be computed. */
static uint64_t bytes_of(const plan *p)
{
    sgt_train_estimate e;
    return measure(p, &e, NULL) < 0 ? UINT64_MAX : e.total;
}

static uint64_t bytes_with(plan *p, uint64_t rows, const uint8_t *at)
{
    p->o.batch = (uint32_t)rows;
    p->o.recompute_at = at;
    return bytes_of(p);
}

static const uint8_t *everywhere(plan *p, sgt_recompute level)
{
    memset(p->at, level, p->o.model.layers);
    return p->at;
}

/* ---- available memory ---- */

/* Set *x to its largest value over all ranks. */
static int largest(const sgt_trainer *t, double *x, sgt_error *err)
{
    sgt_ranks *r = t->o->ranks;
    double *all = r ? calloc(r->size, sizeof *all) : NULL;
    if (!r) return SGT_OK;
    if (!all) return sgt_fail_memory(err, "ranks");
    all[r->rank] = *x;
    int rc = r->sum(r, all, r->size, err);
    for (uint32_t i = 0; i < r->size && rc == SGT_OK; i++)
        if (i == 0 || all[i] > *x) *x = all[i];
    free(all);
    return rc;
}

/* Find how much memory the run may use. On a CPU, a sixteenth of the free memory is left for other
 * programs, and the ranks on one machine share the rest. */
static int find_room(plan *p, sgt_error *err)
{
    const sgt_trainer *t = p->t;
    sgt_cuda_device d;
    double here = t->o->ranks ? t->o->ranks->local + 1 : 1;
    int rc = largest(t, &here, err);
    if (rc < 0) return rc;
    if (t->s->memory_limit != SGT_DEFAULT_COUNT) {
        p->room = t->s->memory_limit;
    } else if (t->cuda) {
        p->room = UINT64_MAX;
        if (t->cuda->usable(&d, NULL) < 0) return SGT_OK;
        uint64_t spare = d.memory / 32 < SPARE ? d.memory / 32 : SPARE;
        p->room = d.available > spare ? d.available - spare : 0;
    } else {
        p->room = sgt_memory_available();
        if (p->room != UINT64_MAX) p->room = (uint64_t)((double)(p->room / 16 * 15) / here);
    }
    return SGT_OK;
}

/* Write p->room as a text that can follow "of the" or "more than the": "130.0 MiB of
 * --memory-limit", "20.10 GiB free". */
static const char *room_text(const plan *p, char *buf, size_t n)
{
    char a[32];
    snprintf(buf, n, "%s %s", size(a, sizeof a, p->room),
             p->t->s->memory_limit != SGT_DEFAULT_COUNT ? "of --memory-limit" : "free");
    return buf;
}

/* ---- rows ---- */

/* Return the most rows for this rank that fit in memory, up to `most`; 0 if not even one fits. */
static uint64_t most_rows(plan *p, uint64_t most, const uint8_t *at)
{
    uint64_t low = 0, high = most + 1; /* `low` rows fit, `high` rows do not */
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (bytes_with(p, middle, at) <= p->room) low = middle;
        else high = middle;
    }
    return low;
}

static uint64_t limit_of_rows(const plan *p)
{
    uint64_t most = MOST_ROWS, ranks = sgt_ranks_size(p->t->o->ranks);
    if (p->t->info.windows_per_epoch && p->t->info.windows_per_epoch < most)
        most = p->t->info.windows_per_epoch;
    return most / ranks ? most / ranks : 1;
}

static int no_row_fits(plan *p, const uint8_t *at, sgt_error *err)
{
    char need[32], room[64];
    return sgt_fail(err, SGT_ENOMEM,
                    "--batch-size auto: the model and its step need %s with one row, more than the "
                    "%s (use a smaller --model or --seq-len%s)",
                    size(need, sizeof need, bytes_with(p, 1, at)), room_text(p, room, sizeof room),
                    at || p->o.recompute == SGT_RECOMPUTE_BLOCK ? "" : ", or --recompute auto");
}

/* Decide the number of rows. With --recompute auto, take as many as fit without recomputation;
 * recompute only if not even one row fits. */
static int decide_rows(plan *p, sgt_error *err)
{
    sgt_trainer *t = p->t;
    char need[32], room[64];
    uint32_t ranks = sgt_ranks_size(t->o->ranks);
    uint64_t most = limit_of_rows(p), rows = 0;
    int automatic = p->at != NULL;
    const uint8_t *at = NULL;
    for (int level = 0; level <= (automatic ? SGT_RECOMPUTE_BLOCK : 0) && !rows; level++) {
        at = automatic ? everywhere(p, (sgt_recompute)level) : NULL;
        rows = most_rows(p, most, at);
    }
    double fewest = -(double)rows;
    int rc = largest(t, &fewest, err);
    if (rc < 0) return rc;
    rows = (uint64_t)-fewest;
    if (!rows) return no_row_fits(p, at, err);
    t->s->batch = rows * ranks;
    const char *why = rows < most ? "the largest that fits" : "all rows of an epoch";
    if (rows == most && most == MOST_ROWS / ranks) why = "the largest there is";
    sgt_say(&t->o->notice, "--batch-size %" PRIu64 ": %s: %s of the %s%s", t->s->batch, why,
            size(need, sizeof need, bytes_with(p, rows, at)), room_text(p, room, sizeof room),
            ranks > 1 ? ", on each rank" : "");
    return SGT_OK;
}

/* ---- recomputation ---- */

static void set_levels(plan *p, uint32_t gelu, uint32_t block)
{
    memset(p->at, SGT_RECOMPUTE_NONE, p->o.model.layers);
    memset(p->at, SGT_RECOMPUTE_GELU, gelu);
    memset(p->at + gelu, SGT_RECOMPUTE_BLOCK, block);
}

/* Choose what each layer recomputes. GELU and LayerNorm take little time for the memory that they
 * free; a whole block takes much. So take the fewest blocks that fit if all other layers recompute
 * GELU, and then the fewest GELU layers that fit. Layers that recompute blocks come after those
 * that recompute GELU, because the last recomputing layer has its values still in memory and saves
 * the work. */
static int choose_levels(plan *p, uint64_t rows, uint32_t *gelu, uint32_t *block)
{
    uint32_t L = p->o.model.layers;
    for (*block = 0; *block <= L; ++*block) {
        set_levels(p, L - *block, *block);
        if (bytes_with(p, rows, p->at) > p->room) continue;
        for (*gelu = 0; *gelu <= L - *block; ++*gelu) {
            set_levels(p, *gelu, *block);
            if (bytes_with(p, rows, p->at) <= p->room) return 1;
        }
    }
    return 0;
}

static int too_much(plan *p, uint64_t rows, sgt_error *err)
{
    char need[32], room[64], fits[64] = "no --batch-size fits: use a smaller --model or --seq-len";
    const uint8_t *at = p->at ? everywhere(p, SGT_RECOMPUTE_BLOCK) : NULL;
    size(need, sizeof need, bytes_with(p, rows, at));
    uint64_t most = most_rows(p, rows, at);
    if (most)
        snprintf(fits, sizeof fits, "the largest --batch-size that fits: %" PRIu64,
                 most * sgt_ranks_size(p->t->o->ranks));
    return sgt_fail(
        err, SGT_ENOMEM, "the model and its step need %s%s, more than the %s (%s%s)", need,
        at ? " even with --recompute block" : "", room_text(p, room, sizeof room), fits,
        at || p->o.recompute == SGT_RECOMPUTE_BLOCK ? "" : "; --recompute auto keeps less");
}

static int decide_levels(plan *p, sgt_error *err)
{
    char need[32], room[64];
    uint64_t rows = p->t->s->batch / sgt_ranks_size(p->t->o->ranks);
    uint32_t gelu = 0, block = 0;
    if (!p->at) {
        int limited = p->t->s->memory_limit != SGT_DEFAULT_COUNT;
        return limited && bytes_with(p, rows, NULL) > p->room ? too_much(p, rows, err) : SGT_OK;
    }
    if (!choose_levels(p, rows, &gelu, &block)) return too_much(p, rows, err);
    sgt_say(&p->t->o->notice,
            "--recompute auto: nothing in %u layer%s, gelu in %u, block in %u: %s of the %s",
            p->o.model.layers - gelu - block, p->o.model.layers - gelu - block == 1 ? "" : "s",
            gelu, block, size(need, sizeof need, bytes_with(p, rows, p->at)),
            room_text(p, room, sizeof room));
    return SGT_OK;
}

/* ---- a plan ---- */

int sgt_memory_asked(const sgt_settings *s)
{
    return s->batch == SGT_DEFAULT_COUNT || s->recompute == SGT_RECOMPUTE_AUTO ||
           s->memory_limit != SGT_DEFAULT_COUNT;
}

/* Start a plan for t, which owns p->at afterwards. */
static int begin(plan *p, sgt_trainer *t, sgt_error *err)
{
    sgt_plan resolved = {0};
    *p = (plan){.t = t};
    int rc = look_at_data(p, err);
    if (rc == SGT_OK) rc = sgt_trainer_decide_model(t, err);
    if (rc == SGT_OK) rc = sgt_trainer_resolve(t, &resolved, err);
    if (rc < 0) return rc;
    p->o = resolved.backend;
    int automatic = t->s->recompute == SGT_RECOMPUTE_AUTO;
    if (automatic) p->at = t->recompute_at = calloc(t->model.layers, 1);
    if (automatic && !p->at) return sgt_fail_memory(err, "memory");
    if (t->s->batch == SGT_DEFAULT_COUNT) p->o.batch = 1;
    p->copies = copies(p);
    p->program = t->cuda ? 0 : sgt_cpu_backend_program(&p->o);
    return find_room(p, err);
}

static int decide(plan *p, sgt_error *err)
{
    int rc = p->t->s->batch == SGT_DEFAULT_COUNT ? decide_rows(p, err) : SGT_OK;
    if (rc == SGT_OK) rc = decide_levels(p, err);
    p->o.batch = (uint32_t)p->t->s->batch / sgt_ranks_size(p->t->o->ranks);
    return rc;
}

int sgt_memory_plan(sgt_trainer *t, sgt_error *err)
{
    plan p;
    sgt_settings s = *t->s;
    sgt_trainer dry = *t;
    dry.s = &s;
    int rc = begin(&p, &dry, err);
    t->recompute_at = dry.recompute_at;
    if (rc == SGT_OK) rc = decide(&p, err);
    if (rc == SGT_OK) t->s->batch = s.batch;
    sgt_loader_close(dry.train);
    sgt_loader_close(dry.val);
    sgt_examples_free(&dry.examples);
    return rc;
}

int sgt_memory_estimate(sgt_trainer *t, sgt_train_estimate *e, sgt_error *err)
{
    plan p;
    sgt_cuda_device d;
    int rc = begin(&p, t, err);
    if (rc == SGT_OK && sgt_memory_asked(t->s)) rc = decide(&p, err);
    p.copies = copies(&p); /* computed again, for the rows that were decided */
    if (rc == SGT_OK) rc = measure(&p, e, err);
    if (rc < 0) return rc;
    e->model = t->model;
    e->device = t->cuda ? "cuda" : "cpu";
    e->available = sgt_memory_available();
    if (t->cuda) e->available = t->cuda->usable(&d, NULL) == SGT_OK ? d.available : UINT64_MAX;
    return SGT_OK;
}
