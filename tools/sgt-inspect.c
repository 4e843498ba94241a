/* sgt-inspect: prints what a folder of shards, a shard, a training run or a checkpoint contains. It
 * can also verify and decode shards, print the batches that training would draw, compare two sets
 * of shards, and convert a set to the formats of other trainers. */
#include <inttypes.h>
#include <stdlib.h>

#include "train/config.h"
#include "loader/handle.h"
#include "tokenize/out/export.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"
#include "tools/cli/options.h"
#include "tools/inspect/inspect.h"
#include "train/run/run.h"

static inspect o;
static int loader_given, sampling_given, seed_given, batch_size_given, seq_len_given, threads_given,
    export_given;
static int compare;

static const sgt_option table[] = {
    {.name = "What to show"},
    {"verify", 0, SGT_OPT_FLAG, &o.verify, NULL,
     .help = "read all files and verify checksums, sizes, ids and the positions of documents"},
    {"decode", 0, SGT_OPT_TEXT, &o.decode, "FROM:COUNT",
     .help = "print the text of COUNT tokens, beginning with token FROM (0: the first token)"},
    {"batch", 0, SGT_OPT_TEXT, &o.batch, "K[:N]",
     .help = "show N batches as sgt-train draws them, beginning with batch K"},
    {"split", 0, SGT_OPT_CHOICE, &o.split, "train|val", "use only the shards of this split",
     .def = "all; train for --batch"},
    {"raw", 0, SGT_OPT_WORD, &o.raw, "none|16|32",
     "bits per id in files without a header, such as nanoGPT's", .def = "none"},
    {"threads", .as = &sgt_config_rows[SGT_SET_THREADS], .to = &o.threads,
     .help = "number of shards that --verify reads at the same time", .given = &threads_given},
    {.name = "Several sets"},
    {"compare", 0, SGT_OPT_FLAG, &compare, NULL,
     .help = "check whether A and B contain equal token sequences; show the first difference"},
    {"export", 0, SGT_OPT_WORD, &o.layout, "megatron|nanogpt|npy",
     .help = "convert set A for Megatron-LM, nanoGPT or OLMo-core; the files in OUT are the same "
             "as those that sgt-tokenize --shards would write",
     .given = &export_given},
    {"force", 0, SGT_OPT_FLAG, &o.force, NULL,
     .help = "with --export, replace an existing set in OUT"},
    {.name = "Sampling of --batch (the trainer's options)"},
    {"loader", .as = &sgt_config_rows[SGT_SET_LOADER], .to = &o.loader, .given = &loader_given,
     .help = "method of reading shards; does not affect the batches", .def = "mmap"},
    {"sampling", .as = &sgt_config_rows[SGT_SET_SAMPLING], .to = &o.sampling,
     .given = &sampling_given,
     .help = "method of drawing rows; without --batch, packed prints the number of cropped tokens"},
    {"pad-id", .as = &sgt_config_rows[SGT_SET_PAD], .to = &o.pad, .given = &o.padded_by},
    {"seed", 0, SGT_OPT_COUNT, &o.seed, "N", "seed for drawing rows", .def = "1",
     .given = &seed_given},
    {"batch-size", 0, SGT_OPT_COUNT, &o.batch_size, "N", "rows per batch", .def = "8", .min = 1,
     .max = 1 << 20, .given = &batch_size_given},
    {"seq-len", .as = &sgt_config_rows[SGT_SET_SEQ], .to = &o.seq_len, .given = &seq_len_given},
    {"documents", 0, SGT_OPT_FLAG, &o.documents, NULL,
     .help = "with --batch, also show where documents begin in each row"},
    {.name = "Output"},
    {"json", 0, SGT_OPT_FLAG, &o.json, NULL,
     .help = "print the results as one JSON object; with --batch, one JSON object per batch"},
    {"quiet", 'q', SGT_OPT_FLAG, &o.quiet, NULL,
     .help = "print only warnings, errors, and the output of --json, --decode or --batch"},
    {0}};

static const sgt_program program = {
    .name = "sgt-inspect",
    .usage = "sgt-inspect [OPTION]... OUT/ | SHARD | RUN/ | RUN/step-NNNNNNNN/\n"
             "       sgt-inspect --batch K[:N] [OPTION]... A:0.7,B:0.3\n"
             "       sgt-inspect --compare [OPTION]... A B\n"
             "       sgt-inspect --export LAYOUT [OPTION]... A OUT/",
    .makes_folder = 1,
    .about =
        "Shows the contents of a set, a shard, a training run or a checkpoint, compares two sets, "
        "and converts a set for other trainers.",
    .options = table,
    .examples = "  sgt-inspect out/\n"
                "  sgt-inspect out/ --verify\n"
                "  sgt-inspect out/ --decode 0:200\n"
                "  sgt-inspect out/ --batch 5:3 --batch-size 4 --seq-len 64\n"
                "  sgt-inspect out/ --sampling packed --seq-len 1024\n"
                "  sgt-inspect run/\n"
                "  sgt-inspect --compare out/ out2/\n"
                "  sgt-inspect --export megatron out/ for-megatron/"};

/* Return SGT_EFORMAT, because at least one shard is damaged. If one shard is damaged, the message
 * in *err describes the damage. If several shards are damaged, print a line for each; the message
 * in *err contains their number. */
static int report_damage(const inspect_set *s, sgt_error *err)
{
    sgt_error one;
    for (uint32_t i = 0; i < s->set.count; i++) {
        if (!s->set.shards[i].damage) continue;
        sgt_fail(&one, SGT_EFORMAT, "%s", s->set.shards[i].damage);
        if (s->set.damaged == 1) return sgt_fail(err, SGT_EFORMAT, "%s", one.text);
        sgt_report_failure(&program, &one);
    }
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: %" PRIu32 " of %" PRIu32
                    " shards are damaged (sgt-tokenize --force makes the set anew)",
                    s->path, s->set.damaged, s->set.count);
}

static int inspect_shards(sgt_error *err)
{
    inspect_set s;
    int rc = inspect_set_open(&s, &o, o.path, err);
    if (rc < 0) return rc;
    if (o.verify) rc = inspect_set_verify(&s, &o, err);
    if (rc == SGT_OK && s.set.damaged) {
        if (o.json) rc = inspect_set_show(&s, &o, err);
        if (rc == SGT_OK) rc = report_damage(&s, err);
    } else if (rc == SGT_OK) {
        rc = o.decode ? inspect_decode(&s, &o, err) : inspect_set_show(&s, &o, err);
    }
    inspect_set_close(&s);
    return rc;
}

/* Return 1 if statistics of packed rows must be printed, otherwise 0. The user requests these
 * statistics with --sampling packed without --batch. */
static int packing(void) { return o.sampling == SGT_SAMPLING_PACKED && !o.batch; }

static int run_one(int mix, sgt_error *err)
{
    char named[SGT_PATH];
    int rc = mix ? 0 : sgt_run_named(named, o.path, err);
    if (rc < 0) return rc;
    if (rc) o.path = named;
    const inspect_kind k = mix ? INSPECT_SHARDS : inspect_find_kind(o.path);
    if (k != INSPECT_SHARDS && (o.decode || o.batch || o.verify || packing() || o.split || o.raw))
        return sgt_fail(err, SGT_EUSAGE,
                        "%s is a %s: options such as --verify, --batch and --sampling need shards",
                        o.path, inspect_kinds[k]);
    if (k == INSPECT_RUN) return inspect_run(&o, err);
    if (k == INSPECT_CHECKPOINT) return inspect_checkpoint(&o, err);
    /* return an error if the file is not a shard, because the loader accepts any file */
    if ((o.batch || packing()) && !mix && !o.raw && (rc = inspect_known(o.path, err)) < 0)
        return rc;
    if (packing()) return inspect_packing(&o, err);
    return o.batch ? inspect_batches(&o, err) : inspect_shards(err);
}

/* Inspect the operand o.path. Like the argument of --data in sgt-train, it is a path or, with
 * --batch, a list of several paths with weights. */
static int run(sgt_error *err)
{
    sgt_loader_set *sets;
    uint32_t count;
    int rc = sgt_loader_sets_parse(&sets, &count, o.path, err);
    if (rc < 0) return rc;
    if (count == 1) o.path = sets->path;
    rc = count > 1 && !o.batch && !packing()
             ? sgt_fail(err, SGT_EUSAGE,
                        "%s: only --batch K can show several sets (name one of them)", o.path)
             : run_one(count > 1, err);
    free(sets);
    return rc;
}

/* Exit with a usage error if the given options cannot be combined, if an option is given without
 * another that it needs, or if `count`, the number of paths given, does not fit the options. */
static void check_usage(int count)
{
    const int batch = o.batch != NULL, two = compare || export_given;
    const struct {
        const char *name;
        int given;
    } modes[] = {
        {"--compare", compare},           {"--export", export_given},     {"--batch", batch},
        {"--sampling packed", packing()}, {"--decode", o.decode != NULL}, {"--verify", o.verify}};
    const struct {
        const char *name;
        int given, fits;
        const char *needs;
    } options[] = {
        {"--loader", loader_given, batch, "--batch K"},
        {"--seed", seed_given, batch, "--batch K"},
        {"--batch-size", batch_size_given, batch, "--batch K"},
        {"--documents", o.documents, batch, "--batch K"},
        {"--sampling", sampling_given, batch || packing(), "--batch K"},
        {"--seq-len", seq_len_given, batch || packing(), "--batch K"},
        {"--pad-id", o.padded_by, o.sampling == SGT_SAMPLING_DOCUMENTS, "--sampling documents"},
        {"--threads", threads_given, o.verify, "--verify"},
        {"--force", o.force, export_given, "--export"}};
    if (!count && !two)
        sgt_usage(&program, "expected a path: a folder of shards, a shard, a run or a checkpoint");
    if (count > 1 && !two)
        sgt_usage(&program, "expected one path, not %d (--compare and --export take two)", count);
    /* Refuse any two modes that are given together, except for --decode and --verify, the last two
     * in the list, which can be combined with each other. */
    for (size_t i = 0; i < 4; i++)
        for (size_t k = i + 1; k < sizeof modes / sizeof *modes; k++)
            if (modes[i].given && modes[k].given)
                sgt_usage(&program, "%s: cannot be combined with %s (run them one after the other)",
                          modes[i].name, modes[k].name);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given && !options[i].fits)
            sgt_usage(&program, "%s: needs %s", options[i].name, options[i].needs);
    if (compare && count != 2)
        sgt_usage(&program, "--compare: expected two sets, A and B, not %d", count);
    if (export_given && count != 2)
        sgt_usage(&program,
                  "--export: expected two paths, not %d (sgt-inspect --export %s SET OUT)", count,
                  sgt_layout_names[o.layout]);
    if (export_given && (o.split || o.raw))
        sgt_usage(&program, "--export: needs an entire set, so it accepts no --split and no --raw");
}

int main(int argc, char **argv)
{
    sgt_error err;
    int first = sgt_options_parse(&program, argc, argv), count = argc - first;
    const char *const *paths = (const char *const *)argv + first;
    /* Add 1 to the index of the word that the user chose for --export, to get the layout's value in
     * sgt_layout. The words of --export begin with the second layout, because the first one is
     * sgt's own. */
    o.layout += export_given;
    o.raw *= 16; /* the words stand for 16 and 32 */
    check_usage(count);
    o.path = argv[first];
    o.notice = sgt_talk_notice(program.name, o.quiet);
    o.stop = sgt_catch_signals();
    /* A failure to install the handler is ignored. Without the handler, reading a truncated shard
     * kills the process with SIGBUS instead of returning an error. */
    sgt_loader_guard_sigbus(NULL);
    int rc = compare        ? inspect_compare(&o, paths, &err)
             : export_given ? inspect_export(&o, paths, &err)
                            : run(&err);
    int code = sgt_end_program(&program, rc, &err);
    return rc > 0 ? SGT_EXIT_FAILED : code;
}
