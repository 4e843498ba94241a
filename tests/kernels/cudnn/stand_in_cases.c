/* stand_in_cases.c: compares both passes by stand_in.c with kernels/ref, and checks the messages
 * when cuDNN fails. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/base/philox.h"
#include "tests/kernels/cudnn/check-cudnn.h"
#include "kernels/kernels.h"
#include "tests/kernels/cudnn/sixteen.h"
#include "tests/kernels/cudnn/stand_in.h"

enum { GUARD = 64 }; /* guard bytes after an array, which must not change */

static stand_in_control *control;

/* ---- arrays ---- */

static void *bytes_new(size_t n)
{
    unsigned char *p = aligned_alloc(256, (n + GUARD + 255) / 256 * 256);
    memset(p, 0xff, n); /* NaN in every type */
    memset(p + n, 0x5a, GUARD);
    return p;
}

static int guarded(const void *p, size_t n)
{
    for (size_t i = 0; i < GUARD; i++)
        if (((const unsigned char *)p)[n + i] != 0x5a) return 0;
    return 1;
}

/* Uniform in -1 .. 1, rounded to 16 bits. */
static uint16_t *random_new(size_t n, int bf16, uint64_t stream)
{
    uint16_t *x = bytes_new(2 * n);
    for (size_t i = 0; i < n; i++)
        x[i] = float_to_sixteen((float)(sgt_philox(7, i, stream).x[0] * 0x1p-31 - 1), bf16);
    return x;
}

static float *widened(const uint16_t *x, size_t n, int bf16)
{
    float *y = malloc(n * sizeof *y);
    for (size_t i = 0; i < n; i++) y[i] = sixteen_to_float(x[i], bf16);
    return y;
}

/* ---- one head compared with kernels/ref ----
 *
 * P and dS are rounded to 16 bits if a product reads them, and results once more. `unit` is half
 * the spacing of the 16-bit numbers at 1. So an error of out is at most unit (|out| + |terms|),
 * with |terms| the sum of the absolute values of its terms. The same holds for dV and dK; dQ is
 * rounded once. Float32 rounds lse and delta: 2^-22 of the terms' sizes covers both. fp16's
 * subnormal numbers have a fixed spacing. */

typedef struct head {
    size_t T, D, ld, ld_out;
    float scale;
    const float *q, *k, *v, *out, *dout, *lse; /* out and lse from the forward pass */
} head;

typedef struct sizes {
    double *out, *dq, *dk, *dv; /* (T, D): sums of the terms' absolute values */
} sizes;

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)a[i] * b[i];
    return sum;
}

static void sum_sizes(sizes *s, const head *h)
{
    for (size_t i = 0; i < h->T; i++) {
        const float *q = h->q + i * h->ld, *dout = h->dout + i * h->ld_out;
        double delta = fabs(dot(dout, h->out + i * h->ld_out, h->D));
        for (size_t j = 0; j <= i; j++) {
            const float *k = h->k + j * h->ld, *v = h->v + j * h->ld;
            double p = exp(h->scale * dot(q, k, h->D) - h->lse[i]);
            double ds = h->scale * p * (fabs(dot(dout, v, h->D)) + delta);
            for (size_t d = 0; d < h->D; d++) {
                s->out[i * h->D + d] += p * fabs(v[d]);
                s->dq[i * h->D + d] += ds * fabs(k[d]);
                s->dk[j * h->D + d] += ds * fabs(q[d]);
                s->dv[j * h->D + d] += p * fabs(dout[d]);
            }
        }
    }
}

/* In kernels/ref, query 0 sees only itself and has a score gradient of exactly 0. cuDNN's graph
 * computes it from an output that was rounded to 16 bits. Allow for the resulting error in row 0 of
 * dq and dk. */
static void add_rounding_of_first(float *dq, float *dk, const head *h)
{
    double p = exp(h->scale * dot(h->q, h->k, h->D) - h->lse[0]);
    double ds = h->scale * p * (dot(h->dout, h->v, h->D) - dot(h->dout, h->out, h->D));
    for (size_t d = 0; d < h->D; d++) {
        dq[d] = (float)(dq[d] + ds * h->k[d]);
        dk[d] = (float)(dk[d] + ds * h->q[d]);
    }
}

typedef struct bounds {
    double unit, tiny;
    char why[160];
} bounds;

static int close_to(bounds *b, const char *name, const float *got, size_t ld_got, const float *want,
                    size_t ld_want, const double *size, double rounded_terms, size_t T, size_t D)
{
    for (size_t i = 0; i < T; i++)
        for (size_t d = 0; d < D; d++) {
            double x = got[i * ld_got + d], y = want[i * ld_want + d], terms = size[i * D + d];
            double bound = 1.01 * b->unit * (fabs(y) + rounded_terms * terms) + 0x1p-22 * terms +
                           (double)(T + 1) * b->tiny;
            if (fabs(x - y) <= bound) continue;
            snprintf(b->why, sizeof b->why, "%s[%zu][%zu] is %.9g, not %.9g (+- %.2g)", name, i, d,
                     x, y, bound);
            return 0;
        }
    return 1;
}

/* ---- both passes ---- */

typedef struct arrays {
    size_t n, rows; /* numbers in out; numbers in lse */
    uint16_t *qkv, *out, *dout, *dqkv;
    float *lse;
    void *workspace;
    size_t workspace_bytes;
    float *fqkv, *fout, *fdout, *fdqkv; /* the same in float */
} arrays;

/* Which code zeroes dQ's accumulators, whose memory holds NaN before: sgt (ours), cuDNN's engines
 * (theirs), or both. */
typedef struct zeros {
    int ours, theirs;
} zeros;

static int run_both(arrays *a, const sgt_cudnn_attention_options *o, zeros z, sgt_error *err)
{
    sgt_cudnn_attention *c;
    sgt_cuda_stream stream = (sgt_cuda_stream)(void *)a;
    int rc = sgt_cudnn_attention_open(&c, o, err);
    if (rc < 0) return rc;
    a->workspace_bytes = sgt_cudnn_attention_workspace(c);
    a->workspace = bytes_new(a->workspace_bytes);
    control->adds = !z.theirs;
    sgt_cudnn_attention_clear_sums(c, z.ours);
    sgt_cudnn_attention_forward(c, stream, a->out, a->lse, a->qkv, a->workspace);
    sgt_cudnn_attention_backward(c, stream, a->dqkv, a->dout, a->out, a->lse, a->qkv, a->workspace);
    control->adds = 0;
    const char *why = sgt_cudnn_attention_failed(c);
    if (why) rc = sgt_fail(err, SGT_EIO, "%s", why);
    else if (control->stream != a) rc = sgt_fail(err, SGT_EIO, "not on the stream that was given");
    sgt_cudnn_attention_close(c);
    if (rc == SGT_OK && control->live)
        rc = sgt_fail(err, SGT_EIO, "%d descriptors were left", control->live);
    return rc;
}

static int check_head(const head *h, bounds *b, const float *dqkv)
{
    size_t TD = h->T * h->D, ld = h->ld, T = h->T, D = h->D;
    float *want = malloc(4 * TD * sizeof *want), *lse = malloc(h->T * sizeof *lse);
    float *scratch = malloc(sgt_kernels_ref()->attention_scratch(h->T, h->D) * sizeof *scratch);
    double *size = calloc(4 * TD, sizeof *size);
    sizes s = {size, size + TD, size + 2 * TD, size + 3 * TD};
    float *dq = want + TD, *dk = dq + TD, *dv = dk + TD;
    sgt_kernels_ref()->attention(want, D, lse, h->q, h->k, h->v, ld, T, D, h->scale, NULL, NULL,
                                 scratch);
    sgt_kernels_ref()->attention_backward(dq, dk, dv, D, h->dout, h->out, h->ld_out, h->lse, h->q,
                                          h->k, h->v, ld, T, D, h->scale, NULL, NULL, scratch);
    add_rounding_of_first(dq, dk, h);
    sum_sizes(&s, h);
    int good = 1;
    for (size_t i = 0; i < h->T && good; i++)
        if (!(fabs((double)h->lse[i] - lse[i]) <= 0x1p-23 * fabs(lse[i]) + 0x1p-149)) {
            snprintf(b->why, sizeof b->why, "lse[%zu] is %.9g, not %.9g", i, h->lse[i], lse[i]);
            good = 0;
        }
    good = good && close_to(b, "out", h->out, h->ld_out, want, h->D, s.out, 1, h->T, h->D) &&
           close_to(b, "dq", dqkv, h->ld, dq, h->D, s.dq, 0, h->T, h->D) &&
           close_to(b, "dk", dqkv + h->ld / 3, h->ld, dk, h->D, s.dk, 1, h->T, h->D) &&
           close_to(b, "dv", dqkv + 2 * (h->ld / 3), h->ld, dv, h->D, s.dv, 1, h->T, h->D);
    free(want);
    free(lse);
    free(scratch);
    free(size);
    return good;
}

static int check_heads(const arrays *a, const sgt_cudnn_attention_options *o, bounds *b)
{
    size_t HD = o->H * o->D;
    for (size_t row = 0; row < o->B; row++)
        for (size_t i = 0; i < o->H; i++) {
            size_t at = row * o->T * 3 * HD + i * o->D, at_out = row * o->T * HD + i * o->D;
            head h = {.T = o->T,
                      .D = o->D,
                      .ld = 3 * HD,
                      .ld_out = HD,
                      .scale = o->scale,
                      .q = a->fqkv + at,
                      .k = a->fqkv + at + HD,
                      .v = a->fqkv + at + 2 * HD,
                      .out = a->fout + at_out,
                      .dout = a->fdout + at_out,
                      .lse = a->lse + (row * o->H + i) * o->T};
            if (!check_head(&h, b, a->fdqkv + at)) return 0;
        }
    return 1;
}

static void both_passes(sgt_cudnn_attention_options o, zeros z)
{
    int bf16 = o.type == SGT_BF16;
    size_t rows = o.B * o.H * o.T, n = rows * o.D;
    bounds b = {.unit = bf16 ? 0x1p-8 : 0x1p-11, .tiny = bf16 ? 0 : 0x1p-25};
    arrays a = {.n = n,
                .rows = rows,
                .qkv = random_new(3 * n, bf16, 1),
                .dout = random_new(n, bf16, 2),
                .out = bytes_new(2 * n),
                .dqkv = bytes_new(6 * n),
                .lse = bytes_new(4 * rows)};
    sgt_error err = {.text = ""};
    int good = run_both(&a, &o, z, &err) == SGT_OK;
    a.fqkv = widened(a.qkv, 3 * n, bf16);
    a.fdout = widened(a.dout, n, bf16);
    a.fout = widened(a.out, n, bf16);
    a.fdqkv = widened(a.dqkv, 3 * n, bf16);
    if (good && !(good = check_heads(&a, &o, &b))) strcpy(err.text, b.why);
    if (good && !(good = guarded(a.workspace, a.workspace_bytes) && guarded(a.out, 2 * n) &&
                         guarded(a.dqkv, 6 * n) && guarded(a.lse, 4 * rows)))
        strcpy(err.text, "written beyond an array");
    /* if neither zeroes the accumulators, dQ contains NaN, and the test must find it */
    int wanted = z.ours || z.theirs || o.deterministic;
    verdict(wanted ? good : isnan(a.fdqkv[0]), err.text,
            "both passes, %s, B %zu, T %zu, H %zu, D %zu%s, zeros of %s", bf16 ? "bf16" : "fp16",
            o.B, o.T, o.H, o.D, o.deterministic ? ", deterministic" : "",
            z.ours     ? z.theirs ? "both" : "ours"
            : z.theirs ? "theirs"
            : wanted   ? "nobody"
                       : "nobody: it shows");
    void *all[] = {a.qkv,       a.out,  a.dout, a.dqkv,  a.lse,
                   a.workspace, a.fqkv, a.fout, a.fdout, a.fdqkv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void check_passes(void)
{
    static const struct {
        size_t B, T, H, D;
    } shapes[] = {{1, 2, 1, 8}, {2, 7, 3, 16}, {2, 33, 2, 64}, {1, 64, 2, 40}, {1, 9, 1, 128}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind < 16; kind++)
            both_passes(
                (sgt_cudnn_attention_options){.type = kind & 1 ? SGT_F16 : SGT_BF16,
                                              .deterministic = kind >> 1 & 1,
                                              .B = shapes[i].B,
                                              .T = shapes[i].T,
                                              .H = shapes[i].H,
                                              .D = shapes[i].D,
                                              .scale = (float)(1 / sqrt((double)shapes[i].D))},
                (zeros){.ours = kind >> 2 & 1, .theirs = kind >> 3 & 1});
}

/* ---- messages if it fails ---- */

static const sgt_cudnn_attention_options plain = {
    .type = SGT_BF16, .B = 1, .T = 8, .H = 1, .D = 8, .scale = 0.5f};

/* Opening with these options must fail with this message. */
static void refused(const char *name, const sgt_cudnn_attention_options *o, int code,
                    const char *want)
{
    sgt_cudnn_attention *c = NULL;
    sgt_error err = {.text = "it opened"};
    int rc = sgt_cudnn_attention_open(&c, o, &err);
    if (rc == SGT_OK) sgt_cudnn_attention_close(c);
    verdict(rc == code && strstr(err.text, want) && !strchr(err.text, '\n') && !control->live,
            err.text, "%s", name);
}

static void check_options(void)
{
#define REFUSED(name, code, want, ...)         \
    do {                                       \
        sgt_cudnn_attention_options o = plain; \
        __VA_ARGS__;                           \
        refused(name, &o, code, want);         \
    } while (0)
    REFUSED("fp32", SGT_EUNSUPPORTED, "not fp32", o.type = SGT_F32);
    REFUSED("head size 12", SGT_EUNSUPPORTED, "multiples of 8 to 128, not 12", o.D = 12);
    REFUSED("head size 136", SGT_EUNSUPPORTED, "multiples of 8 to 128, not 136", o.D = 136);
    REFUSED("one token", SGT_EUNSUPPORTED, "2 tokens or more", o.T = 1);
    REFUSED("no rows", SGT_EUSAGE, "over nothing", o.B = 0);
    REFUSED("too many rows", SGT_EUSAGE, "over too much", o.B = SIZE_MAX / 4);
    REFUSED("a scale that is no number", SGT_EUSAGE, "scaled by", o.scale = NAN);
}

static void check_plans(void)
{
    sgt_cudnn_attention *c;
    sgt_error err = {.text = ""};
    sgt_cudnn_attention_options deterministic = plain;
    deterministic.deterministic = 1;
    control->create_fails = 1;
    refused("no device", &plain, SGT_EUNSUPPORTED, "cuDNN: no handle: STAND_IN_FAILED: no device");
    control->create_fails = 0;
    control->configs = 0;
    refused("nothing offered", &plain, SGT_EUNSUPPORTED,
            "cuDNN: no execution plan for attention forward: bf16, head size 8, B 1, T 8, H 1 (0 "
            "engine");
    control->configs = 2;
    control->refused = 2;
    refused("no engine can", &plain, SGT_EUNSUPPORTED, "engine 1 cannot");
    control->refused = 1;
    int rc = sgt_cudnn_attention_open(&c, &plain, &err);
    verdict(rc == SGT_OK, err.text, "the second engine where the first cannot");
    if (rc == SGT_OK) sgt_cudnn_attention_close(c);
    control->flagged = 2; /* the first configuration fails too */
    refused("deterministic by no engine", &deterministic, SGT_EUNSUPPORTED,
            "T 8, H 1, deterministic (0 engine");
    control->refused = 0;
    sgt_cudnn_attention_offer offer = {0};
    control->flagged = 1;
    rc = sgt_cudnn_attention_survey(&offer, &deterministic, "{}", &err);
    verdict(rc == SGT_OK && offer.forward == 1 && offer.backward == 1, err.text,
            "deterministic: without the engine that says it is not");
    control->flagged = 0;
}

static void check_failure(void)
{
    sgt_cudnn_attention *c;
    sgt_error err = {.text = ""};
    if (!verdict(sgt_cudnn_attention_open(&c, &plain, &err) == SGT_OK, err.text, "opens")) return;
    uint16_t *x = random_new(4096, 1, 3);
    void *space = bytes_new(sgt_cudnn_attention_workspace(c));
    float lse[8];
    int before = control->runs, noted = failures_noted;
    int fine = sgt_cudnn_attention_failed(c) == NULL;
    control->execute_fails = 1;
    sgt_cudnn_attention_forward(c, NULL, x + 1024, lse, x, space);
    control->execute_fails = 0;
    sgt_cudnn_attention_forward(c, NULL, x + 1024, lse, x, space);
    const char *why = sgt_cudnn_attention_failed(c);
    verdict(fine && why &&
                strcmp(why, "cuDNN: attention forward: STAND_IN_FAILED: launch failed") == 0 &&
                control->runs == before && failures_noted == noted + 1,
            why, "a run that is refused is told, and the next left out");
    sgt_cudnn_attention_close(c);
    free(x);
    free(space);
}

/* Return the message for this version, computed in a child process, because a library is loaded
 * once. */
static void check_version(size_t version, const char *want)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        sgt_cudnn_attention *c;
        sgt_error err = {.text = ""};
        control->version = version;
        int rc = sgt_cudnn_attention_open(&c, &plain, &err);
        _exit(want ? !(rc == SGT_EUNSUPPORTED && strstr(err.text, want)) : rc != SGT_OK);
    }
    int status = -1;
    waitpid(child, &status, 0);
    verdict(status == 0, "something else was said", "version %zu: %s", version,
            want ? want : "opens");
}

void check_stand_in(void)
{
    void *library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    control = library ? dlsym(library, "stand_in") : NULL;
    if (!verdict(control != NULL, "it is not the libcudnn.so.9 that is found", "stand-in")) return;
    check_version(90300, "cuDNN: version 9.3.0 is too old (9.10.2 or newer)");
    check_version(91100, "cuDNN 9.11.0: fused attention takes a multiple of 128 tokens, not 8");
    check_version(91501, NULL);
    check_passes();
    check_options();
    check_plans();
    check_failure();
}
