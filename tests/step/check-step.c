/* check-step: compare the whole training step, on a CPU or on CUDA, with PyTorch in float64, and
 * with the same step computed in other ways. One program tests both backends, through backend.h.
 * Without a GPU, the CUDA backend runs on the host (tests/kernels/host).
 *
 *     # --steps: only the first N of the curves' 200 steps
 *     check-step --device cuda --precision bf16 [--case NAME] [--steps N]
 *
 * The last line is "N passed, N failed, N skipped". Exit 77 if the device is missing. */
#include "tests/step/check-step.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/step/cases.h"
#include "train/device.h"
#include "tools/cli/process.h"

static const sgt_cuda_library *library;
static const char *const precisions[] = {"fp32", "tf32", "bf16", "fp16"};

/* ---- what cases use ---- */

void expect(step_check *s, int ok, const char *fmt, ...)
{
    va_list ap;
    if (ok) return;
    if (s->failures++ >= 5) return;
    printf("  %s: ", s->at);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "check-step: %s: %s\n", what, why);
    exit(1);
}

sgt_backend_options fixture_options(const step_check *s, const fixture *f, uint32_t rows)
{
    return (sgt_backend_options){.model = f->model,
                                 .optim = {.beta1 = 0.9f,
                                           .beta2 = 0.95f,
                                           .eps = 1e-8f,
                                           .weight_decay = 0.1f,
                                           .grad_clip = 1},
                                 .batch = rows,
                                 .seq = f->seq,
                                 .accum = f->batch / rows,
                                 .threads = 2,
                                 .precision = s->precision,
                                 .variants = s->cuda ? s->variants : 0};
}

sgt_cuda_counts counts_now(const step_check *s)
{
    return s->cuda ? library->count() : (sgt_cuda_counts){0};
}

static sgt_backend *open_on(int cuda, const sgt_backend_options *o)
{
    sgt_error err;
    sgt_backend *b;
    sgt_backend_options without = *o;
    without.variants = 0;
    int rc = cuda ? library->open(&b, o, &err) : sgt_cpu_backend_open(&b, &without, &err);
    if (rc < 0) die("backend", err.text);
    return b;
}

sgt_backend *open_bare(const step_check *s, const fixture *f)
{
    sgt_backend_options o = fixture_options(s, f, f->batch);
    return open_on(s->cuda, &o);
}

sgt_backend *open_fixture(step_check *s, fixture *f, const sgt_backend_options *changes,
                          uint32_t rows)
{
    sgt_backend_options o = changes ? *changes : fixture_options(s, f, rows);
    sgt_backend *b = open_on(s->cuda, &o);
    put_flat(b, &f->model, SGT_PARAMETERS, f->initial);
    fixture_pin(f, b);
    return b;
}

sgt_backend *open_on_cpu(const fixture *f, const sgt_backend_options *o)
{
    sgt_backend *b = open_on(0, o);
    put_flat(b, &f->model, SGT_PARAMETERS, f->initial);
    return b;
}

int try_open(step_check *s, const sgt_backend_options *o, sgt_error *err)
{
    sgt_backend *b;
    int rc = s->cuda ? library->open(&b, o, err) : sgt_cpu_backend_open(&b, o, err);
    if (rc == SGT_OK) b->close(b);
    return rc;
}

sgt_step_metrics run_steps(step_check *s, const fixture *f, sgt_backend *b, uint64_t from,
                           unsigned steps, uint32_t micro)
{
    sgt_error err = {0};
    sgt_step_metrics m = {0};
    uint32_t rows = f->batch / micro;
    for (uint64_t k = from; k < from + steps; k++) {
        for (uint32_t a = 0; a < micro; a++)
            fixture_micro_step_of(f, b, k, a, a * rows, 1.0 / (f->batch * f->seq));
        if (b->update(b, k, 1e-3, &err) < 0 || b->metrics(b, k, &m, &err) < 0)
            expect(s, 0, "%s", err.text);
    }
    return m;
}

double relative_l2(const float *x, const double *want, size_t n)
{
    double diff = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        diff += ((double)x[i] - want[i]) * ((double)x[i] - want[i]);
        norm += want[i] * want[i];
    }
    return sqrt(diff / norm);
}

double largest_difference(const float *x, const float *y, size_t n)
{
    double worst = 0;
    for (size_t i = 0; i < n; i++) worst = fmax(worst, fabs((double)x[i] - (double)y[i]));
    return worst;
}

double unit_of(sgt_precision p)
{
    static const double unit[] = {0x1p-24, 0x1p-11, 0x1p-9, 0x1p-11};
    return unit[p];
}

/* ---- the program ---- */

static int usage(const char *what, const char *arg)
{
    fprintf(stderr,
            "check-step: %s: %s (check-step [--device cpu|cuda] [--precision fp32|tf32|bf16|fp16] "
            "[--case NAME] [--part K/N] [--steps N] [--variant NAMES])\n",
            arg, what);
    return 2;
}

enum { PASSED, FAILED, SKIPPED };

static int run_case(const step_case *c, step_check s)
{
    snprintf(s.at, sizeof s.at, "start");
    c->body(&s);
    const char *verdict = s.failures ? "FAIL" : s.skipped ? "skip" : "ok";
    printf("%-4s %s %s %s\n", verdict, c->name, s.cuda ? "cuda" : "cpu", precisions[s.precision]);
    fflush(stdout);
    return s.failures ? FAILED : s.skipped ? SKIPPED : PASSED;
}

static int skip(const char *why)
{
    printf("skip every case: %s\n0 passed, 0 failed, 1 skipped\n", why);
    return 77;
}

static int take_cuda(sgt_error *err)
{
    sgt_cuda_device d;
    sgt_search_wheels();
    int rc = sgt_device_open(&library, err);
    return rc < 0 ? rc : library->usable(&d, err);
}

int main(int argc, char **argv)
{
    step_check s = {.steps = 200, .variants = SGT_VARIANTS_DEFAULT};
    const char *only = NULL;
    int counts[3] = {0}, given = 0;
    unsigned part = 1, parts = 1, seen = 0;
    sgt_error err;
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (!value) return usage("needs a value", name);
        if (strcmp(name, "--device") == 0) s.cuda = strcmp(value, "cuda") == 0;
        else if (strcmp(name, "--case") == 0) only = value;
        else if (strcmp(name, "--variant") == 0) {
            if (sgt_variants_parse(&s.variants, value, &err) < 0) return usage(err.text, "options");
        } else if (strcmp(name, "--part") == 0) {
            if (sscanf(value, "%u/%u", &part, &parts) != 2 || part < 1 || part > parts)
                return usage("K/N: every Nth case from the Kth on", name);
        } else if (strcmp(name, "--steps") == 0) s.steps = (unsigned)atoi(value);
        else if (strcmp(name, "--precision") == 0) {
            given = 1;
            for (int p = 0; p < 4; p++)
                if (strcmp(value, precisions[p]) == 0) s.precision = (sgt_precision)p, given = 2;
            if (given == 1) return usage("no such precision", value);
        } else return usage("unknown option", name);
    }
    if (s.steps == 0) return usage("at least 1", "--steps");
    if (s.cuda && take_cuda(&err) < 0) return skip(err.text);
    for (int p = 0; p < 4; p++) {
        if (given ? p != (int)s.precision : !s.cuda && p == SGT_PRECISION_TF32) continue;
        s.precision = (sgt_precision)p;
        for (const step_case *c = step_cases; c->name; c++) {
            if (only ? strcmp(only, c->name) != 0 : c->by_name) continue;
            if (!(c->precisions & 1 << p) || (c->cuda_only && !s.cuda)) continue;
            if (seen++ % parts == part - 1) counts[run_case(c, s)]++;
        }
    }
    if (!counts[PASSED] && !counts[FAILED] && !counts[SKIPPED])
        return usage("no such case", only ? only : "check-step");
    printf("%d passed, %d failed, %d skipped\n", counts[PASSED], counts[FAILED], counts[SKIPPED]);
    return counts[FAILED] ? 1 : counts[PASSED] ? 0 : 77;
}
