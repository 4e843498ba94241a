/* prompts.c: reads prompts from the command line, files and standard input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/memory.h"
#include "tokenize/vocab/vocab.h"
#include "tools/sample/sample.h"

#define MOST ((size_t)64 << 20) /* most bytes of a prompt: far more than any GPT-2 can use */

/* Append a prompt, which takes over the malloc'd text; NULL: out of memory. */
static int add(sample_prompts *p, char *text, size_t bytes, sgt_error *err)
{
    int rc = text ? sgt_reserve(&p->items, &p->room, p->count + 1, sizeof *p->items, "prompts", err)
                  : sgt_fail_memory(err, "prompts");
    if (rc < 0) free(text);
    else p->items[p->count++] = (sample_prompt){.text = text, .bytes = bytes};
    return rc;
}

/* Read a whole file, which may be a pipe, to a malloc'd text. */
static int read_all(FILE *f, const char *name, char **out, size_t *n, sgt_error *err)
{
    size_t room = 0, used = 0, got = 1;
    char *text = NULL;
    int rc = SGT_OK;
    for (; got && used <= MOST && rc == SGT_OK; used += got) {
        rc = sgt_reserve(&text, &room, used + 4096, 1, name, err);
        got = rc == SGT_OK ? fread(text + used, 1, room - used, f) : 0;
    }
    if (rc == SGT_OK && ferror(f)) rc = sgt_fail_errno(err, "%s", name);
    if (rc == SGT_OK && used > MOST)
        rc = sgt_fail(err, SGT_EFORMAT, "%s: more than the %zu MiB that a prompt may have", name,
                      MOST >> 20);
    if (rc < 0) free(text);
    else *out = text, *n = used;
    return rc;
}

static int add_file(sample_prompts *p, const char *path, sgt_error *err)
{
    char *text;
    size_t n;
    int standard = strcmp(path, "-") == 0;
    FILE *f = standard ? stdin : fopen(path, "re");
    if (!f) return sgt_fail_errno(err, "%s", path);
    int rc = read_all(f, standard ? "standard input" : path, &text, &n, err);
    if (!standard) fclose(f);
    if (rc == SGT_OK && n && text[n - 1] == '\n') n--;
    return rc == SGT_OK ? add(p, text, n, err) : rc;
}

int sample_prompts_read(sample_prompts *p, const sgt_option_list *texts,
                        const sgt_option_list *files, sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t i = 0; i < texts->count && rc == SGT_OK; i++) {
        const char *text = texts->items[i];
        rc = strcmp(text, "-") ? add(p, strdup(text), strlen(text), err) : add_file(p, text, err);
    }
    for (size_t i = 0; i < files->count && rc == SGT_OK; i++)
        rc = add_file(p, files->items[i], err);
    return rc == SGT_OK && !p->count ? add(p, strdup(""), 0, err) : rc;
}

int sample_prompts_encode(sample_prompts *p, const sgt_vocab *v, sgt_error *err)
{
    sgt_encoder *e = NULL;
    sgt_normalizer normal = {0};
    int rc = sgt_encoder_new(&e, v, err);
    for (size_t i = 0; i < p->count && rc == SGT_OK; i++) {
        sample_prompt *q = p->items + i;
        const uint8_t *text = (const uint8_t *)q->text;
        size_t n = q->bytes, room = 0;
        rc = sgt_normalize_text(&normal, v->normalize, text, n, &text, &n, err);
        if (rc == SGT_OK) rc = sgt_reserve(&q->ids, &room, n + 1, sizeof *q->ids, "prompts", err);
        if (rc < 0) break;
        q->count = sgt_encode(e, text, n, q->ids);
        if (q->count == SGT_ENCODE_FAILED)
            rc = sgt_fail(err, SGT_EFORMAT, "prompt %zu: %s", i + 1, sgt_encoder_failure(e)->text);
        else if (!q->count) q->ids[q->count++] = (uint16_t)sgt_vocab_eot(v);
    }
    sgt_normalizer_free(&normal);
    sgt_encoder_free(e);
    return rc;
}

void sample_prompts_free(sample_prompts *p)
{
    for (size_t i = 0; i < p->count; i++) {
        free(p->items[i].text);
        free(p->items[i].ids);
    }
    free(p->items);
}
