/* memory.c: computes how much memory a run will need. The backend reports the sizes of its buffers
 * without allocating them. For a CPU backend, this file adds the rest of the process: the program,
 * the loader's buffers, and the buffers for writing a checkpoint. */
#include "train/memory/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "loader/base/format.h"
#include "loader/base/ids.h"
#include "loader/base/memory.h"
#include "train/run/checkpoint.h"
#include "train/data/feed.h"
#include "train/log/metrics.h"
#include "train/run/safetensors.h"
#include "train/run/saver.h"

#define MOST_ROWS (1u << 20) /* largest --batch-size */
/* GPU libraries and the code of kernels also need GPU memory. Leave 1/32 of the GPU's memory free
 * for them, but at most this many bytes. */
#define SPARE ((uint64_t)512 << 20)
/* measured size in bytes of the heap and stack of one thread of the CPU backend */
#define PER_THREAD ((uint64_t)256 << 10)

/* The run whose memory is computed. To compute the memory with a different number of rows or
 * different recomputation, change o.batch, o.recompute or o.recompute_at. */
typedef struct sizing {
    const sgt_trainer *t;
    sgt_backend_options o;
    uint64_t windows; /* number of training rows per epoch; 0 if unknown */
    /* bytes of memory for training and validation data: the preloaded shards of each split, rounded
     * up to whole huge pages, or the tokens of a file of examples; also the list of documents from
     * which rows are packed */
    uint64_t data;
    /* bytes that the process already uses before it opens the data and the backend; 0 if `room` is
     * GPU memory, in which the program takes no space */
    uint64_t program;
    /* maximum memory of the run in bytes: --memory-limit, or the free memory if that option is not
     * set; UINT64_MAX if unknown */
    uint64_t room;
    /* bytes of memory for the copy of the parameters and moments that a background thread writes to
     * checkpoints */
    uint64_t copy;
    int evaluates;
    /* recomputation (sgt_recompute) of each layer, as currently tried by --recompute auto; NULL:
     * all layers use o.recompute */
    uint8_t *levels;
} sizing;

/* Return the machine's free memory in bytes, divided by the number of ranks on this machine, or
 * UINT64_MAX if unknown. */
static uint64_t free_share(const sgt_trainer *t)
{
    uint64_t all = sgt_memory_available();
    return all == UINT64_MAX ? all : all / sgt_ranks_here(t->o->ranks);
}

static uint64_t huge_pages(uint64_t bytes)
{
    return (bytes + SGT_ARENA_PAGE - 1) / SGT_ARENA_PAGE * SGT_ARENA_PAGE;
}

/* ---- bytes ---- */

/* Compute z->data from the headers of the shards, without reading tokens, and describe the data in
 * *info. If --data is not set, only set info->vocab, to the model's vocabulary size. */
static int measure_data(sizing *z, sgt_loader_info *info, sgt_error *err)
{
    const sgt_config *s = z->t->s;
    uint64_t val;
    sgt_model m = z->t->model;
    if (!s->data) {
        int rc = s->model ? sgt_model_named(&m, s->model, err) : SGT_OK;
        *info = (sgt_loader_info){.vocab = m.vocab};
        return rc;
    }
    int rc = sgt_trainer_measure_data(z->t, info, &val, err);
    if (rc < 0) return rc;
    z->windows = info->windows_per_epoch;
    z->evaluates = val > 0;
    if (sgt_config_examples(s)) z->data = sizeof(int32_t) * info->tokens;
    /* If the shards do not fit in memory, they are mapped instead of preloaded. Mapped pages are
     * not counted, because they belong to the page cache, which the kernel can reclaim. */
    else if (s->loader == SGT_READER_PRELOAD) {
        const size_t width = sgt_id_width(info->vocab);
        const uint64_t room = sgt_memory_for_data(z->t);
        const uint64_t sets[] = {huge_pages(width * info->tokens), huge_pages(width * val)};
        for (int i = 0; i < 2; i++)
            if (s->given[SGT_SET_LOADER] ||
                z->data + sets[i] <= room / sgt_ranks_here(z->t->o->ranks))
                z->data += sets[i];
    }
    /* the plan of packed rows */
    if (s->sampling == SGT_SAMPLING_PACKED) z->data += 8 * info->documents;
    return SGT_OK;
}

/* Return how many bytes the training data needs: the data kept in memory, the batches prepared
 * ahead, and one batch for evaluation. */
static uint64_t loader_bytes(const sizing *z)
{
    uint64_t batches = (z->t->s->step.no_overlap ? 1 : SGT_FEED_AHEAD) + (uint64_t)z->evaluates;
    return z->data + batches * z->o.batch * z->o.seq * 2 * sizeof(int32_t);
}

/* Return the total size in bytes of the two buffers for writing a checkpoint: one for floats read
 * from the backend, and one for bytes not yet written to the file. */
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

/* Return the size in bytes of the copy of the training state that a background thread writes to
 * checkpoints. Return 0 if this rank needs no copy, because it writes no checkpoint, or only one
 * after the last step. If the number of steps is not known yet, compute it from the batch size in
 * z->o. (A smaller batch size gives more steps, so that a copy is more likely to be needed.) */
static uint64_t copy_bytes(const sizing *z)
{
    const sgt_config *s = z->t->s;
    uint64_t rows = (uint64_t)z->o.batch * sgt_ranks_size(z->t->o->ranks) * s->accum;
    double steps = sgt_trainer_steps(s, &z->o.model, z->windows, rows);
    if (!s->save_every || (double)s->save_every >= steps || !sgt_trainer_writes(z->t)) return 0;
    return sgt_saver_bytes(&z->o.model, z->o.optim.kind);
}

static void add(sgt_train_estimate *e, const char *name, uint64_t bytes)
{
    if (!bytes) return;
    e->kinds[e->count++] = (sgt_memory_kind){name, bytes};
    e->total += bytes;
}

/* Set *e to the estimated memory of a run with the backend options z->o. */
static int measure(const sizing *z, sgt_train_estimate *e, sgt_error *err)
{
    const sgt_cuda_library *cuda = z->t->cuda;
    e->count = 0;
    e->checkpoint = z->copy;
    if (cuda) return cuda->estimate(&z->o, e->kinds, &e->count, &e->total, err);
    int rc = sgt_cpu_backend_estimate(&z->o, e->kinds, &e->count, &e->total, err);
    if (rc < 0) return rc;
    add(e, "page rest", huge_pages(e->total) - e->total);
    add(e, "loader", loader_bytes(z));
    add(e, "checkpoint", z->copy + writer_bytes(&z->o.model));
    add(e, "program", z->program);
    return SGT_OK;
}

/* Return how many bytes of memory a run needs with `rows` rows on this rank. If `levels` is not
 * NULL, levels[l] (an sgt_recompute) states what layer l recomputes; otherwise z->o.recompute
 * applies to all layers. With CUDA, only GPU memory is counted. Return UINT64_MAX on error. */
static uint64_t bytes_with(sizing *z, uint64_t rows, const uint8_t *levels)
{
    sgt_train_estimate e;
    z->o.batch = (uint32_t)rows;
    z->o.recompute_at = levels;
    return measure(z, &e, NULL) < 0 ? UINT64_MAX : e.total;
}

/* Initialize *z from the settings of *t. If --batch-size is auto, assume one row. */
static int begin(sizing *z, const sgt_trainer *t, sgt_error *err)
{
    const int rc = sgt_trainer_step(t, err);
    *z = (sizing){.t = t, .o = t->s->step};
    if (t->s->batch == SGT_DEFAULT_COUNT) z->o.batch = 1;
    return rc;
}

uint64_t sgt_memory_for_data(const sgt_trainer *t)
{
    sizing z;
    sgt_train_estimate e;
    const sgt_loader_info data = {.vocab = t->info.vocab ? t->info.vocab : 50257};
    const uint64_t all = sgt_memory_available();
    if (all == UINT64_MAX || t->cuda || begin(&z, t, NULL) < 0) return all;
    if (sgt_trainer_model(t, &data, &z.o.model, NULL) < 0 || measure(&z, &e, NULL) < 0) return all;
    const uint64_t need = e.total * sgt_ranks_here(t->o->ranks);
    /* If the backend alone needs more memory than is free, return the free memory without
     * subtracting the backend's memory. Opening the backend will report the error. */
    return need < all ? all - need : all;
}

/* ---- available memory ---- */

/* Set *x to the largest value of *x on any rank. All ranks must call this function. */
static int find_largest(const sgt_trainer *t, double *x, sgt_error *err)
{
    sgt_ranks *r = t->o->ranks;
    double *all = sgt_ranks_connected(r) ? calloc(r->size, sizeof *all) : NULL;
    if (!sgt_ranks_connected(r)) return SGT_OK;
    if (!all) return sgt_fail_memory(err, "ranks");
    all[r->rank] = *x;
    int rc = r->sum(r, all, r->size, err);
    for (uint32_t i = 0; i < r->size && rc == SGT_OK; i++)
        if (i == 0 || all[i] > *x) *x = all[i];
    free(all);
    return rc;
}

/* Set z->room to the bytes of memory that the run may use. On a CPU, this is 15/16 of the free
 * memory, divided by the number of ranks on the machine. On a GPU, it is the free memory minus
 * min(1/32 of all memory, SPARE). */
static void find_free(sizing *z)
{
    const sgt_trainer *t = z->t;
    sgt_cuda_device d;
    if (t->cuda) {
        z->room = UINT64_MAX;
        if (t->cuda->usable(&d, NULL) < 0) return;
        uint64_t spare = d.memory / 32 < SPARE ? d.memory / 32 : SPARE;
        z->room = d.available > spare ? d.available - spare : 0;
    } else {
        z->room = free_share(t);
        if (z->room != UINT64_MAX) z->room = z->room / 16 * 15;
    }
}

/* Write z->room as a phrase that fits after "of the" or "more than the", such as "130.0 MiB of
 * --memory-limit" or "20.10 GiB free". */
static const char *format_room(const sizing *z, char *buf, size_t n)
{
    char a[32];
    snprintf(buf, n, "%s %s", sgt_format_bytes(a, sizeof a, z->room),
             z->t->s->memory_limit != SGT_DEFAULT_COUNT ? "of --memory-limit" : "free");
    return buf;
}

/* ---- rows and recomputation ---- */

/* Set and return z->levels, which states what each layer recomputes: GELU and LayerNorm in the
 * first `gelu` layers, the entire block in the next `block` layers, and nothing in all other
 * layers. */
static const uint8_t *set_levels(sizing *z, uint32_t gelu, uint32_t block)
{
    memset(z->levels, SGT_RECOMPUTE_NONE, z->o.model.layers);
    memset(z->levels, SGT_RECOMPUTE_GELU, gelu);
    memset(z->levels + gelu, SGT_RECOMPUTE_BLOCK, block);
    return z->levels;
}

/* Return the largest number of rows on this rank that fits in memory and is <= `most`. Return 0 if
 * not even one row fits. */
static uint64_t most_rows(sizing *z, uint64_t most, const uint8_t *levels)
{
    uint64_t low = 0, high = most + 1; /* `low` rows fit, `high` rows do not */
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (bytes_with(z, middle, levels) <= z->room) low = middle;
        else high = middle;
    }
    return low;
}

/* Set *batch to the largest batch size that fits in memory on every rank. With --recompute auto,
 * find the largest batch that fits without recomputation, because recomputation makes steps slower.
 * Only if not even one row fits, find the largest batch that fits with recomputation. */
static int decide_rows(sizing *z, uint64_t *batch, sgt_error *err)
{
    char need[32], room[64];
    uint32_t ranks = sgt_ranks_size(z->t->o->ranks), L = z->o.model.layers;
    uint64_t largest = z->windows && z->windows < MOST_ROWS ? z->windows : MOST_ROWS;
    uint64_t most = largest / ranks ? largest / ranks : 1, rows = most_rows(z, most, NULL);
    const uint8_t *levels = NULL;
    if (z->levels && !rows) rows = most_rows(z, most, levels = set_levels(z, L, 0));
    if (z->levels && !rows) rows = most_rows(z, most, levels = set_levels(z, 0, L));
    double fewest = -(double)rows;
    int rc = find_largest(z->t, &fewest, err);
    if (rc < 0) return rc;
    rows = (uint64_t)-fewest;
    sgt_format_bytes(need, sizeof need, bytes_with(z, rows ? rows : 1, levels));
    format_room(z, room, sizeof room);
    if (!rows)
        return sgt_fail(
            err, SGT_ENOMEM,
            "--batch-size auto: the model and its step need %s with one row, more than "
            "the %s (use a smaller --model or --seq-len%s)",
            need, room,
            z->levels || z->o.recompute == SGT_RECOMPUTE_BLOCK ? "" : ", or --recompute auto");
    *batch = rows * ranks;
    sgt_say(&z->t->o->notice, "--batch-size %" PRIu64 ", %s: the run needs %s of the %s%s", *batch,
            rows < most            ? "the largest that fits"
            : largest == MOST_ROWS ? "the largest possible"
                                   : "all rows of an epoch",
            need, room, ranks > 1 ? ", on each rank" : "");
    return SGT_OK;
}

/* Choose what each layer recomputes, so that the run fits in memory and loses little time. Return
 * 1, or 0 if the run does not fit even if all layers recompute their blocks.
 *
 * Recomputing GELU and LayerNorm costs little time for the memory that it saves, but recomputing an
 * entire block costs much. Therefore first find the smallest number of layers that must recompute
 * their block if all other layers recompute GELU and LayerNorm. With that number fixed, find the
 * smallest number of layers that must recompute GELU and LayerNorm.
 *
 * The layers that recompute their block come after those that recompute GELU and LayerNorm. The
 * last of all these layers can skip its recomputation, because its activations are still in memory
 * when the backward pass begins. Skipping saves most time if this layer would recompute its
 * block. */
static int choose_levels(sizing *z, uint64_t rows, uint32_t *gelu, uint32_t *block)
{
    uint32_t L = z->o.model.layers;
    for (*block = 0; *block <= L; ++*block) {
        if (bytes_with(z, rows, set_levels(z, L - *block, *block)) > z->room) continue;
        for (*gelu = 0; *gelu <= L - *block; ++*gelu)
            if (bytes_with(z, rows, set_levels(z, *gelu, *block)) <= z->room) return 1;
    }
    return 0;
}

/* Write a phrase that says what would fit in memory: the largest batch size that fits, and whether
 * --recompute auto would allow a larger batch size. */
static const char *format_cure(sizing *z, uint64_t rows, char *buf, size_t n)
{
    const uint8_t *levels = z->levels ? set_levels(z, 0, z->o.model.layers) : NULL;
    sgt_recompute chosen = z->o.recompute;
    uint64_t most = most_rows(z, rows, levels), recomputing = most;
    z->o.recompute = SGT_RECOMPUTE_BLOCK;
    if (!levels) recomputing = most_rows(z, rows, NULL);
    z->o.recompute = chosen;
    if (most)
        snprintf(buf, n, "the largest --batch-size that fits is %" PRIu64 "%s",
                 most * sgt_ranks_size(z->t->o->ranks),
                 recomputing > most ? ", and --recompute auto allows more" : "");
    else
        snprintf(buf, n, "no --batch-size fits%s",
                 recomputing ? " without recomputation: use --recompute auto"
                             : ": use a smaller --model or --seq-len");
    return buf;
}

static int fail_too_much(sizing *z, uint64_t rows, sgt_error *err)
{
    char need[32], room[64], cure[128];
    const uint8_t *levels = z->levels ? set_levels(z, 0, z->o.model.layers) : NULL;
    sgt_format_bytes(need, sizeof need, bytes_with(z, rows, levels));
    return sgt_fail(err, SGT_ENOMEM, "the model and its step need %s%s, more than the %s (%s)",
                    need, levels ? " even with --recompute block" : "",
                    format_room(z, room, sizeof room), format_cure(z, rows, cure, sizeof cure));
}

/* With --recompute auto, choose what each layer recomputes for `rows` rows on this rank. Without
 * it, return an error if the run needs more than --memory-limit. */
static int decide_levels(sizing *z, uint64_t rows, sgt_error *err)
{
    char need[32], room[64];
    uint32_t gelu = 0, block = 0;
    if (!z->levels) {
        int limited = z->t->s->memory_limit != SGT_DEFAULT_COUNT;
        return limited && bytes_with(z, rows, NULL) > z->room ? fail_too_much(z, rows, err)
                                                              : SGT_OK;
    }
    if (!choose_levels(z, rows, &gelu, &block)) return fail_too_much(z, rows, err);
    uint32_t none = z->o.model.layers - gelu - block;
    sgt_say(
        &z->t->o->notice,
        "--recompute auto: none in %u layer%s, gelu in %u, block in %u: the run needs %s of the %s",
        none, none == 1 ? "" : "s", gelu, block,
        sgt_format_bytes(need, sizeof need, bytes_with(z, rows, z->levels)),
        format_room(z, room, sizeof room));
    return SGT_OK;
}

int sgt_memory_asked(const sgt_config *s)
{
    return s->batch == SGT_DEFAULT_COUNT || s->recompute == SGT_RECOMPUTE_AUTO ||
           s->memory_limit != SGT_DEFAULT_COUNT;
}

/* Compute the memory of the run that *t describes. With --batch-size auto, set t->s->batch to the
 * largest batch size that fits. With --recompute auto, set t->recompute_at to the chosen
 * recomputation of each layer. */
static int size_run(sizing *z, sgt_trainer *t, sgt_error *err)
{
    sgt_loader_info data;
    uint32_t ranks = sgt_ranks_size(t->o->ranks);
    int rc = begin(z, t, err);
    if (rc < 0 || (rc = measure_data(z, &data, err)) < 0 ||
        (rc = sgt_trainer_model(t, &data, &z->o.model, err)) < 0)
        return rc;
    z->copy = copy_bytes(z);
    z->program = t->o->program ? t->o->program : sgt_memory_resident();
    z->program = t->cuda ? 0 : z->program + (uint64_t)z->o.threads * PER_THREAD;
    if (t->s->recompute == SGT_RECOMPUTE_AUTO) {
        z->levels = t->recompute_at = calloc(z->o.model.layers, 1);
        if (!z->levels) return sgt_fail_memory(err, "memory");
    }
    if (sgt_memory_asked(t->s)) {
        /* first report errors that do not depend on the number of rows, such as several ranks
         * without MPI */
        sgt_train_estimate e;
        if ((rc = measure(z, &e, err)) < 0) return rc;
        z->room = t->s->memory_limit;
        if (z->room == SGT_DEFAULT_COUNT) find_free(z);
    }
    if (t->s->batch == SGT_DEFAULT_COUNT && (rc = decide_rows(z, &t->s->batch, err)) < 0) return rc;
    if (sgt_memory_asked(t->s)) rc = decide_levels(z, t->s->batch / ranks, err);
    z->o.batch = (uint32_t)t->s->batch / ranks;
    z->o.recompute_at = z->levels;
    return rc;
}

int sgt_memory_decide(sgt_trainer *t, sgt_error *err)
{
    sizing z;
    return size_run(&z, t, err);
}

int sgt_memory_explain(sgt_trainer *t, const sgt_error *why, sgt_error *err)
{
    sizing z;
    char cure[128];
    uint64_t rows = t->s->batch / sgt_ranks_size(t->o->ranks);
    /* When a backend runs out of memory, the data and the program are already in memory. The free
     * memory no longer includes that memory, so do not count it as still needed. */
    int checked = t->s->recompute == SGT_RECOMPUTE_AUTO || size_run(&z, t, NULL) < 0;
    if (!checked) z.data = z.program = 0, find_free(&z);
    if (checked || bytes_with(&z, rows, NULL) <= z.room)
        return sgt_fail(err, SGT_ENOMEM, "%s", why->text);
    return sgt_fail(err, SGT_ENOMEM, "%s (%s)", why->text,
                    format_cure(&z, rows, cure, sizeof cure));
}

/* ---- estimates ---- */

static int estimate(sgt_trainer *t, sgt_train_estimate *e, sgt_error *err)
{
    sizing z;
    sgt_cuda_device d;
    int rc = sgt_trainer_settle(t, err);
    if (rc < 0 || (rc = sgt_trainer_read_shape(t, err)) < 0 || (rc = size_run(&z, t, err)) < 0)
        return rc;
    /* compute the size of the checkpoint copy again, because size_run may have changed the batch
     * size */
    z.copy = copy_bytes(&z);
    if ((rc = measure(&z, e, err)) < 0) return rc;
    e->model = z.o.model;
    e->device = t->cuda ? "cuda" : "cpu";
    e->available = free_share(t);
    if (t->cuda) e->available = t->cuda->usable(&d, NULL) == SGT_OK ? d.available : UINT64_MAX;
    return SGT_OK;
}

int sgt_train_estimate_memory(sgt_config *s, const sgt_train_options *o, sgt_train_estimate *e,
                              sgt_error *err)
{
    sgt_trainer t = {.s = s, .o = o, .dry = 1};
    *e = (sgt_train_estimate){0};
    int rc = estimate(&t, e, err);
    sgt_trainer_close(&t);
    return rc;
}

uint64_t sgt_train_estimate_activations(const sgt_train_estimate *e)
{
    static const char *const names[] = {"activations", "activation gradients", "head"};
    uint64_t sum = 0;
    for (size_t i = 0; i < e->count; i++)
        for (size_t n = 0; n < sizeof names / sizeof *names; n++)
            if (strcmp(e->kinds[i].name, names[n]) == 0) sum += e->kinds[i].bytes;
    return sum;
}

/* ---- memory.jsonl ---- */

/* memory.jsonl is written from the backend's list of buffers, which states in which parts of a step
 * (such as the forward pass of one layer) each buffer is used. Nothing is measured while steps
 * run. */

/* number of steps that memory.jsonl skips at the beginning of a call to sgt_train, because these
 * steps may differ from later ones */
#define LOG_SKIPS 1
#define LOG_STEPS 2

typedef struct page {
    const sgt_backend *b;
    sgt_memory_kind kinds[SGT_MEMORY_KINDS];
    size_t count;
    unsigned layers;
    uint64_t micro_steps;
    FILE *out;
} page;

static void put_kinds(const page *p, const char *name, const uint64_t *bytes)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->count; i++) sum += bytes[i];
    fprintf(p->out, ",\"%s_bytes\":%" PRIu64 ",\"%s\":{", name, sum, name);
    for (size_t i = 0; i < p->count; i++)
        fprintf(p->out, "%s\"%s\":%" PRIu64, i ? "," : "", p->kinds[i].name, bytes[i]);
    fputs("}", p->out);
}

/* Write as JSON the name of part number `part` of a step, for example the backward pass of a
 * layer. */
static void put_name(const page *p, unsigned part)
{
    unsigned L = p->layers;
    if (part == 0) fputs("\"embeddings forward\"", p->out);
    else if (part <= sgt_part_forward(L - 1))
        fprintf(p->out, "\"forward\",\"layer\":%u", part - sgt_part_forward(0));
    else if (part == sgt_part_head(L)) fputs("\"head\"", p->out);
    else if (part <= sgt_part_backward(L, 0))
        fprintf(p->out, "\"backward\",\"layer\":%u", sgt_part_backward(L, 0) - part);
    else fputs(part == sgt_part_embeddings(L) ? "\"embeddings backward\"" : "\"update\"", p->out);
}

static void put_part(const page *p, uint64_t step, uint64_t micro, unsigned part)
{
    uint64_t used[SGT_LIVE_KINDS], live[SGT_LIVE_KINDS];
    p->b->live(p->b, part, micro > 0, used, live);
    fprintf(p->out, "{\"step\":%" PRIu64 ",\"micro_step\":%" PRIu64 ",\"part\":", step, micro);
    put_name(p, part);
    put_kinds(p, "live", live);
    put_kinds(p, "used", used);
    fputs("}\n", p->out);
}

static void put_step(const page *p, uint64_t step)
{
    uint64_t last = p->micro_steps - 1;
    for (uint64_t micro = 0; micro <= last; micro = micro < last ? last : last + 1)
        for (unsigned part = 0; part <= sgt_part_embeddings(p->layers); part++)
            put_part(p, step, micro, part);
    put_part(p, step, last, sgt_part_update(p->layers));
}

static int write_log(const sgt_trainer *t, uint64_t first, uint64_t steps, sgt_error *err)
{
    char *text = NULL;
    size_t n;
    page p = {.b = t->backend, .layers = t->model.layers, .micro_steps = t->s->accum};
    p.count = p.b->memory(p.b, p.kinds);
    p.out = open_memstream(&text, &n);
    for (uint64_t s = first; s < first + steps && p.out; s++) put_step(&p, s);
    int failed = !p.out || (ferror(p.out) | fclose(p.out));
    int rc = failed ? sgt_fail(err, SGT_ENOMEM, "%s/memory.jsonl: out of memory", t->o->run)
                    : sgt_run_put(t->run, "memory.jsonl", text, err);
    free(text);
    return rc;
}

int sgt_memory_log(const sgt_trainer *t, uint64_t made, int last, sgt_error *err)
{
    uint64_t wanted = LOG_SKIPS + LOG_STEPS;
    if (!t->run || !t->backend->live || made <= LOG_SKIPS || made > wanted) return SGT_OK;
    if (made < wanted && !last) return SGT_OK;
    return write_log(t, t->state.step + LOG_SKIPS, made - LOG_SKIPS, err);
}
