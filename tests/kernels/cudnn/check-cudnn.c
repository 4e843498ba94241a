/* check-cudnn.c: cuDNN itself without a GPU.
 *
 *     check-cudnn [--driver LIBCUDA]   compare names, offer our graphs to cuDNN's heuristics
 *     check-cudnn --old                the libcudnn.so.9 that is found is old.c
 *
 * The heuristics work for a Hopper and an Ampere card that are described to them. They need a CUDA
 * driver; the toolkit's stub is enough. What cuDNN computes is left to a card; the fake of
 * tests/kernels/host/cudnn.cpp tests the code around it.
 *
 * Prints one line per check; the last line is "N passed, N failed, N skipped". Exits with 1 on any
 * failure, with 77 if all checks were skipped. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/attention_cudnn.h"
#include "kernels/cuda/cudnn.h"
#include "kernels/cuda/runtime.h"

/* ---- the numbers in kernels/cuda/cudnn.h, compared with those of cudnn_graph.h, if that header is
 * available ---- */

#if defined(__has_include)
#if __has_include(<cudnn_graph.h>) && __has_include(<cuda_runtime_api.h>)
#include <cudnn_graph.h>
#if CUDNN_VERSION >= SGT_CUDNN_OLDEST
#define SAME(name, value) _Static_assert((int)CUDNN_##name == (value), #name);
SGT_CUDNN_NAMES(SAME)
_Static_assert(sizeof(cudnnStatus_t) == sizeof(int) &&
                   sizeof(cudnnBackendAttributeName_t) == sizeof(int),
               "enumerations are passed as int");
_Static_assert(sizeof(cudnnBackendDescriptor_t) == sizeof(sgt_cudnn_desc),
               "descriptors are pointers");
#define COMPARED 1
#endif
#endif
#endif

static int passed, failed, skipped;

/* ---- what attention_cudnn.c calls when it runs, which it does not here ---- */

void sgt_cuda_note_failure(const char *what, int code) { (void)what, (void)code; }
void sgt_cuda_count_launch(void) {}
void sgt_cuda_launched(sgt_cuda_stream s, const char *fmt, ...) { (void)s, (void)fmt; }
void sgt_cuda_zero(sgt_cuda_stream s, void *p, size_t bytes) { (void)s, (void)p, (void)bytes; }

static SGT_PRINTF(3, 4) int verdict(int good, const char *why, const char *fmt, ...)
{
    va_list ap;
    fputs(good ? "ok   " : "FAIL ", stdout);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    if (!good && why && *why) printf(": %s", why);
    putchar('\n');
    if (good) passed++;
    else failed++;
    return good;
}

static SGT_PRINTF(1, 2) void skip(const char *fmt, ...)
{
    va_list ap;
    fputs("SKIP ", stdout);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    skipped++;
}

/* The properties of a GPU that cuDNN needs, in the JSON form in which cuDNN 9.8 and newer write
 * them. */
#define DEVICE(version, sms, shared, l2, memory, sm_clock, memory_clock, name)                    \
    "{\"cudaDeviceId\":0,\"deviceVer\":" #version                                                 \
    ",\"driverVer\":13000,\"totalGlobalMem\":" #memory                                            \
    ",\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":" \
    "65536,"                                                                                      \
    "\"multiProcessorCount\":" #sms ",\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"         \
    "\"maxSharedMemoryPerBlockOptin\":" #shared                                                   \
    ",\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,"                         \
    "\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":0," \
    "\"isTccDriver\":0,"                                                                          \
    "\"supportCoopLaunch\":1,\"smClockRateKHz\":" #sm_clock ",\"memClockRateKHz\":" #memory_clock \
    ",\"l2CacheSize\":" #l2 ",\"deviceName\":\"" name "\"}"
static const char hopper[] =
    DEVICE(900, 132, 232448, 62914560, 150754820096, 1980000, 3201000, "NVIDIA H200");
static const char ampere[] =
    DEVICE(800, 108, 166912, 41943040, 85899345920, 1410000, 1215000, "NVIDIA A100");
static const char volta[] =
    DEVICE(700, 80, 98304, 6291456, 34359738368, 1380000, 877000, "Tesla V100");

static const sgt_cudnn_attention_options shapes[] = {
    {.type = SGT_BF16, .B = 64, .T = 1024, .H = 12, .D = 64, .scale = 0.125f}, /* gpt2 */
    {.type = SGT_F16, .B = 64, .T = 1024, .H = 12, .D = 64, .scale = 0.125f},
    {.type = SGT_BF16, .B = 64, .T = 512, .H = 12, .D = 64, .scale = 0.125f},
    {.type = SGT_F16, .B = 12, .T = 1024, .H = 12, .D = 64, .scale = 0.125f},
    {.type = SGT_BF16, .B = 8, .T = 2048, .H = 16, .D = 128, .scale = 0.08838834f},
    /* sizes that are no powers of two */
    {.type = SGT_BF16, .B = 3, .T = 1000, .H = 25, .D = 80, .scale = 0.1118034f},
    /* the smallest sizes */
    {.type = SGT_F16, .B = 1, .T = 2, .H = 1, .D = 8, .scale = 0.3535534f},
    /* more than 2^32 numbers of out */
    {.type = SGT_BF16, .B = 330, .T = 8192, .H = 25, .D = 64, .scale = 0.125f},
};

/* version: of the library; up to 9.15.0, it is refused for rows of no multiple of 128 tokens */
static void survey(int version, const char *card, const char *json, sgt_cudnn_attention_options o)
{
    sgt_cudnn_attention_offer offer = {0};
    sgt_error err = {.text = ""};
    const int refused = version <= 91500 && o.T % 128;
    size_t rows = o.B * o.H * o.T, sums = rows * 4 + (o.deterministic ? 0 : rows * o.D * 4);
    int rc = sgt_cudnn_attention_survey(&offer, &o, json, &err);
    int good = refused ? rc == SGT_EUNSUPPORTED
                       : rc == SGT_OK && offer.forward >= 1 && offer.backward >= 1 &&
                             offer.workspace >= sums;
    verdict(good, err.text,
            "%s, %s, B %zu, T %zu, H %zu, D %zu%s: %d forward, %d backward, %.1f MiB", card,
            o.type == SGT_BF16 ? "bf16" : "fp16", o.B, o.T, o.H, o.D,
            o.deterministic ? ", deterministic" : "", offer.forward, offer.backward,
            (double)offer.workspace / 1048576);
}

static void check_offers(int version)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind < 2; kind++) {
            sgt_cudnn_attention_options o = shapes[i];
            o.deterministic = kind;
            survey(version, "Hopper", hopper, o);
            survey(version, "Ampere", ampere, o);
        }
}

/* Check that the heuristics use the description: a GPU without bf16 is offered nothing. */
static void check_refusal(void)
{
    sgt_cudnn_attention_offer offer = {0};
    sgt_error err = {.text = ""};
    int rc = sgt_cudnn_attention_survey(&offer, &shapes[0], volta, &err);
    const char *want =
        "cuDNN: no execution plan for attention forward: bf16, head size 64, B 64, T 1024, H 12";
    verdict(rc == SGT_EUNSUPPORTED && !offer.forward && strncmp(err.text, want, strlen(want)) == 0,
            err.text, "Volta: no plan, in one line");
}

static void check_library(const char *driver)
{
    const sgt_cudnn *api;
    sgt_error err;
    int rc = sgt_cudnn_load(&api, &err);
    if (rc < 0 && strstr(err.text, "libcudnn.so.9 is not on this machine")) {
        skip("no cuDNN");
        return;
    }
    if (!verdict(rc == SGT_OK, err.text, "cuDNN is loaded%s%s", rc < 0 ? "" : ": ",
                 rc < 0 ? "" : api->title))
        return;
    /* cuDNN's heuristics load the driver by name. They find one that is already loaded. */
    if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) &&
        !(driver && dlopen(driver, RTLD_NOW | RTLD_GLOBAL))) {
        skip("cuDNN's heuristics: neither a CUDA driver nor the toolkit's stub of one");
        return;
    }
    check_offers(api->version);
    check_refusal();
}

/* Check the message for a library that is too old, and that of a failed call, which has the first
 * line of cuDNN's own. */
static const char *error_string(int status) { return status == 2000 ? "BAD" : "?"; }
static void last_error_string(char *text, size_t size) { snprintf(text, size, "why\nand more"); }

static void check_messages(void)
{
    const sgt_cudnn api = {.GetErrorString = error_string, .GetLastErrorString = last_error_string},
                    *old;
    sgt_error err = {.text = ""};
    int rc = sgt_cudnn_load(&old, &err);
    verdict(rc == SGT_EUNSUPPORTED &&
                strcmp(err.text, "cuDNN: version 9.3.0 is too old (9.10.2 or newer)") == 0,
            err.text, "too old");
    rc = sgt_cudnn_check(&api, 2000, "this", &err);
    verdict(rc == SGT_EUNSUPPORTED && strcmp(err.text, "cuDNN: this: BAD: why") == 0, err.text,
            "a failed call");
    verdict(sgt_cudnn_check(&api, SGT_CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "",
                            &err) == SGT_ENOMEM,
            err.text, "out of memory");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--old") == 0) {
        check_messages();
    } else if (argc == 1 || (argc == 3 && strcmp(argv[1], "--driver") == 0)) {
#ifdef COMPARED
        verdict(1, NULL, "names have cudnn_graph.h's numbers");
#else
        skip("cuDNN's numbers: no cudnn_graph.h of 9.10.2 or newer");
#endif
        check_library(argc == 3 ? argv[2] : NULL);
    } else {
        fprintf(stderr, "usage: check-cudnn [--driver LIBCUDA | --old]\n");
        return 2;
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed ? 1 : passed ? 0 : 77;
}
