/* check-cudnn.c: checks the messages for a libcudnn.so.9 that is too old, and for a call that cuDNN
 * refuses. Run this program with old.c compiled as libcudnn.so.9. The last line is "N passed, N
 * failed, 0 skipped". */
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/cudnn.h"

static int passed, failed;

static void expect(int rc, int code, const sgt_error *err, const char *text)
{
    int good = rc == code && strcmp(err->text, text) == 0;
    if (good) passed++;
    else failed++;
    printf("%s %s\n", good ? "ok  " : "FAIL", err->text);
}

static const char *error_string(int status) { return status == 2000 ? "BAD" : "?"; }
static void last_error_string(char *text, size_t size) { snprintf(text, size, "why\nand more"); }

int main(void)
{
    const sgt_cudnn api = {.GetErrorString = error_string, .GetLastErrorString = last_error_string},
                    *old;
    const int memory = SGT_CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    sgt_error err = {.text = ""};
    expect(sgt_cudnn_load(&old, &err), SGT_EUNSUPPORTED, &err,
           "cuDNN: version 9.3.0 is too old (install 9.10.2 or newer)");
    expect(sgt_cudnn_check(&api, 2000, "this", &err), SGT_EUNSUPPORTED, &err,
           "cuDNN: this: BAD: why");
    expect(sgt_cudnn_check(&api, memory, "this", &err), SGT_ENOMEM, &err, "cuDNN: this: ?: why");
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
