/* cublaslt_choice_cases.cpp: gemm.c's choices of algorithms, written as text and read again. Also
 * products on several streams and in graphs. */
#include "tests/kernels/host/cublaslt_fixture.h"

/* ---- choices ---- */

static std::string choices_of(Fixture &f)
{
    char *text = sgt_cuda_gemms_choices(f.g);
    std::string s = text ? text : "";
    free(text);
    return s;
}

static std::string with(std::string text, const std::string &from, const std::string &to)
{
    size_t at = text.find(from);
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

CUDA_CASE(cublaslt_choices)
{
    Fixture f(t);
    sgt_cuda_gemm_shape s = shape_of(8, 16, 24, SGT_F16), other = shape_of(8, 24, 24, SGT_F16);
    f.o.timing = 1;
    lt.fast = host::LT_PLAIN;
    check_at(t, "written");
    if (!f.open()) return;
    if (choices_of(f) != "host 1, cuBLASLt 13.1.0\n") check_fail(t, "%s", choices_of(f).c_str());
    f.plan(other);
    f.plan(s);
    const std::string text = choices_of(f);
    f.expect_text(text.c_str(), "\n8x16x24,nn,24,16,16,f16,f16,none 7467736c74616c67 ");

    f.o.deterministic = 1;
    int before = lt.matmuls;
    const struct {
        const char *name;
        std::string text;
        int algo;
    } tried[] = {{"as written", text, host::LT_PLAIN},
                 {"of another device", with(text, "host 1", "host 2"), host::LT_SPLIT},
                 {"of another version", with(text, "13.1.0", "13.1.1"), host::LT_SPLIT},
                 {"of another shape", with(text, "8x16x24", "8x16x25"), host::LT_SPLIT},
                 {"cut short", text.substr(0, text.find("none") + 20), host::LT_SPLIT},
                 {"an algorithm that is none", with(text, "7467736c", "7467736d"), host::LT_SPLIT},
                 {"nothing", "", host::LT_SPLIT}};
    for (const auto &c : tried) {
        check_at(t, "choices %s", c.name);
        f.o.choices = c.text.c_str();
        if (!f.open()) return;
        const sgt_cuda_gemm *p = f.plan(s);
        /* a first choice is checked by one product, and a choice that was read is not */
        f.expect("products run for a plan", lt.matmuls - before, c.algo == host::LT_SPLIT);
        f.expect("algorithm", f.algo_of(p, s), c.algo);
        before = lt.matmuls;
    }
    check_at(t, "written again");
    f.o.choices = text.c_str();
    if (!f.open()) return;
    f.plan(other);
    f.plan(s);
    if (choices_of(f) != text) check_fail(t, "other text: %s", choices_of(f).c_str());
}

/* ---- streams and graphs ---- */

/* A product is queued and computed later, with the pointers that it was queued with. In a graph, it
 * is computed each time the graph runs. */
CUDA_CASE(cublaslt_late)
{
    Fixture f(t);
    sgt_cuda_gemm_shape s = shape_of(1, 8, 1, SGT_F32);
    s.epilogue = SGT_EPILOGUE_BIAS;
    s.accumulate = 1;
    if (!f.open()) return;
    const sgt_cuda_gemm *p = f.plan(s);
    float *a = cuda_output<float>(t, 1), *b = cuda_output<float>(t, 8),
          *d = cuda_output<float>(t, 8);
    float *bias = cuda_output<float>(t, 8), *bias2 = cuda_output<float>(t, 8), want[8];
    sgt_cuda_stream stream;
    sgt_cuda_graph graph;
    sgt_error err;
    if (!p || sgt_cuda_stream_new(&stream, &err) < 0) return;
    for (int i = 0; i < 8; i++) b[i] = (float)i, bias[i] = 10, bias2[i] = 200, d[i] = 1000;
    a[0] = 1;
    sgt_cuda_gemm_run(p, stream, d, a, b, bias, nullptr);
    sgt_cuda_gemm_run(p, stream, d, a, b, bias2, nullptr);
    if (sgt_cuda_finish(stream, &err) < 0) check_fail(t, "%s", err.text);
    for (int i = 0; i < 8; i++) want[i] = 1210 + 2 * (float)i;
    check_equal(t, "D after two", d, want, 8);

    sgt_cuda_capture(stream, &err);
    sgt_cuda_gemm_run(p, stream, d, a, b, bias, nullptr);
    if (sgt_cuda_capture_end(stream, &graph, &err) < 0) check_fail(t, "%s", err.text);
    check_equal(t, "D after a capture", d, want, 8);
    for (int i = 0; i < 3; i++) sgt_cuda_graph_run(graph, stream);
    sgt_cuda_finish(stream, &err);
    for (int i = 0; i < 8; i++) want[i] += 3 * (10 + (float)i);
    check_equal(t, "D after three runs of a graph", d, want, 8);
    sgt_cuda_graph_free(graph);
    sgt_cuda_stream_free(stream);
}
