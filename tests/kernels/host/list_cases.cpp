/* list_cases.cpp: how the list mode writes a kernel's arguments. */
#include <string>

#include "kernels/cuda/cuda.h"
#include "tests/kernels/host/check-cuda.h"
#include "tests/kernels/host/list.h"

namespace
{

struct Inner {
    float rate;
    uint32_t site;
};
struct Nested {
    const uint16_t *x;
    Inner inner;
    size_t n;
};
struct Last {
    int n;
    int64_t at[3];
};
struct First {
    int64_t at[3];
    int n;
};
struct Middle {
    int n;
    Inner all[2];
    const void *p;
};
struct Large {
    int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y;
};
struct Unknown;

} /* namespace */

CUDA_CASE(host_list)
{
    uint16_t x = 0;
    double y = 0;
    const float *none = nullptr;
    const struct {
        const char *what;
        std::string said, wanted;
    } cases[] = {
        {"numbers", host::arguments_of(7, (size_t)1 << 40, -1.5f, SGT_BF16),
         " 7 1099511627776 -1.5 1"},
        {"pointers", host::arguments_of(&x, &y, none, (const void *)&x, (Unknown *)&x),
         " p2 p8 p0 p1 p1"},
        {"a struct in a struct", host::arguments_of(Nested{&x, {.5f, 3}, 9}), " p2 0.5 3 9"},
        {"an array at the end", host::arguments_of(Last{1, {2, 3, 4}}, 5), " ? 5"},
        {"an array at the beginning", host::arguments_of(First{{2, 3, 4}, 1}), " ?"},
        {"an array of structs", host::arguments_of(Middle{1, {{0, 1}, {2, 3}}, &x}), " ?"},
        {"more fields than are taken apart", host::arguments_of(Large()), " ?"},
        {"dropout", host::arguments_of(sgt_cuda_dropout{nullptr, 64, 2, 1, .25f}),
         " p0 64 2 1 0.25"},
    };
    for (const auto &c : cases) {
        check_at(t, "%s", c.what);
        if (c.said != c.wanted)
            check_fail(t, "\"%s\", not \"%s\"", c.said.c_str(), c.wanted.c_str());
    }
    check_at(t, "without SGT_HOST_LIST");
    if (host::listing()) check_fail(t, "a list is written");
}
