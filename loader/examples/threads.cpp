// threads.cpp: libsgt-loader from C++: handles that close themselves, errors as exceptions, and one
// loader shared by threads that each draw their own batches.
//
//     c++ -std=c++17 threads.cpp $(pkg-config --cflags --libs sgt-loader) -pthread -o threads && ./threads out 100
#include <sgt_loader.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace sgt
{

struct error : std::runtime_error {
    explicit error(const sgt_error &e) : std::runtime_error(e.text), code(e.code) {}
    int code; // SGT_EFORMAT, SGT_EIO, ...
};

class loader
{
  public:
    loader(const std::string &path, const sgt_loader_options &options)
    {
        sgt_error e;
        sgt_loader *l;
        if (sgt_loader_open(&l, path.c_str(), &options, &e) < 0) throw error(e);
        handle.reset(l);
    }
    sgt_loader_info info() const
    {
        sgt_loader_info i;
        sgt_loader_get_info(handle.get(), &i);
        return i;
    }
    const sgt_loader *get() const { return handle.get(); }

  private:
    struct close {
        void operator()(sgt_loader *l) const { sgt_loader_close(l); }
    };
    std::unique_ptr<sgt_loader, close> handle;
};

// // A cursor for one thread. The loader must outlive it.
class cursor
{
  public:
    explicit cursor(const loader &from) : l(from.get())
    {
        sgt_error e;
        sgt_cursor *c;
        if (sgt_cursor_open(&c, l, &e) < 0) throw error(e);
        handle.reset(c);
    }
    void batch(std::uint64_t k, std::vector<std::uint16_t> &rows)
    {
        sgt_error e;
        if (sgt_loader_batch(l, handle.get(), k, rows.data(), &e) < 0) throw error(e);
    }

  private:
    struct close {
        void operator()(sgt_cursor *c) const { sgt_cursor_close(c); }
    };
    const sgt_loader *l;
    std::unique_ptr<sgt_cursor, close> handle;
};

} // namespace sgt

static std::uint64_t sum_of(const sgt::loader &loader, std::uint64_t from, std::uint64_t count,
                            std::uint64_t stride)
{
    sgt_loader_info info = loader.info();
    sgt::cursor cursor(loader);
    std::vector<std::uint16_t> rows(std::size_t{info.local_batch} * (info.seq + 1));
    std::uint64_t sum = 0;
    for (std::uint64_t k = from; k < count; k += stride) {
        cursor.batch(k, rows);
        for (std::uint16_t id : rows) sum += id;
    }
    return sum;
}

int main(int argc, char **argv)
try {
    if (argc != 3) {
        std::cerr << "usage: threads OUT/ BATCHES\n";
        return 2;
    }
    sgt_loader_options options{}; // // all zero: the defaults
    options.batch = 16;
    options.seq = 128;
    const sgt::loader loader(argv[1], options);
    const std::uint64_t count = std::stoull(argv[2]);

    constexpr std::uint64_t THREADS = 4;
    std::vector<std::uint64_t> sums(THREADS);
    std::vector<std::exception_ptr> failures(THREADS);
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < THREADS; t++)
        threads.emplace_back([&, t] {
            try {
                sums[t] = sum_of(loader, t, count, THREADS);
            } catch (...) {
                failures[t] = std::current_exception();
            }
        });
    for (auto &t : threads) t.join();
    for (auto &f : failures)
        if (f) std::rethrow_exception(f);

    std::uint64_t sum = 0;
    for (std::uint64_t s : sums) sum += s;
    const std::uint64_t alone = sum_of(loader, 0, count, 1);
    std::cout << count << " batches of " << loader.info().tokens << " tokens: ids sum to " << sum
              << " by " << THREADS << " threads, " << alone << " by one\n";
    return sum == alone ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception &e) {
    std::cerr << "threads: " << e.what() << '\n';
    return EXIT_FAILURE;
}
