/* settings.c: the table of what defines a run, and its way to JSON and back. */
#include "settings.h"

#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "model/model.h"
#include "variants.h"

#define CPU_BATCH 8
#define CUDA_BATCH 64
#define MAX_LOSS_SCALE (1 << 24) /* far above the largest fp16, 65504 */

typedef enum kind { TEXT, COUNT, REAL, FLAG } kind;
enum {
    MAY_CHANGE = 1, /* on --resume */
    LOCAL = 2,      /* of the machine: kept only where given and never taken over */
    DEVICE = 4,     /* may change with the device */
    CUDA = 8        /* only CUDA has it */
};

static const struct entry {
    const char *name;
    size_t offset;
    uint8_t kind, flags;
} table[SGT_SETTINGS] = {
#define FIELD(f) offsetof(sgt_settings, f)
    [SGT_SET_DATA] = {"data", FIELD(data), TEXT, MAY_CHANGE},
    [SGT_SET_VAL_DATA] = {"val-data", FIELD(val_data), TEXT, MAY_CHANGE},
    [SGT_SET_MODEL] = {"model", FIELD(model), TEXT, 0},
    [SGT_SET_INIT] = {"init", FIELD(init), TEXT, 0},
    [SGT_SET_LOADER] = {"loader", FIELD(loader), TEXT, MAY_CHANGE},
    [SGT_SET_SAMPLING] = {"sampling", FIELD(sampling), TEXT, 0},
    [SGT_SET_PAD] = {"pad-id", FIELD(pad), COUNT, 0},
    [SGT_SET_WORKERS] = {"workers", FIELD(workers), COUNT, 0},
    [SGT_SET_DEVICE] = {"device", FIELD(device), TEXT, MAY_CHANGE},
    [SGT_SET_THREADS] = {"threads", FIELD(threads), COUNT, MAY_CHANGE | LOCAL},
    [SGT_SET_CPU] = {"cpu", FIELD(cpu), TEXT, MAY_CHANGE | LOCAL},
    [SGT_SET_BATCH] = {"batch-size", FIELD(batch), COUNT, 0},
    [SGT_SET_SEQ] = {"seq-len", FIELD(seq), COUNT, 0},
    [SGT_SET_ACCUM] = {"grad-accum", FIELD(accum), COUNT, 0},
    [SGT_SET_STEPS] = {"steps", FIELD(steps), COUNT, MAY_CHANGE},
    [SGT_SET_LR] = {"lr", FIELD(lr), REAL, 0},
    [SGT_SET_MIN_LR] = {"min-lr", FIELD(min_lr), REAL, 0},
    [SGT_SET_WARMUP] = {"warmup", FIELD(warmup), COUNT, 0},
    [SGT_SET_SCHEDULE] = {"schedule", FIELD(schedule), TEXT, 0},
    [SGT_SET_OPTIMIZER] = {"optimizer", FIELD(optimizer), TEXT, 0},
    [SGT_SET_BETAS] = {"betas", FIELD(betas), TEXT, 0},
    [SGT_SET_MOMENTUM] = {"momentum", FIELD(momentum), REAL, 0},
    [SGT_SET_NESTEROV] = {"nesterov", FIELD(nesterov), FLAG, 0},
    [SGT_SET_WEIGHT_DECAY] = {"weight-decay", FIELD(weight_decay), REAL, 0},
    [SGT_SET_GRAD_CLIP] = {"grad-clip", FIELD(grad_clip), REAL, 0},
    [SGT_SET_SKIP_SPIKES] = {"skip-spikes", FIELD(skip_spikes), REAL, 0},
    [SGT_SET_DROPOUT] = {"dropout", FIELD(dropout), REAL, 0},
    [SGT_SET_IGNORE] = {"ignore-index", FIELD(ignore), COUNT, 0},
    [SGT_SET_PRECISION] = {"precision", FIELD(precision), TEXT, DEVICE},
    [SGT_SET_LOSS_SCALE] = {"loss-scale", FIELD(loss_scale), REAL, DEVICE},
    [SGT_SET_RECOMPUTE] = {"recompute", FIELD(recompute), TEXT, 0},
    [SGT_SET_MEMORY_LIMIT] = {"memory-limit", FIELD(memory_limit), COUNT, MAY_CHANGE | LOCAL},
    [SGT_SET_GELU] = {"gelu", FIELD(gelu), TEXT, 0},
    [SGT_SET_NO_TIE] = {"no-tie", FIELD(no_tie), FLAG, 0},
    [SGT_SET_DOCUMENT_MASK] = {"document-mask", FIELD(document_mask), FLAG, 0},
    [SGT_SET_ATTENTION] = {"attention", FIELD(attention), TEXT, DEVICE | CUDA},
    [SGT_SET_BATCHING] = {"batching", FIELD(batching), TEXT, 0},
    [SGT_SET_NO_OVERLAP] = {"no-overlap", FIELD(no_overlap), FLAG, 0},
    [SGT_SET_SYNC_METRICS] = {"sync-metrics", FIELD(sync_metrics), FLAG, DEVICE | CUDA},
    [SGT_SET_NO_FUSE] = {"no-fuse", FIELD(no_fuse), FLAG, DEVICE | CUDA},
    [SGT_SET_NO_GRAPHS] = {"no-graphs", FIELD(no_graphs), FLAG, DEVICE | CUDA},
    [SGT_SET_NO_PAD_VOCAB] = {"no-pad-vocab", FIELD(no_pad_vocab), FLAG, DEVICE | CUDA},
    [SGT_SET_VARIANT] = {"variant", FIELD(variant), TEXT, DEVICE | CUDA},
    [SGT_SET_DETERMINISTIC] = {"deterministic", FIELD(deterministic), FLAG, 0},
    [SGT_SET_EVAL_EVERY] = {"eval-every", FIELD(eval_every), COUNT, 0},
    [SGT_SET_SAVE_EVERY] = {"save-every", FIELD(save_every), COUNT, 0},
    [SGT_SET_KEEP] = {"keep", FIELD(keep), COUNT, 0},
    [SGT_SET_SEED] = {"seed", FIELD(seed), COUNT, 0},
    [SGT_SET_OVERFIT] = {"overfit-batch", FIELD(overfit), FLAG, 0},
#undef FIELD
};

void sgt_settings_default(sgt_settings *s)
{
    *s = (sgt_settings){
        .model = "gpt2",
        .loader = "preload",
        .sampling = "shuffle",
        .device = "auto",
        .cpu = "auto",
        .schedule = "cosine",
        .optimizer = "adamw",
        .betas = "0.9,0.95",
        .recompute = "none",
        .attention = "auto",
        .batching = "simd",
        .workers = 1,
        .threads = SGT_DEFAULT_COUNT,
        .batch = SGT_DEFAULT_COUNT,
        .seq = 512,
        .accum = 1,
        .steps = SGT_DEFAULT_COUNT,
        .warmup = SGT_DEFAULT_COUNT,
        .eval_every = 200,
        .save_every = 1000,
        .keep = 3,
        .seed = 1,
        .lr = SGT_DEFAULT_REAL,
        .min_lr = SGT_DEFAULT_REAL,
        .pad = SGT_DEFAULT_COUNT,
        .ignore = SGT_DEFAULT_COUNT,
        .memory_limit = SGT_DEFAULT_COUNT,
        .momentum = 0.9,
        .loss_scale = 65536,
        .weight_decay = 0.1,
        .grad_clip = 1,
        .epochs = 1,
        .lr_base_batch = 64,
    };
}

void sgt_settings_free(sgt_settings *s)
{
    for (int i = 0; i < 2; i++) json_decref(s->owner[i]);
    s->owner[0] = s->owner[1] = NULL;
}

const char *sgt_settings_name(sgt_setting which) { return table[which].name; }

static void *field(const sgt_settings *s, size_t i) { return (char *)(uintptr_t)s + table[i].offset; }

/* ---- checks ---- */

static int one_of(const char *option, const char *value, const char *words, sgt_error *err)
{
    size_t n = strlen(value);
    for (const char *w = words; n > 0 && (w = strstr(w, value)); w++)
        if ((w == words || w[-1] == '|') && (w[n] == '\0' || w[n] == '|') && !strchr(value, '|')) return SGT_OK;
    return sgt_fail(err, SGT_EUSAGE, "--%s %s: must be one of %s", option, value, words);
}

static int between(const char *option, uint64_t value, uint64_t min, uint64_t max, sgt_error *err)
{
    if (value == SGT_DEFAULT_COUNT || (value >= min && value <= max)) return SGT_OK;
    return sgt_fail(err, SGT_EUSAGE, "--%s %llu: must be from %llu to %llu", option, (unsigned long long)value,
                    (unsigned long long)min, (unsigned long long)max);
}

static int at_least_zero(const char *option, double value, sgt_error *err)
{
    if (value == SGT_DEFAULT_REAL || (isfinite(value) && value >= 0)) return SGT_OK;
    return sgt_fail(err, SGT_EUSAGE, "--%s %g: must be at least 0", option, value);
}

int sgt_settings_betas(const sgt_settings *s, double betas[2], sgt_error *err)
{
    char *end;
    betas[0] = strtod(s->betas, &end);
    int ok = end != s->betas && *end == ',';
    if (ok) {
        const char *second = end + 1;
        betas[1] = strtod(second, &end);
        ok = end != second && *end == '\0';
    }
    for (int i = 0; ok && i < 2; i++) ok = betas[i] >= 0 && (float)betas[i] < 1; /* 1 as a float divides by 0 */
    if (!ok)
        return sgt_fail(err, SGT_EUSAGE, "--betas %s: not two numbers from 0 to below 1, such as 0.9,0.95", s->betas);
    return SGT_OK;
}

static int check_words(const sgt_settings *s, sgt_error *err)
{
    int rc;
    if ((rc = one_of("loader", s->loader, "preload|mmap|uring", err)) < 0 ||
        (rc = one_of("sampling", s->sampling, "shuffle|random|block|sequential|documents", err)) < 0 ||
        (rc = one_of("device", s->device, "auto|cpu|cuda", err)) < 0 ||
        (rc = one_of("schedule", s->schedule, "cosine|linear|constant|wsd", err)) < 0 ||
        (rc = one_of("optimizer", s->optimizer, "adamw|sgd", err)) < 0 ||
        (rc = one_of("recompute", s->recompute, "none|gelu|block|auto", err)) < 0 ||
        (rc = one_of("attention", s->attention, "auto|own|cudnn|naive", err)) < 0 ||
        (rc = one_of("batching", s->batching, "simd|scalar", err)) < 0)
        return rc;
    uint32_t set;
    if (s->variant && (rc = sgt_variants_parse(&set, s->variant, err)) < 0) return rc;
    if (s->precision && (rc = one_of("precision", s->precision, "fp32|tf32|bf16|fp16", err)) < 0) return rc;
    return s->gelu ? one_of("gelu", s->gelu, "tanh|erf", err) : SGT_OK;
}

static int check_fractions(const sgt_settings *s, sgt_error *err)
{
    if (!((float)s->dropout >= 0 && (float)s->dropout < 1)) /* 1 as a float divides by 0 */
        return sgt_fail(err, SGT_EUSAGE, "--dropout %g: must be at least 0 and below 1", s->dropout);
    if (!((float)s->momentum >= 0 && (float)s->momentum < 1))
        return sgt_fail(err, SGT_EUSAGE, "--momentum %g: must be at least 0 and below 1", s->momentum);
    if (!(s->loss_scale >= 1 && s->loss_scale <= MAX_LOSS_SCALE))
        return sgt_fail(err, SGT_EUSAGE, "--loss-scale %g: must be from 1 to %d", s->loss_scale, MAX_LOSS_SCALE);
    return SGT_OK;
}

int sgt_settings_check(const sgt_settings *s, sgt_error *err)
{
    int rc;
    double betas[2];
    sgt_model m;
    if ((rc = check_words(s, err)) < 0 || (rc = sgt_settings_betas(s, betas, err)) < 0 ||
        (rc = between("workers", s->workers, 1, 64, err)) < 0 ||
        (rc = between("threads", s->threads, 1, 1024, err)) < 0 ||
        (rc = between("batch-size", s->batch, 1, 1 << 20, err)) < 0 ||
        (rc = between("seq-len", s->seq, 1, 1 << 20, err)) < 0 ||
        (rc = between("grad-accum", s->accum, 1, 1 << 20, err)) < 0 ||
        (rc = between("steps", s->steps, 1, 99999999, err)) < 0 ||
        (rc = between("lr-base-batch", s->lr_base_batch, 1, 1 << 30, err)) < 0 ||
        (rc = between("pad-id", s->pad, 0, UINT16_MAX, err)) < 0 ||
        (rc = between("ignore-index", s->ignore, 0, UINT16_MAX, err)) < 0 ||
        (rc = between("memory-limit", s->memory_limit, 1, INT64_MAX, err)) < 0 ||
        (rc = between("seed", s->seed, 0, INT64_MAX, err)) < 0 || (rc = at_least_zero("lr", s->lr, err)) < 0 ||
        (rc = at_least_zero("min-lr", s->min_lr, err)) < 0 ||
        (rc = at_least_zero("weight-decay", s->weight_decay, err)) < 0 ||
        (rc = at_least_zero("grad-clip", s->grad_clip, err)) < 0 ||
        (rc = at_least_zero("skip-spikes", s->skip_spikes, err)) < 0)
        return rc;
    if (!(s->epochs > 0 && s->epochs <= 1e6))
        return sgt_fail(err, SGT_EUSAGE, "--epochs %g: must be above 0 and at most 1000000", s->epochs);
    if (!(s->budget >= 0 && s->budget <= 1e9))
        return sgt_fail(err, SGT_EUSAGE, "--compute-budget %g: must be at least 0 and at most 1000000000", s->budget);
    if ((rc = check_fractions(s, err)) < 0) return rc;
    if (s->scale_lr && s->lr == SGT_DEFAULT_REAL)
        return sgt_fail(err, SGT_EUSAGE, "--scale-lr: give the --lr to scale (--lr auto follows the batch by itself)");
    if (s->init && s->given[SGT_SET_MODEL])
        return sgt_fail(err, SGT_EUSAGE, "--model %s: not together with --init, which says the shape",
                        s->model);
    return s->init ? SGT_OK : sgt_model_named(&m, s->model, err);
}

/* ---- options that depend on one another and on the device ---- */

int sgt_settings_examples(const sgt_settings *s)
{
    size_t n = s->data ? strlen(s->data) : 0;
    return n > 6 && strcmp(s->data + n - 6, ".jsonl") == 0;
}

/* What option i needs to mean anything; NULL where it has that. */
static const char *lacks(const sgt_settings *s, size_t i)
{
    int sgd = strcmp(s->optimizer, "sgd") == 0;
    int examples = sgt_settings_examples(s);
    if (i == SGT_SET_PAD && !examples && strcmp(s->sampling, "documents") != 0) return "--sampling documents";
    if (i == SGT_SET_VAL_DATA && !examples) return "a --data FILE.jsonl";
    if ((i == SGT_SET_LOADER || i == SGT_SET_SAMPLING || i == SGT_SET_WORKERS || i == SGT_SET_BATCHING) && examples)
        return "--data of shards";
    if (i == SGT_SET_BETAS && sgd) return "--optimizer adamw";
    if ((i == SGT_SET_MOMENTUM || i == SGT_SET_NESTEROV) && !sgd) return "--optimizer sgd";
    if (i == SGT_SET_NESTEROV && s->momentum == 0) return "a --momentum above 0";
    if (i == SGT_SET_LOSS_SCALE && (!s->precision || strcmp(s->precision, "fp16") != 0)) return "--precision fp16";
    return NULL;
}

int sgt_settings_check_together(const sgt_settings *s, sgt_error *err)
{
    for (size_t i = 0; i < SGT_SETTINGS; i++)
        if (s->given[i] && lacks(s, i))
            return sgt_fail(err, SGT_EUSAGE, "--%s: needs %s", table[i].name, lacks(s, i));
    return SGT_OK;
}

/* Options that only CUDA has are texts and flags. */
static int without_cuda(sgt_settings *s, size_t i, const sgt_settings *plain, sgt_error *err)
{
    if (table[i].kind == FLAG) {
        int *at = field(s, i);
        if (*at && s->given[i]) return sgt_fail(err, SGT_EUNSUPPORTED, "--%s: needs --device cuda", table[i].name);
        *at = 0;
        return SGT_OK;
    }
    const char **at = field(s, i), *usual = *(const char *const *)field(plain, i);
    if (s->given[i] && *at && (!usual || strcmp(*at, usual) != 0))
        return sgt_fail(err, SGT_EUNSUPPORTED, "--%s %s: needs --device cuda", table[i].name, *at);
    *at = usual;
    return SGT_OK;
}

int sgt_settings_take_device(sgt_settings *s, int cuda, int bf16, sgt_error *err)
{
    int rc = SGT_OK;
    sgt_settings plain;
    sgt_settings_default(&plain);
    for (size_t i = 0; i < SGT_SETTINGS && !cuda && rc == SGT_OK; i++)
        if (table[i].flags & CUDA) rc = without_cuda(s, i, &plain, err);
    if (cuda && !s->variant) s->variant = "default";
    if (!s->precision) s->precision = bf16 ? "bf16" : "fp32";
    if (s->batch == SGT_DEFAULT_COUNT && !s->batch_auto) s->batch = cuda ? CUDA_BATCH : CPU_BATCH;
    return rc;
}

/* ---- JSON ---- */

static int take(sgt_settings *s, size_t i, const json_t *v, const char *what, sgt_error *err)
{
    void *at = field(s, i);
    int real_auto = table[i].kind == REAL && json_is_string(v) && strcmp(json_string_value(v), "auto") == 0;
    if (table[i].kind == TEXT && json_is_string(v)) *(const char **)at = json_string_value(v);
    else if (table[i].kind == COUNT && json_is_integer(v) && json_integer_value(v) >= 0)
        *(uint64_t *)at = (uint64_t)json_integer_value(v);
    else if (table[i].kind == REAL && json_is_number(v)) *(double *)at = json_number_value(v);
    else if (table[i].kind == FLAG && json_is_boolean(v)) *(int *)at = json_is_true(v);
    else if (real_auto) *(double *)at = SGT_DEFAULT_REAL;
    else
        return sgt_fail(err, SGT_EFORMAT, "%s: '%s' is not %s", what, table[i].name,
                        table[i].kind == TEXT    ? "a text"
                        : table[i].kind == COUNT ? "a whole number of at least 0"
                        : table[i].kind == FLAG  ? "true or false"
                                                 : "a number");
    return SGT_OK;
}

static size_t find(const char *name)
{
    size_t i = 0;
    while (i < SGT_SETTINGS && strcmp(table[i].name, name) != 0) i++;
    return i;
}

static json_t *parse(const char *text, const char *what, sgt_error *err)
{
    json_error_t why;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    if (json_is_object(json)) return json;
    sgt_fail(err, SGT_EFORMAT, "%s: not a JSON object%s%s", what, json ? "" : ": ", json ? "" : why.text);
    json_decref(json);
    return NULL;
}

int sgt_settings_merge(sgt_settings *s, const char *text, const char *what, int mark, sgt_error *err)
{
    const char *name;
    json_t *v, *json = parse(text, what, err);
    if (!json) return SGT_EFORMAT;
    s->owner[s->owner[0] ? 1 : 0] = json;
    json_object_foreach (json, name, v) {
        size_t i = find(name);
        int rc;
        if (i == SGT_SETTINGS)
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: unknown option '%s' (options are named as in --help, without the dashes)", what, name);
        if (s->given[i] || json_is_null(v) || (!mark && (table[i].flags & LOCAL))) continue;
        if ((rc = take(s, i, v, what, err)) < 0) return rc;
        if (mark) s->given[i] = 1;
    }
    return SGT_OK;
}

/* The text that option i is kept as: variants by name, so that they stay what they were when the default changes. */
static const char *kept_text(char names[SGT_VARIANTS_TEXT], const sgt_settings *s, size_t i)
{
    uint32_t set;
    const char *text = *(const char *const *)field(s, i);
    if (i != SGT_SET_VARIANT || !text || sgt_variants_parse(&set, text, NULL) < 0) return text;
    return sgt_variants_words(names, set);
}

/* The value of option i as JSON, "" where it is undecided, off or of no use; the shortest digits that read back as the
 * same number. 0: out of memory. */
static int render(char *out, size_t n, const sgt_settings *s, size_t i)
{
    const void *at = field(s, i);
    out[0] = '\0';
    if (((table[i].flags & LOCAL) && !s->given[i]) || lacks(s, i)) return 1;
    if (table[i].kind == FLAG && *(const int *)at) snprintf(out, n, "true");
    if (table[i].kind == COUNT && *(const uint64_t *)at != SGT_DEFAULT_COUNT)
        snprintf(out, n, "%llu", (unsigned long long)*(const uint64_t *)at);
    if (table[i].kind == REAL && *(const double *)at != SGT_DEFAULT_REAL)
        for (int digits = 6; digits <= 17; digits++) {
            snprintf(out, n, "%.*g", digits, *(const double *)at + 0.0); /* -0 is 0 */
            if (strtod(out, NULL) == *(const double *)at) break;
        }
    char names[SGT_VARIANTS_TEXT];
    const char *value = table[i].kind == TEXT ? kept_text(names, s, i) : NULL;
    if (value) {
        json_t *v = json_stringn_nocheck(value, strlen(value));
        if (!v) return 0;
        size_t used = json_dumpb(v, out, n, JSON_ENCODE_ANY);
        out[used < n ? used : 0] = '\0';
        json_decref(v);
        if (!used && (v = json_string(value))) { /* UTF-8, so that it was for want of memory */
            json_decref(v);
            return 0;
        }
    }
    return 1;
}

#define MAX_VALUE 32768 /* a path of PATH_MAX bytes, each escaped as \uXXXX */

char *sgt_settings_json(const sgt_settings *s)
{
    char *text = NULL, *value = malloc(MAX_VALUE);
    size_t n, lines = 0;
    int whole = value != NULL;
    FILE *f = open_memstream(&text, &n);
    if (f && value) {
        fputs("{", f);
        for (size_t i = 0; i < SGT_SETTINGS; i++) {
            whole &= render(value, MAX_VALUE, s, i);
            if (*value) fprintf(f, "%s\n  \"%s\": %s", lines++ ? "," : "", table[i].name, value);
        }
        fputs("\n}\n", f);
    }
    if (f && (ferror(f) | fclose(f))) whole = 0;
    if (!whole) {
        free(text);
        text = NULL;
    }
    free(value);
    return text;
}

int sgt_settings_same_run(const sgt_settings *s, const char *text, int moved, sgt_error *err)
{
    sgt_settings kept = {0};
    char *now = malloc((size_t)2 * MAX_VALUE), *then = now ? now + MAX_VALUE : NULL;
    if (!now) return sgt_fail(err, SGT_ENOMEM, "options: out of memory");
    sgt_settings_default(&kept);
    int rc = sgt_settings_merge(&kept, text, "the checkpoint's options", 1, err);
    for (size_t i = 0; i < SGT_SETTINGS && rc == SGT_OK; i++) {
        if (table[i].flags & (moved ? MAY_CHANGE | DEVICE : MAY_CHANGE)) continue;
        if (i == SGT_SET_MODEL && kept.init) continue; /* its shape came from there */
        if (i == SGT_SET_VARIANT && !kept.variant) continue; /* from before there were any */
        if (!render(now, MAX_VALUE, s, i) || !render(then, MAX_VALUE, &kept, i))
            rc = sgt_fail(err, SGT_ENOMEM, "options: out of memory");
        else if (strcmp(now, then) != 0)
            rc = sgt_fail(
                err, SGT_EUNSUPPORTED,
                "--%s: it is %.200s here and was %.200s in the run to resume (leave it out, or start a new --run)",
                table[i].name, *now ? now : "not set", *then ? then : "not set");
    }
    sgt_settings_free(&kept);
    free(now);
    return rc;
}
