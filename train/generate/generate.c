/* generate.c: runs prompts through a decoder, token by token. */
#include "train/generate/generate.h"

#include <stdlib.h>
#include <string.h>

#include "loader/base/clock.h"

/* A sequence of the decoder, and the prompt that uses it. */
typedef struct slot {
    size_t prompt;    /* number of the prompt; NONE: the slot is free */
    uint16_t *window; /* the prompt's last tokens and those generated: what the model sees */
    size_t count;     /* tokens in the window */
    size_t fed;       /* tokens that the decoder has processed */
    uint64_t made;
    int wanted; /* 1: the current run of the decoder computes its logits */
    int32_t chosen;
} slot;
#define NONE SIZE_MAX

typedef struct generating {
    sgt_decoder *d;
    const sgt_prompt *prompts;
    size_t count, next; /* count: prompts; next: the first that has not begun */
    const sgt_generate_options *o;
    sgt_generate_result r;
    slot *slots;
    size_t slot_count, window, vocab;
    sgt_decoder_row rows[SGT_DECODER_ROWS];
    float *logits; /* (slots, the model's vocab) */
    char *rooms;   /* (slots, room): scratch memory for choosing */
    size_t room;
    int said;
} generating;

static void take_prompt(generating *g, slot *s)
{
    s->prompt = NONE;
    if (g->next == g->count) return;
    const sgt_prompt *p = g->prompts + g->next;
    size_t n = p->count < g->window ? p->count : g->window;
    memcpy(s->window, p->ids + p->count - n, n * sizeof *s->window);
    if (n < p->count)
        sgt_say(&g->o->notice,
                "a prompt of %zu tokens: only its last %zu are used, because the model has no more "
                "positions",
                p->count, n);
    *s = (slot){.prompt = g->next++, .window = s->window, .count = n};
}

/* Gather up to SGT_DECODER_ROWS rows that the decoder has not processed. Logits are wanted for the
 * last row of each window. *prompts becomes 1 if a sequence has several such rows, that is, if this
 * run reads a prompt. */
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

/* Choose the next token of each wanted row. Threads share the rows, because choosing from one row
 * of logits may take as long as a layer. */
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

/* Make room in a full window by keeping only its later half. */
static void make_place(generating *g, slot *s)
{
    if (s->count < g->window) return;
    s->count = g->window / 2;
    memmove(s->window, s->window + g->window - s->count, s->count * sizeof *s->window);
    s->fed = 0;
    if (!g->said++)
        sgt_say(&g->o->notice,
                "the model's %zu positions are full: it continues from the last %zu tokens",
                g->window, s->count);
}

static int take_token(generating *g, slot *s, sgt_error *err)
{
    const sgt_generate_options *o = g->o;
    size_t prompt = s->prompt;
    int rc = SGT_OK, ended = s->chosen >= 0 && s->chosen == o->eot;
    if (s->chosen < 0)
        return sgt_fail(err, SGT_EFORMAT,
                        "token %llu of prompt %zu: what the model computes is not a number (its "
                        "weights are damaged, or its training diverged)",
                        (unsigned long long)s->made + 1, prompt + 1);
    if (!ended) {
        s->made++;
        g->r.tokens++;
        if (o->token) rc = o->token(o->ctx, prompt, (uint16_t)s->chosen, err);
    }
    if (rc == SGT_OK && (ended || s->made == o->tokens)) {
        take_prompt(g, s);
        return o->end ? o->end(o->ctx, prompt, ended ? SGT_END_TEXT : SGT_END_TOKENS, err) : SGT_OK;
    }
    make_place(g, s);
    s->window[s->count++] = (uint16_t)s->chosen;
    return rc;
}

static int go_on(generating *g, sgt_error *err)
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
            if (g->slots[i].wanted) rc = take_token(g, g->slots + i, err);
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
        if (!(g->slots[i].window = malloc(g->window * sizeof(uint16_t)))) rc = SGT_ENOMEM;
    return rc < 0 ? sgt_fail(err, rc, "out of memory") : SGT_OK;
}

static int check(const generating *g, sgt_error *err)
{
    for (size_t i = 0; i < g->count; i++) {
        const sgt_prompt *p = g->prompts + i;
        uint32_t vocab = sgt_decoder_model(g->d)->vocab;
        if (!p->count) return sgt_fail(err, SGT_EUSAGE, "prompt %zu: it has no token", i + 1);
        for (size_t j = 0; j < p->count; j++)
            if (p->ids[j] >= vocab)
                return sgt_fail(err, SGT_EUSAGE, "prompt %zu: id %u, and the model has %u", i + 1,
                                p->ids[j], vocab);
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
        for (size_t i = 0; i < g.slot_count && rc == SGT_OK; i++) take_prompt(&g, g.slots + i);
        if (rc == SGT_OK) rc = go_on(&g, err);
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
