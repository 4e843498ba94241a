/* generate.c: chooses the next token from logits, and generates continuations of prompts with a
 * decoder. */
#include "train/generate/generate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/clock.h"
#include "loader/base/philox.h"

/* ---- choosing the next id ---- */

/* "samp" in ASCII, a part of the Philox counter. Each purpose of random numbers has a different
 * constant here, so that purposes with the same seed get different random numbers. */
#define DOMAIN 0x73616d7000000000ull

size_t sgt_choose_room(size_t n) { return n * (sizeof(double) + sizeof(uint32_t)); }

double sgt_choose_draw(uint64_t seed, uint64_t sample, uint64_t position)
{
    return (double)(sgt_philox_u64(seed, position, DOMAIN + sample) >> 11) * 0x1p-53;
}

/* Return the index of the largest logit. If several logits are the largest, return the lowest of
 * their indexes. Return n if the largest logit is infinite, or if any logit is NaN. */
static size_t largest(const float *logits, size_t n)
{
    size_t best = 0;
    int odd = 0;
    for (size_t i = 0; i < n; i++) {
        odd |= isnan(logits[i]);
        if (logits[i] > logits[best]) best = i;
    }
    return n && !odd && isfinite(logits[best]) ? best : n;
}

/* ---- a heap of token ids ---- */

static int before(const float *logits, uint32_t a, uint32_t b)
{
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
}

static void sink(const float *logits, uint32_t *heap, size_t n, size_t at)
{
    uint32_t id = heap[at];
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(logits, heap[child + 1], heap[child])) child++;
        if (before(logits, id, heap[child])) break;
        heap[at] = heap[child];
    }
    heap[at] = id;
}

/* Select the most likely ids by a heap sort that stops early, and return how many were selected.
 * Stop when top_k ids are selected, unless the next id has the same logit as the last selected id.
 * If `wanted` > 0 (for top_p), also stop when the selected ids' weights, exp((logit - largest) /
 * temperature), sum to at least `wanted`. Selecting an id moves it behind the heap, to the end of
 * the array. Therefore ids[n - 1] is the most likely id, ids[n - 2] the second most likely, and so
 * on. */
static size_t keep_best(const sgt_choice *c, const float *logits, size_t n, uint32_t *ids,
                        double wanted)
{
    size_t kept = 0;
    double sum = 0, max = 0;
    for (size_t i = n / 2; i-- > 0;) sink(logits, ids, n, i);
    while (kept < n) {
        uint32_t id = ids[0];
        double logit = (double)logits[id];
        if (kept == 0) max = logit;
        if (c->top_k && kept >= c->top_k && logits[id] != logits[ids[n - kept]]) break;
        size_t left = n - ++kept;
        ids[0] = ids[left];
        ids[left] = id;
        if (left) sink(logits, ids, left, 0);
        sum += exp((logit - max) / c->temperature);
        if (wanted > 0 && sum >= wanted) break;
    }
    return kept;
}

static double total(const sgt_choice *c, const float *logits, const uint32_t *ids, size_t n,
                    double max)
{
    double sum = 0;
    for (size_t i = n; i-- > 0;) sum += exp(((double)logits[ids[i]] - max) / c->temperature);
    return sum;
}

size_t sgt_choose_kept(const sgt_choice *c, const float *logits, size_t n, void *room,
                       const uint32_t **ids, const double **weights)
{
    double *w = room;
    uint32_t *all = (uint32_t *)(void *)(w + n), *kept = all;
    size_t best = largest(logits, n), count = n;
    if (best == n) return 0;
    double max = (double)logits[best];
    for (size_t i = 0; i < n; i++) all[i] = (uint32_t)i;
    if (!(c->temperature > 0)) {
        all[0] = (uint32_t)best;
        count = 1;
    } else {
        sgt_choice k = *c;
        int by_k = c->top_k > 0 && c->top_k<n, by_p = c->top_p> 0 && c->top_p < 1;
        if (!by_k) k.top_k = 0;
        if (by_k) {
            count = keep_best(&k, logits, n, all, 0);
            kept = all + n - count;
        }
        if (by_p) { /* for top_p, build a heap of the ids that top_k has selected */
            size_t among = count;
            k.top_k = 0;
            count =
                keep_best(&k, logits, among, kept, c->top_p * total(c, logits, kept, among, max));
            kept += among - count;
        }
    }
    for (size_t i = 0; i < count; i++)
        w[i] = c->temperature > 0 ? exp(((double)logits[kept[i]] - max) / c->temperature) : 1;
    *ids = kept;
    *weights = w;
    return count;
}

int32_t sgt_choose(const sgt_choice *c, const float *logits, size_t n, double u, void *room)
{
    const uint32_t *ids;
    const double *w;
    size_t count = sgt_choose_kept(c, logits, n, room, &ids, &w), at = 0;
    double sum = 0, reached = 0;
    if (!count) return -1;
    for (size_t i = 0; i < count; i++) sum += w[i];
    for (size_t i = 0; i < count && reached <= u * sum; i++)
        if (w[i] > 0) reached += w[at = i];
    return (int32_t)ids[at];
}

/* ---- prompts ---- */

/* The state of one sequence of the decoder: its prompt, and the tokens in its window. */
typedef struct slot {
    size_t prompt; /* index of the prompt; NONE if the sequence is unused */
    /* tokens that the model sees: the prompt (only its last tokens if the prompt is longer than the
     * window), followed by the generated tokens */
    int32_t *window;
    size_t count; /* tokens in the window */
    /* number of tokens, counted from the start of `window`, that the decoder has already
     * processed */
    size_t fed;
    uint64_t made;
    /* 1: the decoder computes logits for this sequence in the current run; 0: it does not */
    int wanted;
    int32_t chosen;
} slot;
#define NONE SIZE_MAX

typedef struct generating {
    sgt_decoder *d;
    const sgt_prompt *prompts;
    /* count: number of prompts; next: index of the next prompt to be started */
    size_t count, next;
    const sgt_generate_options *o;
    sgt_generate_result r;
    slot *slots;
    size_t slot_count, window, vocab;
    sgt_decoder_row rows[SGT_DECODER_ROWS];
    float *logits; /* (slots, the model's vocab) */
    /* scratch memory for choosing tokens: `room` bytes for each of the `slot_count` sequences */
    char *rooms;
    size_t room;
    int said;
} generating;

static void begin_prompt(generating *g, slot *s)
{
    s->prompt = NONE;
    if (g->next == g->count) return;
    const sgt_prompt *p = g->prompts + g->next;
    size_t n = p->count < g->window ? p->count : g->window;
    memcpy(s->window, p->ids + p->count - n, n * sizeof *s->window);
    if (n < p->count)
        sgt_say(&g->o->notice,
                "a prompt has %zu tokens: only its last %zu are used, because the model has no "
                "more positions",
                p->count, n);
    *s = (slot){.prompt = g->next++, .window = s->window, .count = n};
}

/* Collect in g->rows up to SGT_DECODER_ROWS tokens that the decoder has not processed yet, and
 * return their number. Request logits only for the last token of each window. Set *prompts to 1 if
 * any sequence has more than one unprocessed token, which means that this run processes a prompt;
 * otherwise set *prompts to 0. */
static size_t gather(generating *g, int *prompts)
{
    size_t n = 0;
    *prompts = 0;
    for (size_t i = 0; i < g->slot_count; i++) {
        slot *s = g->slots + i;
        s->wanted = 0;
        if (s->prompt == NONE) continue;
        *prompts |= s->count - s->fed > 1;
        for (; n < SGT_DECODER_ROWS && s->fed < s->count; s->fed++, n++) {
            s->wanted = s->fed + 1 == s->count;
            g->rows[n] = (sgt_decoder_row){.sequence = (uint32_t)i,
                                           .position = (uint32_t)s->fed,
                                           .id = s->window[s->fed],
                                           .wanted = s->wanted};
        }
    }
    return n;
}

/* Choose the next token of each sequence whose logits were requested. The threads share the work,
 * because choosing a token may take as long as computing one of the model's layers. */
static void choose(generating *g)
{
    size_t at[SGT_DECODER_ROWS], n = 0;
    for (size_t i = 0; i < g->slot_count; i++)
        if (g->slots[i].wanted) at[n++] = i;
#pragma omp parallel for num_threads(sgt_decoder_threads(g->d)) schedule(static)
    for (size_t i = 0; i < n; i++) {
        slot *s = g->slots + at[i];
        const sgt_choice *c = &g->o->choice;
        double u = sgt_choose_draw(c->seed, g->prompts[s->prompt].sample, s->made);
        s->chosen = sgt_choose(c, g->logits + i * sgt_decoder_model(g->d)->vocab, g->vocab, u,
                               g->rooms + i * g->room);
    }
}

/* If the window is full, remove its first half. The decoder must process the remaining tokens
 * again, because their positions have changed. */
static void shorten_window(generating *g, slot *s)
{
    if (s->count < g->window) return;
    s->count = g->window / 2;
    memmove(s->window, s->window + g->window - s->count, s->count * sizeof *s->window);
    s->fed = 0;
    if (!g->said++)
        sgt_say(&g->o->notice,
                "the text fills the model's %zu positions: the model continues from the last %zu "
                "tokens",
                g->window, s->count);
}

static int append_token(generating *g, slot *s, sgt_error *err)
{
    const sgt_generate_options *o = g->o;
    size_t prompt = s->prompt;
    int rc = SGT_OK, ended = s->chosen >= 0 && s->chosen == o->eot;
    if (s->chosen < 0)
        return sgt_fail(err, SGT_EFORMAT,
                        "token %llu after prompt %zu: the model computes NaN (its weights are "
                        "damaged, or its training diverged)",
                        (unsigned long long)s->made + 1, prompt + 1);
    if (!ended) {
        s->made++;
        g->r.tokens++;
        if (o->token) rc = o->token(o->ctx, prompt, s->chosen, err);
    }
    if (rc == SGT_OK && (ended || s->made == o->tokens)) {
        begin_prompt(g, s);
        return o->end ? o->end(o->ctx, prompt, ended ? SGT_END_TEXT : SGT_END_TOKENS, err) : SGT_OK;
    }
    shorten_window(g, s);
    s->window[s->count++] = s->chosen;
    return rc;
}

static int generate_all(generating *g, sgt_error *err)
{
    int rc = SGT_OK, prompts;
    for (size_t n; rc == SGT_OK && (n = gather(g, &prompts)) > 0;) {
        if (sgt_stopped(g->o->stop)) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
        double from = sgt_now();
        sgt_decoder_run(g->d, g->rows, n, g->logits);
        choose(g);
        *(prompts ? &g->r.prompt_seconds : &g->r.token_seconds) += sgt_now() - from;
        if (prompts) g->r.prompt_tokens += n;
        for (size_t i = 0; i < g->slot_count && rc == SGT_OK; i++)
            if (g->slots[i].wanted) rc = append_token(g, g->slots + i, err);
    }
    return rc;
}

static int get_memory(generating *g, sgt_error *err)
{
    size_t most = sgt_decoder_sequences(g->d), vocab = sgt_decoder_model(g->d)->vocab;
    g->slot_count = most < g->count ? most : g->count;
    if (g->slot_count > SGT_DECODER_ROWS) g->slot_count = SGT_DECODER_ROWS;
    g->window = sgt_decoder_window(g->d);
    g->vocab = g->o->ids && g->o->ids < vocab ? g->o->ids : vocab;
    g->room = (sgt_choose_room(g->vocab) + 63) / 64 * 64;
    g->slots = calloc(g->slot_count, sizeof *g->slots);
    g->logits = malloc(g->slot_count * vocab * sizeof *g->logits);
    g->rooms = malloc(g->slot_count * g->room);
    int rc = g->slots && g->logits && g->rooms ? SGT_OK : SGT_ENOMEM;
    for (size_t i = 0; i < g->slot_count && rc == SGT_OK; i++)
        if (!(g->slots[i].window = malloc(g->window * sizeof(int32_t)))) rc = SGT_ENOMEM;
    return rc < 0 ? sgt_fail(err, rc, "out of memory") : SGT_OK;
}

static int check(const generating *g, sgt_error *err)
{
    for (size_t i = 0; i < g->count; i++) {
        const sgt_prompt *p = g->prompts + i;
        uint32_t vocab = sgt_decoder_model(g->d)->vocab;
        if (!p->count) return sgt_fail(err, SGT_EUSAGE, "prompt %zu: it has no tokens", i + 1);
        for (size_t j = 0; j < p->count; j++)
            if ((uint32_t)p->ids[j] >= vocab)
                return sgt_fail(err, SGT_EUSAGE,
                                "prompt %zu: id %d is not below the model's vocabulary size, %u",
                                i + 1, p->ids[j], vocab);
    }
    return SGT_OK;
}

int sgt_generate(sgt_decoder *d, const sgt_prompt *prompts, size_t count,
                 const sgt_generate_options *o, sgt_generate_result *result, sgt_error *err)
{
    generating g = {.d = d, .prompts = prompts, .count = count, .o = o};
    int rc = check(&g, err);
    if (rc == SGT_OK && count && o->tokens) {
        rc = get_memory(&g, err);
        for (size_t i = 0; i < g.slot_count && rc == SGT_OK; i++) begin_prompt(&g, g.slots + i);
        if (rc == SGT_OK) rc = generate_all(&g, err);
    }
    for (size_t i = 0; rc == SGT_OK && !o->tokens && o->end && i < count; i++)
        rc = o->end(o->ctx, i, SGT_END_TOKENS, err);
    for (size_t i = 0; g.slots && i < g.slot_count; i++) free(g.slots[i].window);
    free(g.slots);
    free(g.logits);
    free(g.rooms);
    if (result) *result = g.r;
    return rc;
}
