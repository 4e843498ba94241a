/* test_init.c: models from which a run can start (--init): llm.c's files, heads, and tensors in
 * several files. Only the parameters are read. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"
#include "train/run/checkpoint.h"
#include "train/model/model.h"
#include "tests/expect.h"
#include "tests/train/folder.h"
#include "tests/train/run_fixture.h"
#include "train/run/safetensors.h"

TestSuite(init, .init = make_data, .fini = remove_folder);

/* All sizes differ, and none is a multiple of a kernel's block. */
static const sgt_model shape = {
    .layers = 3, .channels = 70, .heads = 7, .vocab = 101, .positions = 13, .eps = 1e-5f};

/* A backend that only accepts parameters. */
typedef struct taker {
    sgt_backend calls;
    const sgt_model *model;
    float *flat;
} taker;

static int take(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count,
                const float *from, sgt_error *err)
{
    const taker *k = (const taker *)b;
    sgt_tensor t;
    (void)err;
    cr_assert_eq(what, SGT_PARAMETERS);
    sgt_model_tensor(k->model, tensor, &t);
    cr_assert(first <= t.count && count <= t.count - first);
    memcpy(k->flat + t.offset + first, from, count * sizeof *from);
    return SGT_OK;
}

/* Return a number that bfloat16 can represent, with a sign, an exponent and a fraction that depend
 * on tensor and element. */
static float number(size_t tensor, size_t i)
{
    uint32_t h = (uint32_t)(tensor * 7919 + i) * 2654435761u;
    return ldexpf((float)((int)(h >> 24) - 128), -7 - (int)(h >> 20 & 7));
}

static float *numbers(const sgt_model *m)
{
    float *flat = calloc(sgt_model_floats(m), sizeof *flat);
    for (size_t k = 0; k < sgt_model_tensors(m); k++) {
        sgt_tensor t;
        sgt_model_tensor(m, k, &t);
        for (size_t i = 0; i < t.count; i++) flat[t.offset + i] = number(k, i);
    }
    return flat;
}

/* ---- llm.c ---- */

#define PADDED 128 /* ids */

static void put_number(FILE *f, float x, int version)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint16_t half = (uint16_t)(bits >> 16);
    if (version == 3) fwrite(&x, sizeof x, 1, f);
    else fwrite(&half, sizeof half, 1, f);
}

/* Write tensor k as PyTorch stores it: the weight of a linear layer is (out, in). */
static void put_tensor(FILE *f, const sgt_model *m, const float *flat, size_t k, int version)
{
    sgt_tensor t;
    sgt_model_tensor(m, k, &t);
    int linear = t.dims == 2 && strstr(t.name, "wte") == NULL && strstr(t.name, "wpe") == NULL;
    size_t rows = t.dim[0], columns = t.dim[1];
    for (size_t i = 0; i < t.count; i++)
        put_number(f, flat[t.offset + (linear ? i % rows * columns + i / rows : i)], version);
}

/* Write the parameters `flat` to FOLDER/name as llm.c does (write_tensors), in float32 (version 3)
 * or bfloat16 (version 5). */
static void put_llmc(const char *name, const sgt_model *m, const float *flat, int version)
{
    scoped(FILE) *f = fopen(in_folder(name), "wb");
    int32_t header[256] = {
        20240326,           version,           (int32_t)m->positions, (int32_t)m->vocab,
        (int32_t)m->layers, (int32_t)m->heads, (int32_t)m->channels,  PADDED};
    cr_assert(f);
    if (m->vocab > PADDED) header[7] = 256;
    fwrite(header, sizeof header, 1, f);
    put_tensor(f, m, flat, 0, version);
    for (size_t i = 0; i < ((size_t)header[7] - m->vocab) * m->channels; i++)
        put_number(f, NAN, version);
    put_tensor(f, m, flat, 1, version);
    for (size_t kind = 0; kind < SGT_BLOCK_TENSORS; kind++)
        for (size_t l = 0; l < m->layers; l++)
            put_tensor(f, m, flat, 2 + l * SGT_BLOCK_TENSORS + kind, version);
    for (size_t i = 0; i < 2; i++)
        put_tensor(f, m, flat, 2 + m->layers * SGT_BLOCK_TENSORS + i, version);
}

static int load(const char *name, const sgt_model *m, float *flat, sgt_error *err)
{
    taker k = {{.put = take}, m, flat};
    return sgt_checkpoint_load_model(in_folder(name), &k.calls, m, err);
}

/* Check that loading FOLDER/name gives `flat`, bit for bit. */
static void loads(const char *name, const sgt_model *m, const float *flat)
{
    sgt_model got;
    scoped_memory float *loaded = calloc(sgt_model_floats(m), sizeof *loaded);
    must(sgt_checkpoint_shape(&got, in_folder(name), why));
    cr_expect(memcmp(&got, m, sizeof got) == 0, "another shape");
    must(load(name, m, loaded, why));
    cr_expect(memcmp(loaded, flat, sgt_model_floats(m) * sizeof *flat) == 0, "%s: other numbers",
              name);
}

Test(init, llm_c_in_both_precisions)
{
    scoped_memory float *flat = numbers(&shape);
    put_llmc("three.bin", &shape, flat, 3);
    put_llmc("five.bin", &shape, flat, 5);
    loads("three.bin", &shape, flat);
    loads("five.bin", &shape, flat);
}

/* Copy good.bin to bad.bin, with word `at` of its header replaced by `word` (at -1: none). If size
 * > 0, cut the copy to `size` bytes; if size < 0, add a byte. Check that it is refused with the
 * message "PATH: fault". */
static void refused(int at, int32_t word, long size, const char *fault)
{
    sgt_model m;
    size_t n;
    char *bytes = get_file("good.bin", &n), want[256];
    cr_assert(bytes);
    if (at >= 0) memcpy(bytes + 4 * at, &word, 4);
    if (size < 0) bytes = realloc(bytes, n + 1), bytes[n] = 0;
    put_file("bad.bin", bytes, size < 0 ? n + 1 : size ? (size_t)size : n);
    free(bytes);
    snprintf(want, sizeof want, "%s: %s", in_folder("bad.bin"), fault);
    expect_failure(sgt_checkpoint_shape(&m, in_folder("bad.bin"), why), SGT_EFORMAT, "%s", want);
}

Test(init, llm_c_files_that_are_wrong)
{
    float *flat = numbers(&shape);
    put_llmc("good.bin", &shape, flat, 5);
    free(flat);
    /* 3 blocks of 12 C^2 + 13 C, embeddings of 128 and 13 rows, a last LayerNorm */
    long bytes = 1024 + 2 * (3 * (12 * 70 * 70 + 13 * 70) + (128 + 13) * 70 + 2 * 70);
    char why[128];
    refused(0, 20240520, 0, "its first number is 20240520, not 20240326: not a model of llm.c");
    refused(1, 1, 0, "version 1: must be 3 (float32) or 5 (bfloat16)");
    refused(4, 0, 0, "word 4 of its header is 0, which is out of range");
    refused(7, 100, 0, "a vocabulary of 101 ids cannot be padded to 100");
    snprintf(why, sizeof why, "%ld bytes, but a model of 3x70x7 has %ld (was it cut short?)",
             bytes - 1, bytes);
    refused(-1, 0, bytes - 1, why);
    snprintf(why, sizeof why, "%ld bytes, but a model of 3x70x7 has %ld", bytes + 1, bytes);
    refused(-1, 0, -1, why);
    refused(5, 8, 0, "8 heads do not divide 70 channels");
}

/* ---- safetensors ---- */

/* Write the tensors to a.safetensors and b.safetensors in turn (`files` = 2), or to
 * model.safetensors (1). The first tensor, wte.weight, is called `first` there. */
static void put_tensors(const sgt_model *m, const float *flat, size_t files, const char *first)
{
    static const char *const names[] = {"s/model.safetensors", "s/a.safetensors",
                                        "s/b.safetensors"};
    sgt_safetensors_writer *w[2];
    uint64_t bytes, sum;
    sgt_tensor t;
    must(sgt_make_folders(in_folder("s"), why));
    for (size_t i = 0; i < files; i++)
        must(sgt_safetensors_begin(&w[i], in_folder(names[files - 1 + i]), why));
    for (size_t k = 0; k < sgt_model_tensors(m); k++) {
        sgt_model_tensor(m, k, &t);
        must(sgt_safetensors_declare(w[k % files], k ? t.name : first, t.dim, t.dims, why));
    }
    for (size_t k = 0; k < sgt_model_tensors(m); k++) {
        sgt_model_tensor(m, k, &t);
        must(sgt_safetensors_write(w[k % files], flat + t.offset, t.count, why));
    }
    for (size_t i = 0; i < files; i++) must(sgt_safetensors_commit(w[i], &bytes, &sum, why));
}

/* A head has a weight of its own, or that of wte, which the file may have under either name or
 * twice. */
Test(init, heads)
{
    sgt_model untied = shape;
    sgt_tensor wte, head;
    untied.untied = 1;
    scoped_memory float *flat = numbers(&untied), *other = numbers(&untied);
    put_tensors(&untied, flat, 1, "wte.weight");
    must(sgt_model_write_config(&untied, in_folder("s"), -1, why));
    loads("s", &untied, flat);
    must(sgt_model_write_config(&shape, in_folder("s"), -1, why));
    expect_failure_about(
        load("s", &shape, other, why), SGT_EFORMAT,
        "/model.safetensors: its lm_head.weight differs from its wte.weight, but config.json ties "
        "the two, so one would be lost (set \"tie_word_embeddings\": false there to load both)");
    sgt_model_tensor(&untied, 0, &wte);
    sgt_model_tensor(&untied, sgt_model_tensors(&untied) - 1, &head);
    memcpy(flat + head.offset, flat + wte.offset, wte.count * sizeof *flat);
    put_tensors(&untied, flat, 1, "wte.weight");
    loads("s", &shape, flat);
    put_tensors(&shape, flat, 1, "lm_head.weight");
    loads("s", &shape, flat);
    put_tensors(&shape, flat, 1, "lm_tail.weight");
    expect_failure_about(load("s", &shape, other, why), SGT_EFORMAT,
                         "/model.safetensors: tensor wte.weight is missing");
}

static void no_model(const char *index, const char *why)
{
    sgt_error err;
    put_file("s/model.safetensors.index.json", index, strlen(index));
    cr_expect_lt(sgt_checkpoint_load_model(in_folder("s"), NULL, &shape, &err), 0, "taken: %s",
                 index);
    cr_expect(strstr(err.text, why), "%s", err.text);
}

Test(init, tensors_in_several_files)
{
    static const char index[] =
        "{\"metadata\": {}, \"weight_map\": {\"wte.weight\": \"a.safetensors\", \"wpe.weight\": "
        "\"b.safetensors\", \"ln_f.weight\": \"a.safetensors\"}}";
    float *flat = numbers(&shape);
    put_tensors(&shape, flat, 2, "wte.weight");
    must(sgt_model_write_config(&shape, in_folder("s"), -1, why));
    put_file("s/model.safetensors.index.json", index, strlen(index));
    loads("s", &shape, flat);
    free(flat);
    no_model("{\"weight_map\": {\"wte.weight\": \"a.safetensors\"}}",
             "/s/model.safetensors: tensor wpe.weight is missing");
    no_model("{\"weight_map\": {\"wte.weight\": \"a.safetensors\", \"x\": \"c.safetensors\"}}",
             "/s/c.safetensors: No such file or directory");
    no_model("{\"weight_map\": {\"wte.weight\": \"../a.safetensors\"}}",
             "/s/model.safetensors.index.json: tensor wte.weight: its value is not the name of a "
             "file in this folder");
    no_model("{}", "/s/model.safetensors.index.json: it has no weight_map");
    no_model("{", "/s/model.safetensors.index.json: ");
}

/* ---- runs ---- */

/* Runs that start from a checkpoint, from a file of llm.c, or from a checkpoint without optimizer
 * state are the same, because only the parameters are read. */
Test(init, a_run_starts_with_fresh_optimizer_state)
{
    sgt_model m;
    must_train(tiny(4), "first", 0);
    must(sgt_model_read_config(&m, in_folder("first/step-00000004"), why));
    scoped_memory float *flat = calloc(sgt_model_floats(&m), sizeof *flat);
    must(load("first/step-00000004", &m, flat, why));
    put_llmc("first.bin", &m, flat, 3);
    static const char *const from[] = {"first/step-00000004", "first.bin", "first/step-00000004"};
    for (int i = 0; i < 3; i++) {
        char run[8] = {'r', (char)('0' + i), 0};
        sgt_config s = tiny(3);
        s.init = in_folder(from[i]);
        if (i == 2) cr_assert_eq(remove(in_folder("first/step-00000004/optimizer.safetensors")), 0);
        must_train(s, run, 0);
        same_facts("r0", run);
    }
    same_bytes("r0/step-00000003/optimizer.safetensors", "r1/step-00000003/optimizer.safetensors");
    same_bytes("r0/step-00000003/model.safetensors", "r2/step-00000003/model.safetensors");
}
