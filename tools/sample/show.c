/* show.c: generates texts, and prints each text while it is generated. A character is printed when
 * all its bytes have been generated. On a terminal, invalid UTF-8 and control characters other than
 * newline and tab are printed as \xNN. To a file or a pipe, all bytes are written unchanged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/memory.h"
#include "train/run/checkpoint.h"
#include "tools/cli/talk.h"
#include "tools/sample/sample.h"

static int append(sample_text *t, const void *bytes, size_t n, sgt_error *err)
{
    int rc = sgt_reserve(&t->bytes, &t->room, t->n + n, 1, NULL, err);
    if (rc < 0) return rc;
    if (n) memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
    return SGT_OK;
}

/* Allocate `samples` texts for each prompt. At first, a text contains only the prompt, or is empty
 * if prompts are not printed. */
static int open_texts(sample_show *s, const sample_prompts *p, uint64_t samples, sgt_error *err)
{
    s->texts = calloc(p->count * samples, sizeof *s->texts);
    if (!s->texts) return sgt_fail_memory(err, NULL);
    s->count = p->count * samples;
    for (size_t i = 0; i < s->count; i++) {
        sample_text *t = s->texts + i;
        t->prompt = p->items + i / samples;
        t->number = i % samples;
        int rc = s->prompts ? append(t, t->prompt->text, t->prompt->bytes, err) : SGT_OK;
        if (rc < 0) return rc;
        t->begin = t->n;
        if (s->json) t->ids = json_array();
    }
    return SGT_OK;
}

/* ---- printing ---- */

/* Print the end of text t: a newline unless the text ends with a newline, and then a line of three
 * dashes. After the last text, print no dashes, and the newline only on a terminal. */
static void print_end(const sample_show *s, const sample_text *t)
{
    int last = t + 1 == s->texts + s->count, open = t->n && t->bytes[t->n - 1] != '\n';
    if (open && (s->terminal || !last)) putchar('\n');
    if (!last) fputs("---\n", stdout);
}

/* Print the new bytes of the current text. If the text is complete, print the line that separates
 * texts, and continue with the next text. */
static int print(sample_show *s, sgt_error *err)
{
    while (s->current < s->count && !s->json) {
        sample_text *t = s->texts + s->current;
        t->shown += sgt_print_text(t->bytes + t->shown, t->n - t->shown, s->terminal, t->ended);
        if (!t->ended) break;
        print_end(s, t);
        s->current++;
    }
    return sgt_flush_results(err);
}

/* After an error or an interrupt, print a newline if the last line on the terminal is
 * incomplete. */
static void end_line(const sample_show *s)
{
    if (s->json || !s->terminal || s->current == s->count) return;
    const sample_text *t = s->texts + s->current;
    if (t->shown && t->bytes[t->shown - 1] != '\n') putchar('\n');
    fflush(stdout);
}

/* ---- generation ---- */

static int add_token(void *ctx, size_t text, int32_t id, sgt_error *err)
{
    sample_run *r = ctx;
    sample_text *t = r->show.texts + text;
    size_t n = 0;
    const uint8_t *bytes = sgt_vocab_token(r->model.vocab, (uint32_t)id, &n);
    if (t->ids && json_array_append_new(t->ids, json_integer(id)) < 0)
        return sgt_fail_memory(err, NULL);
    int rc = append(t, bytes, bytes ? n : 0, err);
    return rc == SGT_OK && text == r->show.current ? print(&r->show, err) : rc;
}

static int end_text(void *ctx, size_t text, sgt_generate_end why, sgt_error *err)
{
    sample_show *s = &((sample_run *)ctx)->show;
    s->texts[text].ended = 1;
    s->texts[text].why = why;
    return text == s->current ? print(s, err) : SGT_OK;
}

/* Return the number of tokens per text for which the KV cache needs room: the tokens of the longest
 * prompt plus `tokens` generated tokens, but not more than the model's context length. */
static uint32_t find_window(const sample_run *s, uint64_t tokens)
{
    uint64_t longest = 0, most = s->model.shape.positions;
    for (size_t i = 0; i < s->prompts.count; i++)
        if (s->prompts.items[i].count > longest) longest = s->prompts.items[i].count;
    return longest >= most || tokens >= most - longest ? (uint32_t)most
                                                       : (uint32_t)(longest + tokens);
}

/* Open the decoder, load the model, and generate the texts. */
static int run_decoder(sample_run *s, const sgt_prompt *prompts, sgt_decoder_options *d,
                       sgt_generate_options *g, sgt_error *err)
{
    d->model = s->model.shape;
    d->window = find_window(s, g->tokens);
    if (d->sequences > s->show.count) d->sequences = (uint32_t)s->show.count;
    if (!g->eot) g->eot = (int64_t)sgt_vocab_eot(s->model.vocab);
    g->ids = sgt_vocab_size(s->model.vocab);
    g->token = add_token;
    g->end = end_text;
    g->ctx = s;
    int rc = sgt_decoder_open(&s->decoder, d, err);
    if (rc == SGT_OK)
        rc =
            sgt_checkpoint_load_model(s->model.path, sgt_decoder_loads(s->decoder), &d->model, err);
    if (rc == SGT_OK) rc = print(&s->show, err);
    if (rc == SGT_OK) rc = sgt_generate(s->decoder, prompts, s->show.count, g, &s->result, err);
    if (rc < 0) end_line(&s->show);
    return rc;
}

int sample_generate(sample_run *s, uint64_t samples, sgt_decoder_options *d,
                    sgt_generate_options *g, sgt_error *err)
{
    sgt_prompt *prompts = NULL;
    int rc = sample_prompts_encode(&s->prompts, s->model.vocab, err);
    if (rc == SGT_OK) rc = open_texts(&s->show, &s->prompts, samples, err);
    if (rc == SGT_OK && !(prompts = calloc(s->show.count, sizeof *prompts)))
        rc = sgt_fail_memory(err, NULL);
    for (size_t i = 0; i < s->show.count && rc == SGT_OK; i++) {
        const sample_text *t = s->show.texts + i;
        prompts[i] =
            (sgt_prompt){.ids = t->prompt->ids, .count = t->prompt->count, .sample = t->number};
    }
    if (rc == SGT_OK) rc = run_decoder(s, prompts, d, g, err);
    free(prompts);
    return rc;
}

void sample_run_close(sample_run *s)
{
    for (size_t i = 0; i < s->show.count; i++) {
        free(s->show.texts[i].bytes);
        json_decref(s->show.texts[i].ids);
    }
    free(s->show.texts);
    sgt_decoder_close(s->decoder);
    sample_prompts_free(&s->prompts);
    sample_model_free(&s->model);
}

/* ---- JSON ---- */

json_t *sample_show_json(const sample_show *s)
{
    json_t *all = json_array();
    for (const sample_text *t = s->texts; t < s->texts + s->count; t++)
        json_array_append_new(
            all, json_pack("{s:o, s:I, s:o, s:o, s:O, s:s}", "prompt",
                           sgt_json_text(t->prompt->text, t->prompt->bytes), "sample",
                           (json_int_t)t->number, "prompt_ids",
                           sgt_json_ids(t->prompt->ids, 4, t->prompt->count), "text",
                           sgt_json_text(t->bytes + t->begin, t->n - t->begin), "ids", t->ids,
                           "end", t->why == SGT_END_TEXT ? "end-of-text" : "tokens"));
    return all;
}
