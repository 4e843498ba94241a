/* data.c: opens a run's training and validation data: either one or several data sets of tokenized
 * shards, or a file of prompts and completions. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "loader/base/file.h"
#include "loader/handle.h"
#include "loader/rows/rows.h"
#include "loader/base/json.h"
#include "loader/shards/set.h"
#include "loader/shards/manifest.h"
#include "train/memory/memory.h"
#include "train/trainer.h"

/* Maximum number of rows in an evaluation. The number is a multiple of 64, because the loader
 * divides the rows among several data sets in groups of 64. */
#define EVAL_ROWS 256

int sgt_trainer_has_shards(const char *folder)
{
    char path[SGT_PATH];
    const sgt_manifest none = {0};
    sgt_set s = {.survey = 1};
    sgt_error why;
    if (!sgt_file_gone(sgt_path(path, folder, "manifest.json"))) return 1;
    int found = sgt_set_add_split(&s, folder, "train", 0, &none, &why) == SGT_OK && s.count;
    sgt_set_close(&s);
    return found;
}

static int by_documents(const sgt_config *s) { return s->sampling == SGT_SAMPLING_DOCUMENTS; }

/* ---- several sets ---- */

/* Split the value of --data into data sets. On error, the message begins with "--data". */
static int parse_sets(const sgt_trainer *t, sgt_loader_set **sets, uint32_t *count, sgt_error *err)
{
    sgt_error why;
    int rc = sgt_loader_sets_parse(sets, count, t->s->data, &why);
    return rc < 0 ? sgt_fail(err, rc, "--data: %s", why.text) : SGT_OK;
}

/* If --data names several data sets, store a JSON list of these sets in t->state.sets, which
 * checkpoints contain. A resumed run uses the list to report which set has changed. A single set is
 * identified by its hash, so t->state.sets stays NULL. */
static int describe_sets(sgt_trainer *t, sgt_error *err)
{
    json_t *list = json_array();
    int lost = 0;
    for (uint32_t i = 0; t->info.set_count > 1 && i < t->info.set_count; i++) {
        const sgt_loader_set_info *set = &t->info.sets[i];
        /* name: path of the set for messages and JSON, with invalid UTF-8 escaped */
        char hash[17], name[4096];
        snprintf(hash, sizeof hash, "%016" PRIx64, set->hash);
        lost |= json_array_append_new(list, json_pack("{s:s, s:f, s:s}", "data",
                                                      sgt_printable(name, sizeof name, set->path),
                                                      "weight", set->weight, "hash", hash));
    }
    free(t->state.sets);
    t->state.sets = json_array_size(list) ? sgt_json_dumps(list, 0) : NULL;
    lost |= json_array_size(list) && !t->state.sets;
    json_decref(list);
    return lost ? sgt_fail_memory(err, t->s->data) : SGT_OK;
}

/* Return 1 if the list `then` contains a data set with this hash; otherwise return 0. The list
 * comes from the checkpoint of the resumed run. */
static int was_trained_on(const json_t *then, uint64_t hash)
{
    size_t i;
    json_t *set;
    json_array_foreach(then, i, set)
    {
        const char *text = json_string_value(json_object_get(set, "hash"));
        if (text && strtoull(text, NULL, 16) == hash) return 1;
    }
    return 0;
}

/* Write the list of data sets `then` to `names` in the syntax of --data. The list comes from the
 * checkpoint of the resumed run. If the text does not fit in n bytes, truncate it and end it with
 * "...". */
static void format_sets(char *names, size_t n, const json_t *then)
{
    size_t at = 0, i;
    json_t *set;
    json_array_foreach(then, i, set)
    {
        const char *path = "", *hash = "";
        double weight = 0;
        json_unpack(set, "{s:s, s:F, s:s}", "data", &path, "weight", &weight, "hash", &hash);
        if (at < n)
            at += (size_t)snprintf(names + at, n - at, weight > 0 ? "%s%s:%.10g" : "%s%s",
                                   i ? "," : "", path, weight);
    }
    if (at >= n) memcpy(names + n - 4, "...", 4);
}

/* Return the error that the hash of the data differs from the hash in the checkpoint. If a set's
 * tokens have changed, the message names this set. If only the list of sets has changed, the
 * message names the sets in the checkpoint. */
static int fail_other_data(const sgt_trainer *t, sgt_error *err)
{
    char names[512] = "one set";
    json_t *then = t->state.sets ? json_loads(t->state.sets, 0, NULL) : NULL;
    const char *here = t->s->data;
    int changed = !then && t->info.set_count <= 1;
    for (uint32_t i = 0; then && i < t->info.set_count && !changed; i++) {
        here = t->info.sets[i].path;
        changed = !was_trained_on(then, t->info.sets[i].hash);
    }
    if (then) format_sets(names, sizeof names, then);
    json_decref(then);
    if (changed)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "--data %s: its tokens are not those that the run was trained on (restore "
                        "them, or start a new --run)",
                        here);
    return sgt_fail(
        err, SGT_EUNSUPPORTED,
        "--data %s: the run was trained on %s%s (leave out --data, or start a new --run)",
        t->s->data, names, then ? ", in this order" : "");
}

/* ---- validation shards ---- */

/* Set *out to the number of tokens in the longest validation shard of the set at `path`, or to 0 if
 * the set has no validation shard. Return an error if the folder cannot be read. */
static int longest_validation(uint64_t *out, const char *path, sgt_error *err)
{
    sgt_set set = {.survey = 1};
    sgt_manifest m;
    struct stat st;
    *out = 0;
    /* A path to a file names a single shard. A path that does not exist may be the prefix of
     * Megatron-LM's PREFIX.bin. In both cases, there are no validation shards. */
    if (stat(path, &st) < 0 ? errno == ENOENT : !S_ISDIR(st.st_mode)) return SGT_OK;
    int rc = sgt_manifest_find(&m, path, err);
    if (rc == SGT_OK) rc = sgt_set_add_split(&set, path, "val", 0, &m, err);
    for (uint32_t i = 0; i < set.count; i++) {
        /* count a damaged shard as infinitely long, so that the caller does not drop the set as too
         * short; opening the set then reports the damage */
        uint64_t tokens = set.shards[i].damage ? UINT64_MAX : set.shards[i].head.tokens;
        if (tokens >= *out) *out = tokens ? tokens : 1;
    }
    sgt_set_close(&set);
    sgt_manifest_free(&m);
    return rc;
}

/* Remove from `sets` the data sets that have no validation shard with enough tokens for a row, and
 * set *all to the number of remaining sets. For each removed set, give a notice with the reason. If
 * there is only one set, write the reason to `why` instead, because the caller prints it on the
 * line that describes the data. */
static int keep_evaluable(const sgt_config *s, sgt_loader_set *sets, uint32_t *all,
                          char why[SGT_UNEVALUATED], const sgt_notice *notice, sgt_error *err)
{
    uint64_t least = by_documents(s) ? 0 : s->seq;
    uint32_t n = 0, count = *all;
    why[0] = '\0';
    const char *what = count == 1 ? "no evaluation" : "they are not used for evaluation";
    for (uint32_t i = 0; i < count; i++) {
        uint64_t longest;
        int rc = longest_validation(&longest, sets[i].path, err);
        if (rc < 0) return rc;
        if (longest == 0)
            snprintf(why, SGT_UNEVALUATED, "%.500s has no validation shards: %s", sets[i].path,
                     count == 1 ? what : "it is not used for evaluation");
        else if (longest <= least)
            snprintf(why, SGT_UNEVALUATED,
                     "the validation shards of %.500s are shorter than %" PRIu64 " tokens: %s",
                     sets[i].path, least + 1, what);
        else sets[n++] = sets[i];
        if (count == 1 || !*why) continue;
        sgt_say(notice, "%s", why);
        *why = '\0';
    }
    if (n == 0 && count > 1) snprintf(why, SGT_UNEVALUATED, "no evaluation");
    *all = n;
    return SGT_OK;
}

/* Open the data sets that --data names. If `why` is NULL, open their training shards. Otherwise
 * open the validation shards of the sets that keep_evaluable keeps; if it keeps no set, leave *out
 * unchanged and write the reason to `why`. */
static int open_sets(const sgt_trainer *t, sgt_loader **out, char why[SGT_UNEVALUATED],
                     const sgt_loader_options *o, sgt_error *err)
{
    sgt_loader_set *sets;
    sgt_loader_options all = *o;
    int rc = parse_sets(t, &sets, &all.set_count, err);
    if (rc < 0) return rc;
    all.sets = sets;
    if (why) {
        all.split = "val";
        rc = keep_evaluable(t->s, sets, &all.set_count, why, &o->notice, err);
    }
    /* The amount of free memory determines how much data is preloaded, so all ranks must read this
     * amount at the same time, while no rank is preloading. At the first barrier, each rank waits
     * until every rank has finished preloading earlier data. At the second barrier, it waits until
     * every rank has read the amount of free memory, and only then preloads this data. */
    sgt_ranks *together = o->reader == SGT_READER_PRELOAD ? t->o->ranks : NULL;
    if (rc == SGT_OK && together) rc = together->barrier(together, err);
    all.available = sgt_memory_for_data(t);
    if (rc == SGT_OK && together) rc = together->barrier(together, err);
    if (rc == SGT_OK && all.set_count) {
        rc = sgt_loader_open(out, &all, err);
        if (rc == SGT_OK && t->s->batching) sgt_loader_set_rows(*out, &sgt_rows_plain);
    }
    free(sets);
    return rc;
}

/* ---- ids and names ---- */

/* Set t->eot to the id of the end-of-text token, which begins each document. Use the id in the
 * shards' headers or, if they have none and the vocabulary has GPT-2's size, GPT-2's id. */
static int find_eot(sgt_trainer *t, sgt_error *err)
{
    t->eot = t->info.eot;
    if (t->eot < 0 && t->info.vocab == SGT_GPT2_IDS) t->eot = SGT_GPT2_IDS - 1;
    if (t->s->step.documents && t->eot < 0 && !t->info.documents)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "--document-mask: %s does not say which id begins a document (shards of "
                        "sgt-tokenize do)",
                        t->s->data);
    return SGT_OK;
}

/* Read the tokenizer.json that belongs to the data or the model into memory. The file must be read
 * when the run starts: it may be in the checkpoint from which the run resumes, and a later save
 * deletes that checkpoint. */
static int read_tokenizer(sgt_trainer *t, sgt_error *err)
{
    const char *const others[] = {t->from, t->init};
    uint32_t sets = t->info.set_count;
    int rc = SGT_OK;
    for (uint32_t i = 0; i < sets + 2 && rc == SGT_OK && !t->tokenizer; i++) {
        size_t n;
        char path[SGT_PATH];
        /* use the first tokenizer.json found, because all sets of a mix have the same vocabulary */
        const char *in = i < sets ? t->info.sets[i].path : others[i - sets];
        if (!in || sgt_file_gone(sgt_path(path, in, "tokenizer.json"))) continue;
        rc = sgt_file_get(&t->tokenizer, &n, path, SGT_VOCAB_FILE_MOST, err);
        t->tokenizer_of = in;
    }
    return rc;
}

/* Set t->text_bytes to the length in bytes of each id's text, which is needed to report validation
 * loss in bits per byte. If the vocabulary is unknown or unreadable, only nats are reported. Return
 * an error if the tokenizer.json in the shards' folder does not match the shards: checkpoints would
 * contain a copy of it, which would decode the model's output wrongly. */
static int find_text_bytes(sgt_trainer *t, sgt_error *err)
{
    sgt_error why;
    const uint64_t known = t->info.fingerprint;
    const int check =
        known && t->tokenizer_of && t->tokenizer_of != t->from && t->tokenizer_of != t->init;
    if (!t->o->vocabulary || (!t->eval_rows && !check)) return SGT_OK;
    if (!t->tokenizer && !known && !t->examples.count && t->info.vocab == SGT_GPT2_IDS) {
        sgt_say(&t->o->notice,
                "%s: its vocabulary is unknown: GPT-2's is assumed, and validation shows no bits "
                "per byte (copy the tokenizer.json of the data there)",
                t->s->data);
        return SGT_OK;
    }
    if (t->eval_rows && !(t->text_bytes = calloc(t->info.vocab, sizeof *t->text_bytes)))
        return sgt_fail_memory(err, t->s->data);
    const int same =
        t->o->vocabulary(t->tokenizer_of, NULL, known, t->text_bytes, t->info.vocab, &why);
    if (same == 1) return SGT_OK;
    free(t->text_bytes);
    t->text_bytes = NULL;
    if (same == SGT_ENOMEM) return sgt_fail(err, same, "%s", why.text);
    if (same == 0)
        sgt_fail(&why, SGT_EUNSUPPORTED,
                 "%s/tokenizer.json: not the vocabulary of the shards in this folder (replace it "
                 "by theirs, or remove it)",
                 t->tokenizer_of);
    if (same == 0 && check) return sgt_fail(err, why.code, "%s", why.text);
    if (t->eval_rows) sgt_say(&t->o->detail, "%s: no validation in bits per byte", why.text);
    return SGT_OK;
}

static sgt_loader_options loader_options(const sgt_trainer *t)
{
    const sgt_config *s = t->s;
    return (sgt_loader_options){.size = sizeof(sgt_loader_options),
                                .reader = (sgt_reader)s->loader,
                                .sampling = (sgt_sampling)s->sampling,
                                .seed = s->seed,
                                .batch = (uint32_t)s->batch,
                                .seq = (uint32_t)s->seq,
                                .rank = t->o->ranks ? t->o->ranks->rank : 0,
                                .ranks = sgt_ranks_size(t->o->ranks),
                                .vocab = t->model.vocab,
                                .padded_by = s->pad != SGT_DEFAULT_COUNT,
                                .pad = (uint32_t)s->pad,
                                .documents = s->step.documents ? 2 : 0,
                                .copies = sgt_ranks_here(t->o->ranks),
                                .may_map = !s->given[SGT_SET_LOADER],
                                .notice = t->o->notice};
}

/* Return an error if the data set at `path` and the --init model have different vocabularies.
 * Ignore unknown vocabularies. Also ignore other errors of the data set, because opening it reports
 * them later. */
static int compare_ids(const sgt_trainer *t, const char *path, const sgt_loader_options *o,
                       sgt_error *err)
{
    sgt_error why;
    sgt_set set = {0};
    int rc = sgt_set_open(&set, path, o, NULL);
    const sgt_set_shard *marked = rc < 0 ? NULL : sgt_set_marked(&set);
    uint64_t fingerprint = marked ? marked->head.fingerprint : 0;
    sgt_set_close(&set);
    if (!fingerprint) return SGT_OK;
    char own[SGT_PATH];
    const int none = sgt_file_gone(sgt_path(own, path, "tokenizer.json"));
    int same = t->o->vocabulary(t->init, none ? NULL : own, fingerprint, NULL, 0, &why);
    if (same == SGT_ENOMEM) return sgt_fail(err, same, "%s", why.text);
    if (same < 0)
        sgt_say(&t->o->notice, "%s: it was not compared with the data's vocabulary", why.text);
    if (same) return SGT_OK;
    return sgt_fail(err, SGT_EUNSUPPORTED,
                    "--init %s: its vocabulary is not that of --data %s, so ids would mean other "
                    "tokens (tokenize the text with sgt-tokenize --vocab %s)",
                    t->init, path, t->init);
}

/* Return an error if the vocabulary of a data set differs from that of the --init model. Call this
 * before any token is read. Otherwise the first error might be an id that is too large for the
 * model, with a message that does not mention vocabularies. */
static int check_ids(const sgt_trainer *t, const sgt_loader_options *o, sgt_error *err)
{
    sgt_loader_set *sets;
    uint32_t count;
    sgt_loader_options headers = *o;
    if (!t->init || !t->o->vocabulary || sgt_config_examples(t->s)) return SGT_OK;
    int rc = parse_sets(t, &sets, &count, err);
    if (rc < 0) return rc;
    headers.split = "train";
    headers.notice = (sgt_notice){0};
    for (uint32_t i = 0; i < count && rc == SGT_OK; i++)
        rc = compare_ids(t, sets[i].path, &headers, err);
    free(sets);
    return rc;
}

static int open_examples(const sgt_trainer *t, sgt_examples *e, const char *path,
                         const sgt_loader_options *o, sgt_error *err)
{
    const sgt_config *s = t->s;
    if (!t->o->examples)
        return sgt_fail(err, SGT_EUNSUPPORTED, "--data %s: expected a folder of shards or a shard",
                        path);
    /* The vocabulary is 0 if the model's config.json could not be read. In that case, pass no
     * model, because the unreadable file is reported later. */
    const char *model = !t->model.vocab ? NULL : t->from ? t->from : t->init;
    int rc = t->o->examples(path, model, t->model.vocab, e, err);
    if (rc < 0) return rc;
    if (t->model.vocab && t->model.vocab < e->vocab)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "--data %s: its vocabulary has %u ids, but the model's has %u", path,
                        e->vocab, t->model.vocab);
    sgt_example_rows rows = {.seed = o->seed,
                             .batch = o->batch,
                             .seq = o->seq,
                             .rank = o->rank,
                             .ranks = o->ranks,
                             .pad = s->pad == SGT_DEFAULT_COUNT ? e->eot : (uint32_t)s->pad};
    if (rows.pad >= e->vocab)
        return sgt_fail(err, SGT_EUSAGE, "--pad-id %u: must be below %u", rows.pad, e->vocab);
    return sgt_examples_arrange(e, path, &rows, &o->notice, err);
}

/* Fill *info for a file of examples, as the loader does for a data set with one shard. */
static void describe_examples(const sgt_examples *e, sgt_loader_info *info)
{
    *info = (sgt_loader_info){.tokens = e->starts[e->count],
                              .shards = 1,
                              .windows_per_epoch = e->count,
                              .batch = e->rows.batch,
                              .seq = e->rows.seq,
                              .vocab = e->vocab,
                              .local_batch = e->rows.batch / e->rows.ranks,
                              .padded = 1,
                              .hash = e->hash,
                              .eot = e->eot};
}

/* Open the training data and describe it in *info. If the data consists of shards, set *train. If
 * it is a file of prompts and completions, fill *e. */
static int open_train(const sgt_trainer *t, sgt_loader **train, sgt_examples *e,
                      sgt_loader_info *info, const sgt_loader_options *o, sgt_error *err)
{
    const int examples = sgt_config_examples(t->s);
    int rc = examples ? open_examples(t, e, t->s->data, o, err) : open_sets(t, train, NULL, o, err);
    if (rc < 0) return rc;
    if (examples) describe_examples(e, info);
    else *info = *sgt_loader_get_info(*train);
    return rc;
}

int sgt_trainer_measure_data(const sgt_trainer *t, sgt_loader_info *info, uint64_t *val,
                             sgt_error *err)
{
    const sgt_config *s = t->s;
    sgt_loader_options o = {.size = sizeof o, .batch = 1, .ranks = 1, .reader = SGT_READER_MMAP};
    o.seq = (uint32_t)s->seq;
    /* with these samplings, a row consists of complete documents, so shards may be shorter than a
     * row */
    if (s->sampling == SGT_SAMPLING_DOCUMENTS || s->sampling == SGT_SAMPLING_PACKED)
        o.sampling = (sgt_sampling)s->sampling;
    sgt_loader *train = NULL, *of_val = NULL;
    sgt_examples e = {0};
    char why[SGT_UNEVALUATED];
    *val = 0;
    int rc = open_train(t, &train, &e, info, &o, err);
    /* ignore errors in the validation shards here, because the run reports them when it opens
     * them */
    if (train && s->eval_every && open_sets(t, &of_val, why, &o, NULL) == SGT_OK && of_val)
        *val = sgt_loader_get_info(of_val)->tokens;
    sgt_loader_close(train);
    sgt_loader_close(of_val);
    sgt_examples_free(&e);
    return rc;
}

/* If `path` was stored in the checkpoint, rather than given by the user, return an error unless
 * `path` or PATH.bin (Megatron-LM's name) exists. `pass` names the option with which the user can
 * give the new path. */
static int check_there(const sgt_trainer *t, sgt_setting which, const char *path, const char *pass,
                       sgt_error *err)
{
    char bin[4200];
    snprintf(bin, sizeof bin, "%s.bin", path);
    if (t->s->given[which] || !sgt_file_gone(path) || !sgt_file_gone(bin)) return SGT_OK;
    return sgt_fail(err, SGT_EIO, "%s: the run was %s on %s, which no longer exists (pass %s)",
                    t->o->run, which == SGT_SET_DATA ? "trained" : "evaluated", path, pass);
}

int sgt_trainer_find_data(const sgt_trainer *t, sgt_error *err)
{
    const sgt_config *s = t->s;
    sgt_loader_set *sets;
    uint32_t count;
    int rc = SGT_OK;
    if (t->from && sgt_config_examples(s)) {
        rc = check_there(t, SGT_SET_DATA, s->data, "--data FILE.jsonl", err);
        return rc < 0 || !s->eval_every || !s->val_data
                   ? rc
                   : check_there(t, SGT_SET_VAL_DATA, s->val_data, "--val-data FILE.jsonl", err);
    }
    if (!t->from || sgt_loader_sets_parse(&sets, &count, s->data, NULL) < 0) return SGT_OK;
    const char *pass =
        count > 1 ? "--data with all sets and their weights, as when the run began" : "--data DIR";
    for (uint32_t i = 0; i < count && rc == SGT_OK; i++)
        rc = check_there(t, SGT_SET_DATA, sets[i].path, pass, err);
    free(sets);
    return rc;
}

static int validate_examples(sgt_trainer *t, const sgt_loader_options *o, sgt_error *err)
{
    if (!t->s->val_data) {
        snprintf(t->unevaluated, sizeof t->unevaluated, "no evaluation without --val-data");
        return SGT_OK;
    }
    int rc = open_examples(t, &t->val_examples, t->s->val_data, o, err);
    t->eval_rows = t->val_examples.count < EVAL_ROWS ? t->val_examples.count : EVAL_ROWS;
    return rc;
}

/* Open the validation data. Every evaluation uses the same rows, which are spread over all of the
 * data and do not depend on --seed. If --data names several sets, rows are taken from all sets that
 * can be evaluated. */
static int open_validation(sgt_trainer *t, sgt_error *err)
{
    sgt_loader_options o = loader_options(t);
    int rc;
    if (t->s->eval_every == 0) return SGT_OK;
    o.seed = 0;
    if (t->examples.count) return validate_examples(t, &o, err);
    if (!by_documents(t->s)) o.sampling = SGT_SAMPLING_SHUFFLE;
    o.vocab = t->info.vocab;
    if ((rc = open_sets(t, &t->val, t->unevaluated, &o, err)) < 0 || !t->val) return rc;
    const sgt_loader_info *val = sgt_loader_get_info(t->val);
    const uint64_t windows = val->windows_per_epoch;
    if (val->fingerprint && t->info.fingerprint && val->fingerprint != t->info.fingerprint)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "--data %s: its val and train shards have different vocabularies (tokenize "
                        "both with one --vocab)",
                        t->s->data);
    t->eval_rows = windows < EVAL_ROWS ? windows : EVAL_ROWS;
    return SGT_OK;
}

int sgt_trainer_open_data(sgt_trainer *t, sgt_error *err)
{
    sgt_loader_options o = loader_options(t);
    int rc = check_ids(t, &o, err);
    if (rc < 0) return rc;
    rc = open_train(t, &t->train, &t->examples, &t->info, &o, err);
    if (rc < 0) return rc;
    if (t->from && t->info.hash != t->state.data_hash) return fail_other_data(t, err);
    t->state.data_hash = t->info.hash;
    if ((rc = describe_sets(t, err)) < 0 || (rc = find_eot(t, err)) < 0 ||
        (rc = read_tokenizer(t, err)) < 0)
        return rc;
    if (!t->tokenizer && t->examples.tokenizer && !(t->tokenizer = strdup(t->examples.tokenizer)))
        return sgt_fail_memory(err, t->s->data);
    rc = open_validation(t, err);
    return rc < 0 ? rc : find_text_bytes(t, err);
}
