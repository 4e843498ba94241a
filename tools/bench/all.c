/* all.c: sgt-bench all: everything in under five minutes, and a page to send to a colleague. */
#include "tools/bench/all.h"

#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/file.h"
#include "device.h"
#include "sgt_tokenize.h"
#include "tools/bench/bench.h"
#include "tools/bench/script.h"
#include "tools/bench/shape.h"
#include "tools/cli/talk.h"

#define SIZE ((uint64_t)256 << 20)
enum { MOST_PICTURE = 1 << 22 };
#define MOST_S 285 /* for all parts and their data: with the page under five minutes */

static struct {
    const char *data, *text, *page, *parts;
    uint64_t size;
    int quick;
    double seconds;
} o = {.page = "bench.html", .seconds = MOST_S};

static bench_shape shape = BENCH_SHAPE;
static int model_given;

static const sgt_option table[] = {
    {.name = "What is measured"},
    {"parts", 0, SGT_OPT_TEXT, &o.parts, "LIST", "these alone, with commas between them", .def = "all",
     .words = "tokenize|loader|limits|gemm|attention|step|sample|ablation"},
    {"data", 'd', SGT_OPT_TEXT, &o.data, "OUT/ | SHARD", "shards to read and to train on", .def = "made for it"},
    {"text", 0, SGT_OPT_TEXT, &o.text, "INPUT", "text to tokenize", .def = "made for it"},
    {"size", 0, SGT_OPT_SIZE, &o.size, "SIZE", "bytes of shards that are made; of text an eighth", .def = "256MiB",
     .min = 1 << 20, .max = (double)((uint64_t)64 << 30)},
    BENCH_DEVICE(shape),
    {"model", 'm', SGT_OPT_TEXT, &shape.model, "NAME|LxCxH", "gpt2, gpt2-medium, ..., or layers x channels x heads",
     .def = "gpt2; of ablation on a CPU 4x256x4", .given = &model_given},
    BENCH_THREADS(shape),
    {.name = "How"},
    {"seconds", 0, SGT_OPT_REAL, &o.seconds, "X", "time for all of it; a part that takes longer is left out",
     .def = "285", .min = 1, .max = 86400},
    {"quick", 0, SGT_OPT_FLAG, &o.quick, .help = "fewer and shorter measurements: a look, no figures to keep"},
    {"output", 'o', SGT_OPT_TEXT, &o.page, "FILE.html", "the page", .def = "bench.html"},
    {"json", 0, SGT_OPT_FLAG, &shape.json, .help = "one JSON document on standard output; the page has it too"},
    {"quiet", 'q', SGT_OPT_FLAG, &shape.quiet, .help = "print nothing but what --json asks for, and failures"},
    {0}};

static const sgt_program program = {
    .name = "sgt-bench all",
    .usage = "sgt-bench all [OPTION]...",
    .about = "Measures everything that needs no trained model, in under five minutes, on data that it makes for "
             "itself and\nremoves again, and writes a page with the tables and their pictures, to look at or to send "
             "to a colleague.",
    .options = table,
    .examples = "  sgt-bench all -o bench.html\n"
                "  sgt-bench all --quick --parts tokenize,loader\n"
                "  sgt-bench all --data out/ --text corpus/ --device cuda"};

typedef struct all_bench {
    all_part parts[ALL_PARTS];
    all_data data;
    const char *device;
    char *program, *picture; /* this file; where a part draws */
    double began;
    sgt_notice notice;
    const sgt_stop *stop;
} all_bench;

/* ---- the parts ---- */

static all_part *add(all_bench *b, int i, const char *name, const char *title, double limit_s)
{
    b->parts[i] = (all_part){.name = name, .title = title, .limit_s = limit_s, .wanted = !o.parts, .args = {name}};
    return &b->parts[i];
}

static void give(all_part *p, const char *const *more)
{
    int n = 0;
    while (p->args[n]) n++;
    while (*more && n < ALL_ARGS - 1) p->args[n++] = *more++;
}
#define GIVE(p, ...) give(p, (const char *const[]){__VA_ARGS__, NULL})

/* What takes long has its share of the time, and what is left by those before it. */
static void list_parts(all_bench *b)
{
    int cuda = strcmp(b->device, "cuda") == 0;
    const all_data *d = &b->data;
    all_part *tokenize = add(b, 0, "tokenize", "Text to tokens", 25);
    all_part *loader = add(b, 1, "loader", "Batches", 30),
             *limits = add(b, 2, "limits", "Batches beside their limits", 65);
    all_part *gemm = add(b, 3, "gemm", "Matrix products", 35);
    add(b, 4, "attention", "Attention", 20);
    all_part *step = add(b, 5, "step", "A training step", 45), *sample = add(b, 6, "sample", "Sampling", 20);
    all_part *ablation = add(b, 7, "ablation", "What each technique brings", 45);
    GIVE(tokenize, d->text);
    limits->args[0] = "loader";
    GIVE(loader, d->set);
    GIVE(limits, d->set, "--limits", "all");
    GIVE(step, "--parts");
    GIVE(ablation, "--data", d->tokens);
    if (model_given || cuda) GIVE(ablation, "--model", shape.model);
    else GIVE(ablation, "--model", "4x256x4", "--seq-len", "128");
    for (int i = 3; i < 7 && model_given; i++)
        if (i != 4) GIVE(&b->parts[i], "--model", shape.model);
    for (int i = 3; i < ALL_PARTS; i++)
        if (&b->parts[i] != sample) GIVE(&b->parts[i], "--device", b->device);
    if (o.quick) {
        GIVE(loader, "--seconds", ".5", "--turns", "3");
        GIVE(limits, "--seconds", ".5", "--turns", "3");
        GIVE(gemm, "--seconds", ".02");
        GIVE(step, "--steps", "3", "--warmup", "1");
        GIVE(sample, "--tokens", "16", "--turns", "1");
        GIVE(ablation, "--steps", "2", "--warmup", "1", "--rounds", "1");
    } else {
        GIVE(step, "--steps", "10", "--warmup", "2");
        GIVE(ablation, "--steps", "5", "--warmup", "1", "--rounds", cuda ? "1" : "3");
    }
}

static int choose_parts(all_bench *b, sgt_error *err)
{
    char *names[ALL_PARTS] = {0};
    int count = o.parts ? sgt_split_list(o.parts, names, ALL_PARTS) : 0, rc = SGT_OK;
    if (count < 0)
        return sgt_fail(err, SGT_EUSAGE, "--parts %s: wanted one to %d names with commas between them", o.parts,
                        ALL_PARTS);
    for (int i = 0; i < count; i++) {
        int p = 0;
        while (p < ALL_PARTS && strcmp(names[i], b->parts[p].name)) p++;
        if (p < ALL_PARTS) b->parts[p].wanted = 1;
        else if (rc == SGT_OK)
            rc = sgt_fail(err, SGT_EUSAGE,
                          "--parts %s: no such part (tokenize, loader, limits, gemm, attention, step, sample, "
                          "ablation)",
                          names[i]);
    }
    for (int i = 0; i < count; i++) free(names[i]);
    return rc;
}

static int wanted(const all_bench *b, int first, int last)
{
    int any = 0;
    for (int i = first; i <= last; i++) any |= b->parts[i].wanted;
    return any;
}

/* ---- data ---- */

/* What was named here as it is called from another folder; what is not there keeps its name, and is missed by that. */
static char *from_there(const char *given, const char *own)
{
    char *path = given ? realpath(given, NULL) : NULL;
    return path ? path : strdup(given ? given : own);
}

static int name_data(all_bench *b, sgt_error *err)
{
    all_data *d = &b->data;
    const char *above = getenv("TMPDIR");
    struct statvfs room;
    if (!above || !*above) above = "/tmp";
    if (!(d->work = sgt_join(above, "sgt-bench.XXXXXX"))) return sgt_fail(err, SGT_ENOMEM, "out of memory");
    if (!mkdtemp(d->work)) {
        int rc = sgt_fail_errno(err, "%s: no folder can be made there (TMPDIR names another place)", above);
        free(d->work);
        d->work = NULL;
        return rc;
    }
    if (!o.size) o.size = SIZE;
    d->own_text = !o.text;
    d->own_set = !o.data;
    d->set_bytes = o.quick ? o.size / 8 : o.size;
    if (statvfs(d->work, &room) == 0 && d->set_bytes > room.f_bavail * room.f_frsize / 4)
        d->set_bytes = room.f_bavail * room.f_frsize / 4; /* a full disk is nobody's measurement */
    if (d->set_bytes < 1 << 20) d->set_bytes = 1 << 20;
    d->text_bytes = (d->set_bytes < o.size && !o.quick ? d->set_bytes : o.size) / 8;
    d->text = from_there(o.text, "text");
    d->set = from_there(o.data, "set");
    d->tokens = from_there(o.data, "tokens");
    b->picture = sgt_join(d->work, "picture.svg");
    b->program = realpath("/proc/self/exe", NULL);
    return d->text && d->set && d->tokens && b->picture && b->program ? SGT_OK
                                                                      : sgt_fail(err, SGT_ENOMEM, "out of memory");
}

static int make_data(all_bench *b, sgt_error *err)
{
    const all_data *d = &b->data;
    int trains = wanted(b, 7, 7) && !o.data;
    char *text = o.text ? strdup(d->text) : sgt_join(d->work, d->text), *set = sgt_join(d->work, "set");
    char *tokens = sgt_join(d->work, "tokens");
    int rc = text && set && tokens ? SGT_OK : sgt_fail(err, SGT_ENOMEM, "out of memory");
    if (rc == SGT_OK && !o.text && (wanted(b, 0, 0) || trains)) rc = all_make_text(text, d->text_bytes, b->stop, err);
    if (rc == SGT_OK && trains) {
        const char *inputs[] = {text};
        sgt_tokenize_options t = {.inputs = inputs, .input_count = 1, .out = tokens, .stop = b->stop};
        rc = sgt_tokenize(&t, NULL, err);
    }
    if (rc == SGT_OK && !o.data && wanted(b, 1, 2)) rc = all_make_set(set, d->set_bytes, b->stop, err);
    free(text);
    free(set);
    free(tokens);
    return rc;
}

/* ---- running ---- */

/* What those before it have left, and what those after it need is not its own. */
static double time_for(const all_bench *b, const all_part *p)
{
    double left = o.seconds - (sgt_now() - b->began);
    for (const all_part *later = p + 1; later < b->parts + ALL_PARTS; later++)
        if (later->wanted) left -= later->limit_s * o.seconds / MOST_S;
    return left;
}

/* One part in a process of its own: what it cannot do is said in its place, and the others go on. */
static int run_part(all_bench *b, all_part *p, sgt_error *err)
{
    char *said = malloc(BENCH_SAID), threads[24];
    size_t n;
    double left = time_for(b, p), began = sgt_now();
    if (!said) return sgt_fail(err, SGT_ENOMEM, "out of memory");
    GIVE(p, "--plot", "picture.svg");
    snprintf(threads, sizeof threads, "%d", bench_threads(&shape));
    const char *args[ALL_ARGS + 4];
    int count = 0;
    while (p->args[count]) args[count] = p->args[count], count++;
    if (shape.threads && strcmp(args[0], "loader")) args[count++] = "--threads", args[count++] = threads;
    if (shape.json) args[count++] = "--json";
    args[count] = NULL;
    bench_script s = {
        .python = b->program, .name = p->name, .args = args, .stop = b->stop, .folder = b->data.work, .seconds = left};
    int rc = left > 0 ? bench_script_run(&s, said, err)
                      : sgt_fail(err, SGT_EUNSUPPORTED, "the parts before it took all the time there is");
    if (rc == SGT_OK) p->said = said;
    else free(said);
    if (rc == SGT_EUNSUPPORTED) snprintf(p->why, sizeof p->why, "%.399s", err->text), rc = SGT_OK;
    if (p->said && sgt_file_get(&p->picture, &n, b->picture, MOST_PICTURE, NULL) < 0) p->picture = NULL;
    unlink(b->picture);
    p->seconds = sgt_now() - began;
    return rc;
}

static void tell(const all_bench *b, const all_part *p)
{
    char command[1024], time[32];
    if (p->why[0]) sgt_say(&b->notice, "%s is left out: %s", p->name, p->why);
    else sgt_say(&b->notice, "%s took %s", p->name, sgt_format_duration(time, sizeof time, p->seconds));
    if (shape.json || shape.quiet || !p->said) return;
    printf("$ %s\n%s\n", all_command(command, sizeof command, p), p->said);
    fflush(stdout);
}

static int run_parts(all_bench *b, sgt_error *err)
{
    int rc = make_data(b, err), measured = 0;
    for (int i = 0; i < ALL_PARTS && rc == SGT_OK; i++) {
        if (!b->parts[i].wanted) continue;
        rc = run_part(b, &b->parts[i], err);
        if (rc == SGT_OK) tell(b, &b->parts[i]);
        measured |= b->parts[i].said != NULL;
    }
    if (rc == SGT_OK && !measured) rc = sgt_fail(err, SGT_EUNSUPPORTED, "nothing could be measured");
    return rc;
}

/* ---- what comes of it ---- */

static int write_page(const all_bench *b, sgt_file *f, sgt_error *err)
{
    char *text = NULL;
    size_t n = 0;
    FILE *page = open_memstream(&text, &n);
    if (!page) return sgt_fail(err, SGT_ENOMEM, "out of memory");
    all_put_page(page, &(all_report){b->parts, &b->data, sgt_now() - b->began});
    int rc = fclose(page) == 0 ? sgt_file_write(f, text, n, err) : sgt_fail(err, SGT_ENOMEM, "out of memory");
    free(text);
    return rc;
}

static int print_json(const all_bench *b, sgt_error *err)
{
    json_t *parts = json_array();
    char command[1024];
    for (int i = 0; i < ALL_PARTS; i++) {
        const all_part *p = &b->parts[i];
        if (!p->wanted) continue;
        json_t *j = json_pack("{s:s, s:s, s:f}", "part", p->name, "command", all_command(command, sizeof command, p),
                              "seconds", p->seconds);
        json_t *result = p->said ? json_loads(p->said, 0, NULL) : NULL;
        json_object_set_new(j, result ? "result" : "left_out", result ? result : json_string(p->why));
        json_array_append_new(parts, j);
    }
    json_t *top =
        json_pack("{s:s, s:i, s:s, s:s, s:f, s:o}", "cpu", sgt_cpu_model(), "cores", sgt_cpu_count(), "level",
                  sgt_cpu_level_name(sgt_cpu()), "page", o.page, "seconds", sgt_now() - b->began, "parts", parts);
    if (!top) return sgt_fail(err, SGT_ENOMEM, "out of memory");
    int bad = json_dumpf(top, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) < 0 || putchar('\n') == EOF;
    json_decref(top);
    return bad ? sgt_fail_errno(err, "standard output") : SGT_OK;
}

/* The page's place is taken first: to find after minutes that it cannot be written helps nobody. */
static int measure(all_bench *b, sgt_error *err)
{
    sgt_file *page = NULL;
    char took[32];
    int count = 0;
    list_parts(b); /* to know their names; once more below, when the device and the data have theirs */
    int rc = choose_parts(b, err);
    if (rc == SGT_OK) rc = sgt_device_choose(&b->device, &b->notice, err);
    if (rc == SGT_OK) rc = name_data(b, err);
    if (rc == SGT_OK) rc = sgt_file_begin(&page, o.page, err);
    if (rc < 0) return rc;
    list_parts(b);
    if ((rc = choose_parts(b, err)) == SGT_OK) {
        for (int i = 0; i < ALL_PARTS; i++) count += b->parts[i].wanted;
        sgt_say(&b->notice, "%d part%s, in %s at most", count, count == 1 ? "" : "s",
                sgt_format_time(took, sizeof took, o.seconds));
        rc = run_parts(b, err);
    }
    if (rc == SGT_OK) rc = write_page(b, page, err);
    if (rc < 0) {
        sgt_file_abandon(page);
        return rc;
    }
    if ((rc = sgt_file_commit(page, err)) == SGT_OK)
        sgt_say(&b->notice, "%s is written, after %s", o.page,
                sgt_format_time(took, sizeof took, sgt_now() - b->began));
    return rc;
}

static void release(all_bench *b)
{
    for (int i = 0; i < ALL_PARTS; i++) {
        free(b->parts[i].said);
        free(b->parts[i].picture);
    }
    if (b->data.work) sgt_remove_tree(b->data.work, NULL);
    free(b->data.work);
    free(b->data.text);
    free(b->data.set);
    free(b->data.tokens);
    free(b->picture);
    free(b->program);
}

static int bench_all(int argc, char **argv)
{
    sgt_error err;
    int first = sgt_options_parse(&program, argc, argv);
    if (first < argc)
        sgt_usage(&program, "%s: wanted options alone (--data OUT/ and --text INPUT name data)", argv[first]);
    sgt_talk talk = {program.name, shape.quiet};
    all_bench b = {
        .device = shape.device, .began = sgt_now(), .notice = sgt_talk_notice(&talk), .stop = sgt_catch_signals()};
    int rc = measure(&b, &err);
    if (rc == SGT_OK && shape.json) rc = print_json(&b, &err);
    if (rc == SGT_OK && (fflush(stdout) == EOF || ferror(stdout))) rc = sgt_fail_errno(&err, "standard output");
    release(&b);
    if (rc == SGT_EUSAGE) sgt_usage(&program, "%s", err.text);
    return rc < 0 ? sgt_report_failure(&program, &err) : SGT_EXIT_OK;
}

const sgt_command bench_all_command = {"all", "everything that needs no model, and a page of it", &program, bench_all};
