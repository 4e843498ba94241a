/* model.c: finds the model and its vocabulary. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "loader/base/file.h"
#include "train/run/checkpoint.h"
#include "train/run/run.h"
#include "tools/cli/no_memory.h"
#include "tools/sample/sample.h"

#define GPT2_VOCAB 50257
#define GPT2_PADDED 50304 /* number to which the 50,257 rows of wte are often padded */

static int has(const char *folder, const char *name)
{
    char *path = sgt_join(folder, name);
    if (!path) sgt_no_memory();
    int gone = sgt_file_gone(path);
    free(path);
    return !gone;
}

static int find_folder(char **out, const char *path, const sgt_notice *notice, sgt_error *err)
{
    struct stat st;
    *out = NULL;
    if (stat(path, &st) < 0) return sgt_fail_errno(err, "%s", path);
    if (S_ISDIR(st.st_mode) && !has(path, "config.json")) {
        int rc = sgt_run_newest(out, path, 0, notice, err);
        if (rc < 0) return rc;
        if (!*out)
            return sgt_fail(
                err, SGT_EFORMAT,
                "%s: neither a checkpoint (no config.json in it) nor a run with one in it", path);
    }
    if (!*out && !(*out = strdup(path))) return sgt_fail_memory(err, path);
    return SGT_OK;
}

/* Return the path, a file or a folder, from which the vocabulary beside the model can be opened;
 * NULL if there is none. */
static const char *vocabulary_beside(const char *path)
{
    static const char *const names[] = {"tokenizer.json", "vocab.json", "encoder.json",
                                        "merges.txt", "vocab.bpe"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (has(path, names[i])) return path;
    return NULL;
}

static int find_vocab(sample_model *m, const char *given, sgt_error *err)
{
    uint32_t n = m->shape.vocab;
    const char *from = given ? given : vocabulary_beside(m->path);
    if (!from && (n < GPT2_VOCAB || n > GPT2_PADDED))
        return sgt_fail(err, SGT_EUSAGE,
                        "%s: a vocabulary of %u ids, which is not GPT-2's, and no tokenizer.json "
                        "beside it (--vocab FILE names its own)",
                        m->path, n);
    int rc = from ? sgt_vocab_load(&m->vocab, from, NULL, err) : sgt_vocab_gpt2(&m->vocab, err);
    if (rc < 0) return rc;
    if (sgt_vocab_size(m->vocab) > n)
        return sgt_fail(err, SGT_EUSAGE,
                        "%s has %u ids, and the model %s %u: it was trained on another vocabulary "
                        "(--vocab FILE names it)",
                        from ? from : "GPT-2's vocabulary", sgt_vocab_size(m->vocab), m->path, n);
    return SGT_OK;
}

int sample_model_find(sample_model *m, const char *path, const char *vocab,
                      const sgt_notice *notice, sgt_error *err)
{
    *m = (sample_model){0};
    int rc = find_folder(&m->path, path, notice, err);
    if (rc == SGT_OK) rc = sgt_checkpoint_shape(&m->shape, m->path, err);
    if (rc == SGT_OK) rc = find_vocab(m, vocab, err);
    return rc;
}

void sample_model_free(sample_model *m)
{
    free(m->path);
    sgt_vocab_free(m->vocab);
}
