/* list.h: the list mode of the host run. With SGT_HOST_LIST=FILE in the environment, work put on a
 * stream is not run. Instead, each kernel, product, attention, fill and copy becomes a line of
 * FILE. Device memory is reserved but never written, so the host reads zeros from it. By event
 * timing, each line takes a microsecond. So a step of any size is listed in a second, and no choice
 * depends on the machine.
 *
 *     kernel +1a2b3c grid 16384 1 1 block 128 smem 6144 : p0 p2 p4 65536 768 1e-05
 *     product m=65536 n=2304 k=768 batch=1 in=2 out=2 add=0 aux=0
 *     attention products=2 flops=206158430208
 *     fill 100663296
 *     copy 131200
 *
 * A kernel is named by its address in the library, which nm resolves. After the colon come its
 * arguments, structs field by field. A number is written as such. A pointer is p and the size in
 * bytes of what it points to (p0: NULL). A struct that contains an array is one "?".
 * tests/kernels/predict.py reads these lines. */
#ifndef SGT_HOST_LIST_H
#define SGT_HOST_LIST_H

#include <stdio.h>

#include <string>
#include <type_traits>
#include <utility>

#include "tests/kernels/host/host.h"

namespace host
{

bool listing();
/* Write a line in place of work on stream s. */
void list_line(cudaStream_t s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Write a copy's line. With `to_host`, the bytes become zeros, in the order of the stream. */
void list_copy(cudaStream_t s, void *to, size_t bytes, bool to_host);
void list_kernel(cudaStream_t s, const void *kernel, dim3 grid, dim3 block, size_t smem,
                 const std::string &arguments);

/* ---- arguments as text ---- */

/* The templates below test which initializers would compile. Nothing is initialized. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wmissing-braces"

/* Converts to any field, to count the fields of a struct. */
struct AnyField {
    template <class T> operator T() const;
};

template <size_t> using EachField = AnyField;

template <class T, size_t... I>
auto takes_fields(std::index_sequence<I...>, int)
    -> decltype(T{EachField<I>{}...}, std::true_type());
template <class T> std::false_type takes_fields(...);

/* As takes_fields, with two values in braces between I and J fields. Only a field that is an array
 * or a struct takes these. */
template <class T, size_t... I, size_t... J>
auto takes_pair(std::index_sequence<I...>, std::index_sequence<J...>, int)
    -> decltype(T{EachField<I>{}..., {AnyField{}, AnyField{}}, EachField<J>{}...},
                std::true_type());
template <class T> std::false_type takes_pair(...);
#pragma GCC diagnostic pop

constexpr size_t MOST_FIELDS = 24;

template <class T, size_t N = MOST_FIELDS> constexpr size_t field_count()
{
    if constexpr (N == 0 || decltype(takes_fields<T>(std::make_index_sequence<N>(), 0))::value)
        return N;
    else return field_count<T, N - 1>();
}

/* Return whether T contains an array. An array counts as one field per element in field_count, but
 * as one in a structured binding, so such a T cannot be taken apart. A struct as a field is told
 * from an array by this: with it in braces, all other fields still fit. */
template <class T, size_t N, size_t I = 0> constexpr bool has_array()
{
    if constexpr (I >= N) {
        return false;
    } else {
        using Before = std::make_index_sequence<I>;
        using After = std::make_index_sequence<N - I - 1>;
        return (decltype(takes_pair<T>(Before(), std::make_index_sequence<0>(), 0))::value &&
                !decltype(takes_pair<T>(Before(), After(), 0))::value) ||
               has_array<T, N, I + 1>();
    }
}

template <class T, class = void> struct SizeOf {
    static constexpr size_t bytes = 1; /* void, functions and incomplete types */
};
template <class T> struct SizeOf<T, std::enable_if_t<(std::is_object<T>::value && sizeof(T) > 0)>> {
    static constexpr size_t bytes = sizeof(T);
};

template <class T> void describe(std::string &out, const T &v);

template <class... F> void describe_each(std::string &out, const F &...fields)
{
    (describe(out, fields), ...);
}

/* One branch per number of fields: in C++17, a structured binding names each field. */
#define SGT_FIELDS(count, ...)                  \
    if constexpr (N == count) {                 \
        const auto &[__VA_ARGS__] = v;          \
        return describe_each(out, __VA_ARGS__); \
    }
template <class T, size_t N> void describe_fields(std::string &out, const T &v)
{
    SGT_FIELDS(1, a)
    SGT_FIELDS(2, a, b)
    SGT_FIELDS(3, a, b, c)
    SGT_FIELDS(4, a, b, c, d)
    SGT_FIELDS(5, a, b, c, d, e)
    SGT_FIELDS(6, a, b, c, d, e, f)
    SGT_FIELDS(7, a, b, c, d, e, f, g)
    SGT_FIELDS(8, a, b, c, d, e, f, g, h)
    SGT_FIELDS(9, a, b, c, d, e, f, g, h, i)
    SGT_FIELDS(10, a, b, c, d, e, f, g, h, i, j)
    SGT_FIELDS(11, a, b, c, d, e, f, g, h, i, j, k)
    SGT_FIELDS(12, a, b, c, d, e, f, g, h, i, j, k, l)
    SGT_FIELDS(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
    SGT_FIELDS(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
    SGT_FIELDS(15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
    SGT_FIELDS(16, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
    SGT_FIELDS(17, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q)
    SGT_FIELDS(18, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)
    SGT_FIELDS(19, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s)
    SGT_FIELDS(20, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t)
    SGT_FIELDS(21, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u)
    SGT_FIELDS(22, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, w)
    SGT_FIELDS(23, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, w, x)
    if constexpr (N == MOST_FIELDS) out += " ?"; /* MOST_FIELDS or more fields */
}
#undef SGT_FIELDS

template <class T> void describe(std::string &out, const T &v)
{
    char text[40];
    if constexpr (std::is_pointer<T>::value) {
        snprintf(text, sizeof text, " p%zu", v ? SizeOf<std::remove_pointer_t<T>>::bytes : 0);
        out += text;
    } else if constexpr (std::is_floating_point<T>::value) {
        snprintf(text, sizeof text, " %.9g", (double)v);
        out += text;
    } else if constexpr (std::is_integral<T>::value || std::is_enum<T>::value) {
        snprintf(text, sizeof text, " %lld", (long long)v);
        out += text;
    } else if constexpr (std::is_aggregate<T>::value && !std::is_array<T>::value) {
        constexpr size_t n = field_count<T>();
        if constexpr (has_array<T, n>()) out += " ?";
        else describe_fields<T, n>(out, v);
    } else {
        out += " ?";
    }
}

template <class... A> std::string arguments_of(const A &...arguments)
{
    std::string out;
    describe_each(out, arguments...);
    return out;
}

} /* namespace host */

#endif
