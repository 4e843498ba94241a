/* all.c: sgt-bench all: reads the options and runs all.sh, a shell script embedded in the program.
 * all.sh runs every benchmark that needs no trained model and writes a page. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/cpu.h"
#include "train/device.h"
#include "tools/bench/bench.h"
#include "tools/bench/script.h"
#include "tools/bench/shape.h"

BENCH_EMBED(sgt_bench_all, "tools/bench/all.sh");

static struct {
    const char *data, *text, *page, *parts;
    uint64_t size;
    int quick;
    double seconds;
} o = {.page = "bench.html", .seconds = 285};

static bench_shape shape = {.device = "auto"};

static const sgt_option table[] = {
    {.name = "What is measured"},
    {"parts", 0, SGT_OPT_TEXT, &o.parts, "LIST", "parts to measure, separated by commas",
     .def = "all", .words = "tokenize|loader|limits|gemm|attention|step|sample|ablation"},
    {"data", 'd', SGT_OPT_TEXT, &o.data, "OUT/ | SHARD", "shards to read and to train on",
     .def = "made for it"},
    {"text", 0, SGT_OPT_TEXT, &o.text, "INPUT", "text to tokenize", .def = "made for it"},
    {"size", 0, SGT_OPT_SIZE, &o.size, "SIZE",
     "size of the generated shards; the generated text has an eighth of it", .def = "256MiB",
     .min = 1 << 20, .max = (double)((uint64_t)64 << 30)},
    BENCH_DEVICE(shape),
    {"model", 'm', SGT_OPT_TEXT, &shape.model, "NAME|LxCxH",
     "gpt2, gpt2-medium, ..., or layers x channels x heads",
     .def = "gpt2; of ablation on a CPU 4x256x4"},
    BENCH_THREADS(shape),
    {.name = "How"},
    {"seconds", 0, SGT_OPT_REAL, &o.seconds, "X",
     "time limit in seconds; parts that would exceed it are left out", .def = "285", .min = 1,
     .max = 86400},
    {"quick", 0, SGT_OPT_FLAG, &o.quick,
     .help = "fewer and shorter measurements, for a first look"},
    {"output", 'o', SGT_OPT_TEXT, &o.page, "FILE.html", "the page", .def = "bench.html"},
    {"json", 0, SGT_OPT_FLAG, &shape.output.json,
     .help = "print one JSON document on standard output; the page has it too"},
    {"quiet", 'q', SGT_OPT_FLAG, &shape.output.quiet,
     .help = "print only failures and what --json asks for"},
    {0}};

static const sgt_program program = {
    .name = "sgt-bench all",
    .usage = "sgt-bench all [OPTION]...",
    .about = "Measures everything that needs no trained model, in under five minutes, on data that "
             "it makes for itself and\nremoves again, and writes a page with the tables and their "
             "pictures, to look at or to send to a colleague.",
    .options = table,
    .examples = "  sgt-bench all -o bench.html\n"
                "  sgt-bench all --quick --parts tokenize,loader\n"
                "  sgt-bench all --data out/ --text corpus/ --device cuda"};

static void give(const char *name, const char *value)
{
    if (setenv(name, value ? value : "", 1) < 0)
        sgt_usage(&program, "%s: no memory for the environment", name);
}

static void give_number(const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    give(name, text);
}

/* Put the folder of this program first in PATH, so that the script finds sgt's other programs. */
static void give_path(const char *self)
{
    const char *path = getenv("PATH"), *end = strrchr(self, '/');
    char *all = NULL;
    if (asprintf(&all, "%.*s:%s", (int)(end - self), self, path ? path : "/usr/bin:/bin") > 0)
        give("PATH", all);
    free(all);
}

/* Pass the notice about the device to the script, which prints it once it has checked the other
 * options. */
static void keep_line(void *ctx, const char *line)
{
    (void)ctx;
    give("about_device", line);
}

static int bench_all(int argc, char **argv)
{
    sgt_error err;
    char machine[160], model[128];
    int first = sgt_options_parse(&program, argc, argv);
    if (first < argc)
        sgt_usage(&program, "%s: expected options alone (--data OUT/ and --text INPUT name data)",
                  argv[first]);
    sgt_notice notice = {.say = keep_line};
    give("about_device", NULL);
    char *self = realpath("/proc/self/exe", NULL);
    if (!self) return sgt_fail_errno(&err, "/proc/self/exe"), sgt_report_failure(&program, &err);
    if (sgt_device_choose(&shape.device, &notice, &err) < 0)
        return sgt_report_failure(&program, &err);
    give("program", self);
    give_path(self);
    give("device", shape.device);
    give("cuda", strcmp(shape.device, "cuda") ? NULL : "1");
    give("model", shape.model);
    give("data", o.data);
    give("text", o.text);
    give("page", o.page);
    give("shown", o.page);
    give("parts", o.parts);
    give("quick", o.quick ? "1" : NULL);
    give("json", shape.output.json ? "1" : NULL);
    give("quiet", shape.output.quiet ? "1" : NULL);
    give("cpu", sgt_printable(model, sizeof model, sgt_cpu_model()));
    give("level", sgt_cpu_name());
    give("machine", bench_machine(machine, sizeof machine));
    give("threads", NULL);
    if (shape.threads) give_number("threads", shape.threads);
    give_number("cores", (uint64_t)sgt_cpu_count());
    give_number("size", o.size ? o.size : (uint64_t)256 << 20);
    give_number("ms", (uint64_t)(o.seconds * 1000));
    signal(SIGINT, SIG_DFL); /* a shell cannot catch signals that were ignored when it started */
    signal(SIGTERM, SIG_DFL);
    execl("/bin/sh", "sh", "-c", sgt_bench_all, "sgt-bench all", (char *)NULL);
    sgt_fail_errno(&err, "/bin/sh");
    return sgt_report_failure(&program, &err);
}

const sgt_command bench_all_command = {"all", "everything that needs no model, and a page of it",
                                       &program, bench_all};
