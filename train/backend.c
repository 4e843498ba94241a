/* backend.c: code that all backends share: names of option values, the table of variants, the list
 * that records which buffers are in use in which part of a step (sgt_live), the constants of an
 * optimizer step, and the learning-rate schedule. */
#include "train/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <stddef.h>

#include "loader/base/memory.h"

const char *const sgt_precision_words[] = {"fp32", "tf32", "bf16", "fp16", NULL};
const char *const sgt_recompute_words[] = {"none", "gelu", "block", NULL};
const char *const sgt_attention_words[] = {"auto", "own", "mma", "cudnn", "naive", NULL};

const sgt_variant sgt_variants[SGT_VARIANTS] = {
    {"head-chunks", "compute logits and their loss in chunks of rows that stay in the GPU's cache"},
    {"bias-room", "leave a tenth of the multiprocessors to the bias gradients while weight "
                  "gradients are computed"},
    {"norm-bias", "let LayerNorm's kernel add the bias of the matrix product before it"},
    {"early-launch", "let kernels start, and then wait, while the kernel before them ends"},
};

/* Return the bit set of the variants that a word of n bytes stands for, or -1 if the word is
 * unknown. Known words are `none`, `default`, `all` and the names of single variants. */
static int64_t word_set(const char *word, size_t n)
{
    static const struct {
        const char *word;
        uint32_t set;
    } sets[] = {{"none", 0}, {"default", SGT_VARIANTS_DEFAULT}, {"all", (1u << SGT_VARIANTS) - 1}};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (strlen(sets[i].word) == n && memcmp(sets[i].word, word, n) == 0) return sets[i].set;
    for (int i = 0; i < SGT_VARIANTS; i++)
        if (strlen(sgt_variants[i].name) == n && memcmp(sgt_variants[i].name, word, n) == 0)
            return 1u << i;
    return -1;
}

int sgt_variants_parse(uint32_t *set, const char *words, sgt_error *err)
{
    char known[SGT_VARIANTS_TEXT];
    *set = 0;
    for (const char *at = words;; at++) {
        size_t n = strcspn(at, ",");
        int64_t one = word_set(at, n);
        if (one < 0)
            return sgt_fail(err, SGT_EUSAGE,
                            "--variant %s: unknown variant '%.*s' (all, none, default, %s)", words,
                            (int)(n < 64 ? n : 64), at,
                            sgt_variants_words(known, (1u << SGT_VARIANTS) - 1));
        *set |= (uint32_t)one;
        at += n;
        if (!*at) return SGT_OK;
    }
}

char *sgt_variants_words(char out[SGT_VARIANTS_TEXT], uint32_t set)
{
    int n = snprintf(out, SGT_VARIANTS_TEXT, "%s", set ? "" : "none");
    for (int i = 0; i < SGT_VARIANTS; i++)
        if (set & 1u << i)
            n += snprintf(out + n, SGT_VARIANTS_TEXT - (size_t)n, "%s%s", n ? "," : "",
                          sgt_variants[i].name);
    return out;
}

/* ---- live memory ---- */

/* The list of buffers in sgt_live is searched linearly, because it is short (about twenty buffers
 * per layer) and a run searches it only a few times. */

void sgt_live_free(sgt_live *l)
{
    free(l->buffers);
    free(l->spans);
    *l = (sgt_live){0};
}

void sgt_live_buffer_at(sgt_live *l, void *at, uint64_t bytes, unsigned kind)
{
    if (!bytes) return;
    l->failed |=
        sgt_reserve(&l->buffers, &l->room, l->count + 1, sizeof *l->buffers, "memory", NULL) < 0;
    if (l->failed) return;
    l->buffers[l->count++] = (sgt_live_buffer){.at = at, .bytes = bytes, .kind = kind};
}

/* Return the index in l->buffers of the buffer that begins at address `at`. If there is none, set
 * l->failed to 1 and return l->count. */
static size_t find(sgt_live *l, const void *at)
{
    size_t i = 0;
    while (i < l->count && l->buffers[i].at != at) i++;
    if (i == l->count) l->failed = 1;
    return i;
}

void sgt_live_during(sgt_live *l, const void *at, unsigned first, unsigned last)
{
    size_t i = at ? find(l, at) : l->count;
    if (i == l->count) return;
    l->failed |= sgt_reserve(&l->spans, &l->span_room, l->span_count + 1, sizeof *l->spans,
                             "memory", NULL) < 0;
    if (!l->failed) l->spans[l->span_count++] = (sgt_live_span){(uint32_t)i, first, last};
}

/* Return whether buffer number `buffer` is in use throughout parts `first` to `last` of a step,
 * that is, whether one of its declared periods contains all of these parts. */
static int is_used(const sgt_live *l, uint32_t buffer, unsigned first, unsigned last)
{
    for (uint32_t i = 0; i < l->span_count; i++) {
        const sgt_live_span *s = l->spans + i;
        if (s->buffer == buffer && s->first <= first && last <= s->last) return 1;
    }
    return 0;
}

int sgt_live_within(const sgt_live *l, uint32_t buffer, unsigned part)
{
    return is_used(l, buffer, part, part);
}

int sgt_live_after(const sgt_live *l, uint32_t buffer, unsigned part)
{
    return is_used(l, buffer, part, part + 1);
}

void sgt_live_count(const sgt_live *l, unsigned part, uint64_t within[SGT_LIVE_KINDS],
                    uint64_t after[SGT_LIVE_KINDS])
{
    memset(within, 0, SGT_LIVE_KINDS * sizeof *within);
    memset(after, 0, SGT_LIVE_KINDS * sizeof *after);
    for (uint32_t i = 0; i < l->count; i++) {
        const sgt_live_buffer *b = l->buffers + i;
        if (sgt_live_within(l, i, part)) within[b->kind] += b->bytes;
        if (sgt_live_after(l, i, part)) after[b->kind] += b->bytes;
    }
}

/* ---- optimizer and learning rate ---- */

double sgt_optim_clip(const sgt_optim *o, double norm)
{
    double most = (double)(float)o->grad_clip;
    if (!(most > 0)) return 1;
    /* torch.nn.utils.clip_grad_norm_ also adds 1e-6 to the norm */
    double scale = most / (norm + 1e-6);
    return scale < 1 ? scale : 1;
}

sgt_adamw sgt_optim_adamw(const sgt_optim *o, uint64_t step, double lr, double grad_scale,
                          int decay)
{
    double t = (double)step + 1;
    return (sgt_adamw){
        .lr = (float)lr,
        .beta1 = o->beta1,
        .beta2 = o->beta2,
        .eps = o->eps,
        .decay = decay ? (float)o->weight_decay : 0,
        .grad_scale = (float)grad_scale,
        .c1 = 1 - pow((double)o->beta1, t),
        .c2 = 1 - pow((double)o->beta2, t),
    };
}

sgt_muon_update sgt_optim_muon(const sgt_optim *o, double lr, double grad_scale)
{
    return (sgt_muon_update){
        .lr = (float)lr, .decay = (float)o->weight_decay, .grad_scale = (float)grad_scale};
}

sgt_sgd sgt_optim_sgd(const sgt_optim *o, double lr, double grad_scale, int decay)
{
    return (sgt_sgd){
        .lr = (float)lr,
        .momentum = (float)o->momentum,
        .decay = decay ? (float)o->weight_decay : 0,
        .grad_scale = (float)grad_scale,
        .nesterov = o->nesterov,
    };
}

const char *const sgt_schedule_words[] = {"cosine", "linear", "constant", "wsd", NULL};

/* Return the completed fraction of the way from step `from` to step `to`, at step s. The fraction
 * is 0 up to step `from`, and 1 from step `to` on. */
static double part(uint64_t s, uint64_t from, uint64_t to)
{
    if (s <= from) return 0;
    return s >= to ? 1 : (double)(s - from) / (double)(to - from);
}

double sgt_schedule_lr(const sgt_schedule *c, uint64_t s)
{
    double range = c->lr - c->min_lr;
    uint64_t warm = c->first + c->warmup, decay = c->steps - (c->steps - c->first) / 5;
    if (s < warm)
        return c->from + (c->lr - c->from) * (double)(s + 1 - c->first) / (double)c->warmup;
    switch (c->kind) {
    case SGT_COSINE: return c->min_lr + range * 0.5 * (1 + cos(M_PI * part(s, warm, c->steps)));
    case SGT_LINEAR: return c->lr - range * part(s, warm, c->steps);
    case SGT_WSD: return c->lr - range * part(s, decay > warm ? decay : warm, c->steps);
    default: return c->lr;
    }
}
