/* code.c: the code that was compiled for AMX (kernels/cpu): products, attention and the head have
 * the twin's bits. On a CPU without AMX, its instructions run in emulation (trap/trap_amx.h). */
#include <omp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/kernels/harness.h"
#include "tests/kernels/twin_amx.h"

#if defined(__x86_64__) && !defined(SGT_AMX_TWIN)
#include <fcntl.h>
#include <string.h>

#include "loader/base/cpu.h"
#include "kernels/cpu/head_amx.h"
#include "kernels/cpu/levels.h"
#include "kernels/cpu/product.h"
#include "tests/kernels/code_amx.h"
#include "tests/kernels/trap/trap_amx.h"

extern const sgt_product twin_product;

/* ---- products ---- */

static const struct {
    size_t m, n, k;
} shapes[] = {{1, 1, 1},     {3, 7, 2},      {31, 33, 34},   {32, 32, 32},
              {65, 48, 255}, {40, 130, 257}, {33, 70, 1025}, {5, 512, 100}};

enum { TRANS_A = 1, TRANS_B = 2, BIAS = 4, ADD = 8, THREADS = 2 };

static const uint16_t *draw_bf16(check *t, size_t n)
{
    uint16_t *x = check_bytes(t, n * sizeof *x);
    t->ref->to_bf16(x, check_random(t, n, 1), n);
    return x;
}

/* Compute C, each thread a part of its columns. */
static void multiply(const sgt_product *p, const sgt_gemm_shape *s, const uint16_t *a,
                     const uint16_t *b, const float *bias, float *c, double *squares,
                     char *const scratch[THREADS])
{
    size_t across = (s->n + p->columns - 1) / p->columns, half = (across + 1) / 2 * p->columns;
#pragma omp parallel for num_threads(THREADS) schedule(static)
    for (size_t j = 0; j < s->n; j += half)
        p->run(s, a, b, bias, c, 0, s->m, j, j + half < s->n ? half : s->n - j, NULL,
               squares + j / p->columns, across, scratch[omp_get_thread_num()]);
}

static void one_product(check *t, size_t m, size_t n, size_t k, int options)
{
    int trans_a = options & TRANS_A, trans_b = (options & TRANS_B) != 0;
    const sgt_gemm_shape s = {.m = m,
                              .n = n,
                              .k = k,
                              .trans_a = trans_a,
                              .trans_b = trans_b,
                              .lda = trans_a ? m : k,
                              .ldb = trans_b ? k : n,
                              .ldc = n,
                              .bias = (options & BIAS) != 0,
                              .accumulate = (options & ADD) != 0,
                              .bf16 = 1};
    const sgt_product *tables[2] = {&twin_product, &sgt_product_bf16_amx};
    const uint16_t *a = draw_bf16(t, m * k), *b = draw_bf16(t, k * n);
    const float *bias = check_random(t, n, 1), *old = check_random(t, m * n, 1);
    float *c[2];
    double *squares[2];
    check_at(t, "%zu x %zu x %zu, options %d", m, n, k, options);
    for (int i = 0; i < 2; i++) {
        char *scratch[THREADS];
        for (int h = 0; h < THREADS; h++)
            scratch[h] = (char *)check_scratch(t, tables[i]->scratch / sizeof(float));
        c[i] = check_copy(t, old, m * n);
        squares[i] = check_doubles(t, (m / 32 + 1) * (n / 32 + 1));
        multiply(tables[i], &s, a, b, bias, c[i], squares[i], scratch);
    }
    check_equal(t, "C", c[1], c[0], m * n);
    if (memcmp(squares[0], squares[1], (m / 32 + 1) * (n / 32 + 1) * sizeof(double)) != 0)
        check_fail(t, "other squares");
}

static void products(check *t)
{
    static const int options[] = {0, BIAS, ADD, BIAS | ADD};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int trans = 0; trans <= (TRANS_A | TRANS_B); trans++)
            one_product(t, shapes[i].m, shapes[i].n, shapes[i].k,
                        trans | options[(i + (size_t)trans) % 4]);
}

/* ---- attention ---- */

static void one_attention(check *t, size_t T, size_t D, const sgt_dropout *drop, int documents)
{
    const size_t n = T * D;
    const sgt_kernels *tables[2] = {twin_table(), &sgt_table_amx};
    const float *q = check_random(t, n, 2), *k = check_random(t, n, 2), *v = check_random(t, n, 1),
                *dout = check_random(t, n, 1);
    int32_t *start = check_ids(t, T, 1);
    for (size_t i = 0; i < T; i++) start[i] = (int32_t)(i - i % 41);
    const int32_t *from = documents ? start : NULL;
    float *out[2], *lse[2], *grads[2];
    check_at(t, "T %zu, D %zu%s%s", T, D, drop ? ", dropout" : "", documents ? ", documents" : "");
    for (int i = 0; i < 2; i++) {
        float *room = check_scratch(t, tables[i]->attention_scratch(T, D));
        out[i] = check_output(t, n), lse[i] = check_output(t, T);
        float *g = grads[i] = check_output(t, 3 * n);
        tables[i]->attention(out[i], D, lse[i], q, k, v, D, T, D, .25f, drop, from, room);
        tables[i]->attention_backward(g, g + n, g + 2 * n, D, dout, out[i], D, lse[i], q, k, v, D,
                                      T, D, .25f, drop, from, room);
    }
    check_equal(t, "out", out[1], out[0], n);
    check_equal(t, "lse", lse[1], lse[0], T);
    check_equal(t, "dq, dk and dv", grads[1], grads[0], 3 * n);
}

static void attentions(check *t)
{
    static const size_t lengths[] = {1, 5, 32, 45, 133, 289}, sizes[] = {1, 17, 80};
    const sgt_dropout drop = {.seed = 7, .draw = 3, .first = 12, .rate = .3f};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
            size_t kind = (i + j) % 3;
            one_attention(t, lengths[i], sizes[j], kind == 1 ? &drop : NULL, kind == 2);
        }
}

/* ---- the head ---- */

static void one_head(check *t, size_t n, size_t V, size_t C, float size, int add)
{
    const float *x32 = check_random(t, n * C, 1), *old = check_random(t, V * C, 1);
    uint16_t *x = check_bytes(t, n * C * sizeof *x), *w = check_bytes(t, V * C * sizeof *w);
    int32_t *targets = check_ids(t, n, (int32_t)V);
    float *loss[2], *dx[2], *dw[2];
    double squares[2];
    t->ref->to_bf16(x, x32, n * C), t->ref->to_bf16(w, check_random(t, V * C, size), V * C);
    if (n > 3) targets[3] = -1;
    check_at(t, "n %zu, V %zu, C %zu, weights up to %g", n, V, C, (double)size);
    for (int i = 0; i < 2; i++) {
        sgt_head h = {.n = n, .V = V, .C = C, .bf16 = 1, .threads = THREADS};
        size_t memory = i ? sgt_head_bf16_amx_memory(&h) : twin_head_memory(&h);
        h.memory = check_scratch(t, memory / sizeof(float) + 16);
        loss[i] = check_output(t, n), dx[i] = check_output(t, n * C);
        dw[i] = check_copy(t, old, V * C);
        squares[i] = (i ? sgt_head_bf16_amx : twin_head_run)(&h, n, x, x32, w, targets, .5, loss[i],
                                                             dx[i], dw[i], add);
    }
    check_equal(t, "loss", loss[1], loss[0], n);
    check_equal(t, "dx", dx[1], dx[0], n * C);
    check_equal(t, "dw", dw[1], dw[0], V * C);
    if (squares[0] != squares[1]) check_fail(t, "other squares");
}

/* With weights of 60, parts of some rows have factors of their own ("mixed", head_bf16_amx.c). */
static void heads(check *t)
{
    one_head(t, 1, 8, 8, 1, 0), one_head(t, 7, 700, 33, 1, 1);
    one_head(t, 65, 1030, 40, .1f, 0), one_head(t, 33, 1100, 72, 60, 1);
    one_head(t, 40, 513, 520, .1f, 0);
}

/* ---- the cases ---- */

static void check_released(check *t)
{
    long held = trap_amx_held();
    if (held) check_fail(t, "tiles were configured and not released, %ld times", held);
}

/* Check that Linux refuses AMX on a CPU without it, and that the level is then AVX-512. */
static void check_refused(check *t)
{
    static const char want[] =
        "amx: Linux does not let this process use it (take a lower level, or auto)";
    sgt_error err = {.text = ""};
    if (claimed_cpu_amx()) check_fail(t, "Linux does not refuse AMX");
    if (strcmp(claimed_cpu_name(), "avx512") != 0) check_fail(t, "%s", claimed_cpu_name());
    if (claimed_cpu_limit("amx", &err) != SGT_EUNSUPPORTED || strcmp(err.text, want) != 0)
        check_fail(t, "--cpu amx: %s", err.text);
}

static void by_twin(check *t)
{
    const char *wrong = tiles_ready(t) ? amx_wrong_address() : NULL;
    if (t->skipped) return;
    if (!sgt_cpu_amx()) check_refused(t);
    if (wrong) check_fail(t, "other bytes were moved: %s", wrong);
    products(t), check_released(t);
    attentions(t), check_released(t);
    heads(t), check_released(t);
}

/* Return the signal that ends a process with this misuse, or 0. */
static int signal_of(const amx_misuse *m)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
        signal(SIGSEGV, SIG_DFL);
        if (setrlimit(RLIMIT_CORE, &none) < 0 || dup2(quiet, STDERR_FILENO) < 0) _exit(1);
        m->run();
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0) return -1;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void misuse_ends_process(check *t)
{
    for (const amx_misuse *m = tiles_ready(t) ? amx_misuses : NULL; m && m->name; m++) {
        int got = signal_of(m);
        check_at(t, "%s", m->name);
        if (got != m->signal) check_fail(t, "signal %d, not %d", got, m->signal);
    }
}
#else
static void by_twin(check *t) { tiles_ready(t); }
static void misuse_ends_process(check *t) { tiles_ready(t); }
#endif

static void no_bench(check *t) { (void)t; }

const kernel_case cases_code[] = {{"amx_code", misuse_ends_process, by_twin, no_bench, "amx"}, {0}};
