/* run_fixture.c: runs that are small enough for every test. */
#include "tests/train/run_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/expect.h"
#include "tests/train/fixture.h"
#include "tests/train/folder.h"
#include "loader/shards/shard.h"

#define TOKENS 20001

void make_data(void)
{
    static uint8_t bytes[SGT_SHARD_HEADER + 2 * TOKENS];
    sgt_shard_header h = {.tokens = TOKENS, .revision = 1, .vocab = 256, .eot = '\n'};
    FILE *f = fopen(FIXTURES "curve/tokens.bin", "rb");
    make_folder();
    cr_assert(f && fread(bytes, 1, sizeof bytes, f) == sizeof bytes);
    fclose(f);
    sgt_shard_pack(bytes, &h);
    put_file("data.bin", bytes, sizeof bytes);
}

char said[8192], warned[8192];
sgt_metrics stepped[256];
int (*use_examples)(const char *path, const char *model, uint32_t vocab, sgt_examples *e,
                    sgt_error *err);

void hear(void *into, const char *line)
{
    size_t n = strlen(into);
    snprintf((char *)into + n, sizeof said - n, "%s\n", line);
}

sgt_config curve(uint64_t steps)
{
    sgt_config s;
    sgt_config_default(&s);
    s.data = FIXTURES "curve/tokens.bin";
    s.init = FIXTURES "curve";
    s.sampling = SGT_SAMPLING_SEQUENTIAL;
    s.device = SGT_DEVICE_CPU;
    s.batch = 12;
    s.seq = 64;
    s.steps = steps;
    s.lr = 1e-3;
    s.min_lr = 1e-4;
    s.warmup = 20;
    s.eval_every = 0;
    s.threads = 1;                         /* other tests run at the same time */
    s.step.precision = SGT_PRECISION_FP32; /* the same on every CPU */
    return s;
}

sgt_config tiny(uint64_t steps)
{
    sgt_config s = curve(steps);
    s.init = NULL;
    s.data = in_folder("data.bin");
    s.model = "2x16x2";
    s.batch = 2;
    s.accum = 2;
    s.seq = 32;
    s.sampling = SGT_SAMPLING_SHUFFLE;
    s.warmup = 3;
    return s;
}

typedef struct stop_at {
    uint64_t step;
    sgt_stop *stop;
} stop_at;

static void see_step(void *ctx, const sgt_metrics *m, uint64_t steps, uint64_t first)
{
    stop_at *s = ctx;
    (void)steps;
    (void)first;
    if (m->step < 256) stepped[m->step] = *m;
    if (m->step + 1 == s->step) sgt_stop_request(s->stop);
}

int train(sgt_config s, const char *name, int resume, int force, uint64_t stop,
          sgt_training_result *result, sgt_error *err)
{
    sgt_stop request = {0};
    stop_at when = {stop, &request};
    sgt_training_result r;
    sgt_train_options o = {.run = in_folder(name),
                           .resume = resume != 0,
                           .or_start = resume == OR_START,
                           .force = force,
                           .notice = {hear, said},
                           .detail = {hear, said},
                           .warning = {hear, warned},
                           .examples = use_examples,
                           .stop = &request,
                           .progress = see_step,
                           .ctx = &when};
    said[0] = warned[0] = '\0';
    int rc = sgt_train(&s, &o, &r, err);
    if (result) *result = r;
    else sgt_training_result_free(&r);
    sgt_config_free(&s);
    return rc;
}

void must_train(sgt_config s, const char *name, int resume)
{
    must(train(s, name, resume, 0, 0, NULL, why));
}

char *facts(const char *run)
{
    char path[64], *out = NULL, *text;
    size_t n;
    snprintf(path, sizeof path, "%s/log.jsonl", run);
    cr_assert((text = get_file(path, NULL)), "%s", path);
    FILE *f = open_memstream(&out, &n);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        scoped(json_t) *json = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        cr_assert(json, "%s", line);
        static const char *const measured[] = {"ms_per_step", "tokens_per_s", "data_wait_ms",
                                               "peak_bytes"};
        for (int i = 0; i < 4; i++)
            cr_assert_eq(json_object_del(json, measured[i]), 0, "%s is missing", measured[i]);
        json_object_del(json, "mfu"); /* "mfu" is there only if the device's peak speed is known */
        json_object_del(json, "mfu_datasheet");
        json_dumpf(json, f, JSON_COMPACT);
        fputc('\n', f);
    }
    fclose(f);
    free(text);
    return out;
}

void same_facts(const char *a, const char *b)
{
    scoped_memory char *x = facts(a), *y = facts(b);
    cr_expect_str_eq(x, y, "the logs of %s and %s differ", a, b);
}

void same_bytes(const char *a, const char *b)
{
    size_t n = 0, m = 0;
    scoped_memory char *x = get_file(a, &n), *y = get_file(b, &m);
    cr_expect(x && y && n == m && memcmp(x, y, n) == 0, "%s and %s differ", a, b);
}
