/* cublaslt_cases.cpp: tests of gemm.c with a library that the test controls: plans, refusals,
 * and timing. cuda_cases_gemm.cpp tests the results of products. */
#include "tests/kernels/host/cublaslt_fixture.h"

/* ---- plans ---- */

CUDA_CASE(cublaslt_plans)
{
    Fixture f(t);
    sgt_cuda_gemm_shape s = shape_of(8, 16, 24, SGT_BF16), same = s, other;
    if (!f.open()) return;
    const sgt_cuda_gemm *p = f.plan(s);
    same.tf32 = 1, same.batch = 1, same.stride_a = 5; /* ignore notices */
    check_at(t, "equal shapes");
    if (f.plan(same) != p) check_fail(t, "two plans");
    f.expect("times asked", lt.heuristics, 1);
    for (int field = 0; field < 10; field++) {
        other = s;
        switch (field) {
        case 0: other.m++; break;
        case 1: other.lda += 8; break;
        case 2: other.ldb += 8; break;
        case 3: other.ldd += 8; break;
        case 4: other.out = SGT_F32; break;
        case 5: other.accumulate = 1; break;
        case 6: other.epilogue = SGT_EPILOGUE_BIAS; break;
        case 7: other.batch = 2, other.stride_a = 512; break;
        case 8: other.batch = 2, other.stride_b = 512; break;
        case 9: other.multiprocessors = 120; break;
        }
        check_at(t, "field %d", field);
        if (f.plan(other) == p) check_fail(t, "one plan for two shapes");
        f.expect("times asked", lt.heuristics, field + 2);
    }
    f.expect("products run", lt.matmuls, 0);
    if (sgt_cuda_gemm_ms(p) != 0) check_fail(t, "a time without timing");
    f.expect_text(sgt_cuda_gemms_library(f.g), "cuBLASLt 13.1.0");
}

/* A product may be confined to some multiprocessors. The chosen algorithm is stored for their
 * number. */
CUDA_CASE(cublaslt_multiprocessors)
{
    Fixture f(t);
    if (!f.open()) return;
    for (int most : {0, 120}) {
        sgt_cuda_gemm_shape s = shape_of(8, 16, 24, SGT_BF16);
        s.multiprocessors = most;
        f.algo_of(f.plan(s), s);
        f.expect("multiprocessors", lt.multiprocessors, most);
    }
}

/* Parts of a sum are never stored in 16 bits. With --deterministic they are not stored in D
 * either. */
CUDA_CASE(cublaslt_reductions)
{
    Fixture f(t);
    for (int deterministic = 0; deterministic < 2; deterministic++)
        for (int out32 = 0; out32 < 2; out32++) {
            sgt_cuda_gemm_shape s = shape_of(8, 16, 24, SGT_F16);
            f.o.deterministic = deterministic;
            if (out32) s.out = SGT_F32;
            check_at(t, "deterministic %d, %s", deterministic, out32 ? "f32" : "f16");
            if (!f.open()) return;
            f.expect("algorithm", f.algo_of(f.plan(s), s),
                     out32 && !deterministic ? host::LT_OUTPUT_TYPE : host::LT_SPLIT);
        }
}

/* ---- refusals ---- */

struct refusal {
    void (*spoil)(sgt_cuda_gemm_shape *s);
    const char *text;
};

static const refusal refusals[] = {
    {[](sgt_cuda_gemm_shape *s) { s->k = 0; }, "8x16x0,nn,24,16,16,bf16,bf16,none: "
                                               "CUBLAS_STATUS_INVALID_VALUE"},
    {[](sgt_cuda_gemm_shape *s) { s->ldd = 15; },
     ",15,bf16,bf16,none: CUBLAS_STATUS_INVALID_VALUE"},
    {[](sgt_cuda_gemm_shape *s) { s->trans_b = 1; }, ",none: CUBLAS_STATUS_INVALID_VALUE"},
    {[](sgt_cuda_gemm_shape *s) { s->trans_a = 1, s->lda = 7; },
     ",none: CUBLAS_STATUS_INVALID_VALUE"},
    {[](sgt_cuda_gemm_shape *s) { s->m = (size_t)1 << 31; }, ": CUBLAS_STATUS_INVALID_VALUE"},
    {[](sgt_cuda_gemm_shape *) { lt.refuses = true; },
     "cuBLASLt 13.1.0: 8x16x24,nn,24,16,16,bf16,bf16,none: CUBLAS_STATUS_NOT_SUPPORTED"},
};

CUDA_CASE(cublaslt_refusals)
{
    Fixture f(t);
    if (!f.open()) return;
    for (const refusal &r : refusals) {
        sgt_cuda_gemm_shape s = shape_of(8, 16, 24, SGT_BF16);
        const sgt_cuda_gemm *p = nullptr;
        sgt_error err = {};
        r.spoil(&s);
        check_at(t, "%s", r.text);
        f.expect("code", sgt_cuda_gemm_plan(&p, f.g, &s, &err), SGT_EUNSUPPORTED);
        f.expect("code in the error", err.code, SGT_EUNSUPPORTED);
        f.expect_text(err.text, r.text);
        f.expect("without an error to fill in", sgt_cuda_gemm_plan(&p, f.g, &s, nullptr),
                 SGT_EUNSUPPORTED);
    }
}

CUDA_CASE(cublaslt_missing)
{
    Fixture f(t);
    sgt_error err = {};
    lt.missing = true;
    check_at(t, "no library");
    f.expect("code", sgt_cuda_gemms_open(&f.g, &f.o, &err), SGT_EUNSUPPORTED);
    f.expect_text(err.text, "cuBLASLt: told to be missing");
    lt.missing = false;
    lt.no_driver = true;
    check_at(t, "no driver");
    f.expect("code", sgt_cuda_gemms_open(&f.g, &f.o, &err), SGT_EUNSUPPORTED);
    f.expect_text(err.text, "cuBLASLt 13.1.0: cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED");
    f.g = nullptr;
}

/* If the library refuses a product when it runs, the next check reports it, once. */
CUDA_CASE(cublaslt_run_fails)
{
    Fixture f(t);
    sgt_cuda_gemm_shape s = shape_of(8, 16, 24, SGT_F32);
    sgt_error err = {};
    if (!f.open()) return;
    const sgt_cuda_gemm *p = f.plan(s);
    lt.broken = ~0;
    uint64_t before = sgt_cuda_count().launches;
    f.algo_of(p, s);
    f.expect("launches", (long)(sgt_cuda_count().launches - before), 0);
    if (sgt_cuda_check(&err) == SGT_OK) check_fail(t, "no failure told");
    f.expect_text(err.text,
                  "cuBLASLt 13.1.0: 8x16x24,nn,24,16,16,f32,f32,none: CUBLAS_STATUS_NOT_SUPPORTED");
    if (sgt_cuda_check(&err) < 0) check_fail(t, "told twice: %s", err.text);
    lt.broken = 0;
    f.algo_of(p, s);
    f.expect("launches", (long)(sgt_cuda_count().launches - before), 1);
}

/* ---- timing ---- */

static std::string noticed;
static void note(void *, const char *line) { noticed += line; }

CUDA_CASE(cublaslt_timing)
{
    Fixture f(t);
    sgt_cuda_gemm_shape s = shape_of(8, 16, 24, SGT_F32);
    f.o.timing = 1;
    for (int fast : {host::LT_OUTPUT_TYPE, host::LT_SPLIT, host::LT_PLAIN}) {
        lt.fast = fast;
        check_at(t, "algorithm %d is fast", fast);
        if (!f.open()) return;
        const sgt_cuda_gemm *p = f.plan(s);
        f.expect("algorithm", f.algo_of(p, s), fast);
        double ms = p ? sgt_cuda_gemm_ms(p) : 1;
        if (!(ms > 0 && ms < 2)) check_fail(t, "%g ms", ms);
    }
    check_at(t, "the fast one does not run");
    lt.broken = 1 << host::LT_PLAIN;
    if (!f.open()) return;
    int algo = f.algo_of(f.plan(s), s);
    if (algo < 0 || algo == host::LT_PLAIN) check_fail(t, "algorithm %d", algo);

    check_at(t, "none runs");
    lt.broken = ~0;
    const sgt_cuda_gemm *p;
    sgt_error err = {};
    if (!f.open()) return;
    f.expect("code", sgt_cuda_gemm_plan(&p, f.g, &s, &err), SGT_EUNSUPPORTED);
    f.expect_text(err.text, "8x16x24,nn,24,16,16,f32,f32,none: CUBLAS_STATUS_NOT_SUPPORTED");

    check_at(t, "no memory for operands");
    sgt_cuda_gemm_shape large = shape_of(40000, 40000, 8, SGT_F32);
    lt.broken = 0;
    int before = lt.matmuls;
    f.o.notice = sgt_notice{note, nullptr};
    for (int unverified : {0, 1}) {
        noticed = "";
        f.o.unverified = unverified;
        if (!f.open()) return;
        p = f.plan(large);
        f.expect("products run", lt.matmuls - before, 0);
        if (p && sgt_cuda_gemm_ms(p) != 0) check_fail(t, "a time");
        f.expect("notices", !noticed.empty(), !unverified);
        if (!unverified)
            f.expect_text(noticed.c_str(), ": the algorithm is not checked: out of GPU memory: ");
        check_at(t, "without an error to fill in");
        if (!f.open()) return;
        f.expect("code", sgt_cuda_gemm_plan(&p, f.g, &large, nullptr), SGT_OK);
    }
}

/* ---- results of what was timed ---- */

/* For every form of product in a step, the fastest algorithm gives wrong results, or does not add
 * them to the old values. Then another algorithm must be used, and a notice says so. If the fastest
 * algorithm only rounds each product early, it is used. */
CUDA_CASE(cublaslt_wrong_results)
{
    Fixture f(t);
    f.o.timing = 1;
    f.o.notice = sgt_notice{note, nullptr};
    lt.fast = host::LT_TENSOR;
    lt.rounds = 1 << host::LT_TENSOR;
    for (int i = 0; i < 3 * 9; i++) {
        const int form = i / 3, bug = i % 3, wrong = bug > 0;
        const sgt_cuda_epilogue epilogues[] = {SGT_EPILOGUE_BIAS, SGT_EPILOGUE_GELU,
                                               SGT_EPILOGUE_DGELU};
        const sgt_cuda_type type = form % 3 == 0 ? SGT_BF16 : form % 3 == 1 ? SGT_F16 : SGT_F32;
        sgt_cuda_gemm_shape s = shape_of(40, 24, 72, type);
        if (form < 3) s.epilogue = epilogues[form];
        if (form == 3) s.trans_b = 1, s.ldb = s.k;
        if (form == 4) s.trans_a = 1, s.lda = s.m, s.accumulate = 1;
        if (form == 5)
            s.batch = 3, s.stride_a = 40 * 72, s.stride_b = 72 * 24, s.stride_d = 40 * 24;
        if (form == 5) s.accumulate = 1;
        if (form == 8) s.tf32 = 1;
        if (form == 6) s.trans_a = 1, s.lda = s.m, s.accumulate = 1, s.out = SGT_F32;
        if (bug == 2 && !s.accumulate) continue;
        lt.wrong = bug == 1 ? 1 << host::LT_TENSOR : 0;
        lt.forgetful = bug == 2 ? 1 << host::LT_TENSOR : 0;
        check_at(t, "form %d, bug %d", form, bug);
        noticed = "";
        if (!f.open()) return;
        const sgt_cuda_gemm *p = f.plan(s);
        if (!p || (sgt_cuda_gemm_ms(p) < 1) == wrong) check_fail(t, "another one was taken");
        if (!wrong && !noticed.empty()) check_fail(t, "%s", noticed.c_str());
        if (!wrong) continue;
        f.expect_text(noticed.c_str(), ": an algorithm computes ");
        f.expect_text(noticed.c_str(), ": this algorithm is not used");
    }
    check_at(t, "all are wrong");
    lt.forgetful = 0;
    lt.wrong = ~0;
    const sgt_cuda_gemm *p;
    sgt_error err = {};
    sgt_cuda_gemm_shape s = shape_of(8, 16, 24, SGT_F32);
    if (!f.open()) return;
    f.expect("code", sgt_cuda_gemm_plan(&p, f.g, &s, &err), SGT_EFORMAT);
    f.expect_text(err.text, "8x16x24,nn,24,16,16,f32,f32,none: an algorithm computes ");
}

/* A deterministic run uses the first algorithm with correct results. */
CUDA_CASE(cublaslt_wrong_first)
{
    if (t->placement || t->turn) return; /* the buffers do not matter here */
    Fixture f(t);
    f.o.notice = sgt_notice{note, nullptr};
    sgt_cuda_gemm_shape s = shape_of(8, 16, 24, SGT_F16);
    f.o.deterministic = 1;
    noticed = "";
    if (!f.open()) return;
    f.expect("the first algorithm", f.algo_of(f.plan(s), s), host::LT_SPLIT);
    if (!noticed.empty()) check_fail(t, "%s", noticed.c_str());
    lt.wrong = 1 << host::LT_SPLIT;
    if (!f.open()) return;
    f.expect("the first correct one", f.algo_of(f.plan(s), s), host::LT_TENSOR);
    f.expect_text(noticed.c_str(), ": this algorithm is not used");
    f.o.unverified = 1;
    if (!f.open()) return;
    f.expect("unchecked, the first", f.algo_of(f.plan(s), s), host::LT_SPLIT);
}

/* The error that a bf16 product is allowed, computed by hand for x = 1, to which 1 is added, or
 * which is multiplied by the slope 1/2. For each epilogue: the result, and the error in units of
 * the last place. */
CUDA_CASE(cublaslt_allowed_errors)
{
    const double all[][2] = {{1, 1}, {2, 3}, {1.9545977, 5.8045977}, {0.5, 1.8875}};
    for (int e = SGT_EPILOGUE_NONE; e <= SGT_EPILOGUE_DGELU; e++) {
        sgt_cuda_gemm_shape s = shape_of(1, 1, 1, SGT_BF16);
        s.epilogue = (sgt_cuda_epilogue)e;
        double off = 0, got = sgt_cuda_gemm_expected(&s, 1, 1, 1, 0, &off);
        if (fabs(got - all[e][0]) > 1e-6 || fabs(off * 256 - all[e][1]) > 1e-6)
            check_fail(t, "epilogue %d: %g, off by %g", e, got, off * 256);
    }
}
