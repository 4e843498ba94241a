/* tcp.c: connects every rank to rank 0 with two connections. Over the first (DATA), the main thread
 * sends broadcasts, sums and barriers. A thread watches the second (LIFE), which only transfers
 * notes: that a rank has given up, or that all ranks must end. */
#include "tools/ranks/tcp.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "tools/cli/options.h"
#include "tools/cli/talk.h"

#define MAGIC 0x52746773u /* "sgtR" */
#define JOIN_SECONDS 120
/* seconds that rank 0 waits before it prints another rank's failure, because it may fail for the
 * same reason and print that itself */
#define GRACE_SECONDS 1
/* seconds that it waits after a rank's death, because a launcher may have killed all ranks: fewer,
 * because mpirun kills the others a second after the first */
#define DEATH_SECONDS .25
#define END_SECONDS 10 /* seconds that a rank which has failed has for freeing its resources */

typedef struct hello {
    uint32_t magic, rank, size, life; /* life: 1: a LIFE connection; 0: a DATA connection */
    uint64_t token;
} hello;

/* A message over a LIFE connection. */
typedef struct note {
    int32_t code; /* from rank 0: end with this exit code; to rank 0: the sender's error */
    char text[1024];
} note;

typedef struct net {
    sgt_ranks r; /* first, so that a sgt_ranks * can be cast to a net * */
    const char *program;
    /* (size) on rank 0, one pair of connections per other rank; other ranks use only the first */
    int *data;
    struct pollfd *life;
    int listener;
    pthread_t watcher;
    int ending;      /* 1: the program is leaving; atomic, like r.given_up and told */
    int told;        /* rank 0 only: 1: one of its threads has begun to print why all ranks end */
    double deadline; /* time at which a rank that has given up must end */
    sgt_error why;   /* error with which this rank gave up; written before given_up is set */
} net;

static void set(int *flag) { __atomic_store_n(flag, 1, __ATOMIC_RELEASE); }
static int is_set(const int *flag) { return __atomic_load_n(flag, __ATOMIC_ACQUIRE); }

/* ---- bytes ---- */

static int send_all(int fd, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return -1;
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

static int receive_all(int fd, void *bytes, size_t n)
{
    char *p = bytes;
    while (n) {
        ssize_t k = recv(fd, p, n, 0);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return -1;
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

/* Set options of a socket so that the system notices within 25 s if a machine has died. */
static void keep_alive(int fd)
{
    const struct {
        int level, name, value;
    } options[] = {{SOL_SOCKET, SO_KEEPALIVE, 1},   {IPPROTO_TCP, TCP_KEEPIDLE, 10},
                   {IPPROTO_TCP, TCP_KEEPINTVL, 5}, {IPPROTO_TCP, TCP_KEEPCNT, 3},
                   {IPPROTO_TCP, TCP_NODELAY, 1},   {IPPROTO_TCP, TCP_USER_TIMEOUT, 25000}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                   sizeof options[i].value);
}

/* ---- collective calls ---- */

static int gone(const net *t, uint32_t rank, sgt_error *err)
{
    return sgt_fail(err, SGT_EIO,
                    "rank %u of %u has died, and with it the run (what is saved stays)", rank,
                    t->r.size);
}

/* Send n to a rank, then n bytes. If ranks are out of step, the receiver notices by the number. */
static int to(net *t, uint32_t rank, const void *bytes, size_t n, sgt_error *err)
{
    uint64_t size = n;
    int fd = t->data[rank];
    return send_all(fd, &size, sizeof size) < 0 || send_all(fd, bytes, n) < 0 ? gone(t, rank, err)
                                                                              : SGT_OK;
}

static int from(net *t, uint32_t rank, void *bytes, size_t n, sgt_error *err)
{
    uint64_t size;
    int fd = t->data[rank];
    if (receive_all(fd, &size, sizeof size) < 0) return gone(t, rank, err);
    if (size != n)
        return sgt_fail(
            err, SGT_EIO,
            "ranks are out of step: rank %u has sent %llu bytes where %zu were its turn", rank,
            (unsigned long long)size, n);
    return receive_all(fd, bytes, n) < 0 ? gone(t, rank, err) : SGT_OK;
}

static int to_others(net *t, const void *bytes, size_t n, uint32_t but, sgt_error *err)
{
    int rc = SGT_OK;
    for (uint32_t i = 1; i < t->r.size && rc == SGT_OK; i++)
        if (i != but) rc = to(t, i, bytes, n, err);
    return rc;
}

static int broadcast(sgt_ranks *r, void *bytes, size_t n, uint32_t root, sgt_error *err)
{
    net *t = (net *)r;
    if (r->rank) return r->rank == root ? to(t, 0, bytes, n, err) : from(t, 0, bytes, n, err);
    int rc = root ? from(t, root, bytes, n, err) : SGT_OK;
    return rc == SGT_OK ? to_others(t, bytes, n, root, err) : rc;
}

static int sum(sgt_ranks *r, double *x, size_t n, sgt_error *err)
{
    enum { PIECE = 64 };
    net *t = (net *)r;
    int rc = SGT_OK;
    double part[PIECE];
    for (; n > PIECE && rc == SGT_OK; x += PIECE, n -= PIECE) rc = sum(r, x, PIECE, err);
    if (rc < 0) return rc;
    if (r->rank) {
        rc = to(t, 0, x, n * sizeof *x, err);
        return rc == SGT_OK ? from(t, 0, x, n * sizeof *x, err) : rc;
    }
    for (uint32_t i = 1; i < r->size && rc == SGT_OK; i++) {
        if ((rc = from(t, i, part, n * sizeof *x, err)) < 0) return rc;
        for (size_t j = 0; j < n; j++) x[j] += part[j];
    }
    return rc == SGT_OK ? to_others(t, x, n * sizeof *x, 0, err) : rc;
}

static int barrier(sgt_ranks *r, sgt_error *err) { return sum(r, NULL, 0, err); }

/* ---- watching ---- */

static void print_line(const net *t, const char *text)
{
    sgt_put_line(stderr, "%s%s: %s", sgt_can_redraw() ? "\r\033[K" : "", t->program, text);
}

static int exit_code(int error)
{
    return error == SGT_ESTOPPED ? SGT_EXIT_INTERRUPTED
           : error == SGT_EUSAGE ? SGT_EXIT_USAGE
                                 : SGT_EXIT_FAILED;
}

static void end_others(const net *t, int code)
{
    note n = {.code = code};
    for (uint32_t i = 1; t->r.rank == 0 && i < t->r.size; i++)
        send_all(t->life[i].fd, &n, sizeof n);
}

static _Noreturn void end_all(const net *t, const sgt_error *why)
{
    print_line(t, why->text);
    end_others(t, exit_code(why->code));
    _exit(exit_code(why->code));
}

/* Return whether this thread is the first that is about to print why all ranks end. Another thread
 * must not print then. */
static int first_to_tell(net *t) { return !__atomic_exchange_n(&t->told, 1, __ATOMIC_ACQ_REL); }

/* Tell that this rank gives up. If rank 0's watcher is already ending all ranks because of another
 * rank, wait for that end instead: this failure is most likely that rank's closed connection. */
static void give_up(sgt_ranks *r, const sgt_error *why)
{
    net *t = (net *)r;
    note n = {.code = why->code};
    if (is_set(&r->given_up)) return;
    while (!r->rank && !first_to_tell(t)) pause();
    t->why = *why;
    t->deadline = sgt_now() + END_SECONDS;
    set(&r->given_up);
    snprintf(n.text, sizeof n.text, "%s", why->text);
    if (r->rank) send_all(t->life[0].fd, &n, sizeof n);
}

/* Read from a rank's LIFE connection what has happened to it, and set *bad. For an interrupt, the
 * message names no rank, because the user meant all of them. Return for how many seconds rank 0
 * should wait before it prints this. */
static double read_note(const net *t, uint32_t rank, sgt_error *bad)
{
    note n;
    if (receive_all(t->life[rank].fd, &n, sizeof n) < 0) {
        gone(t, rank, bad);
        return DEATH_SECONDS;
    }
    n.text[sizeof n.text - 1] = 0;
    if (n.code == SGT_ESTOPPED) sgt_fail(bad, n.code, "%s", n.text);
    else sgt_fail(bad, n.code, "rank %u: %s", rank, n.text);
    return GRACE_SECONDS;
}

/* Watch the other ranks, in rank 0's thread. Print the first failure of one of them and end all
 * ranks, unless rank 0 itself fails first. */
static void watch_peers(net *t)
{
    sgt_error bad = {0};
    double until = 0;
    while (!is_set(&t->ending)) {
        if (is_set(&t->r.given_up)) {
            if (sgt_now() > t->deadline) end_all(t, &t->why);
        } else if (bad.code && sgt_now() > until && first_to_tell(t)) {
            end_all(t, &bad);
        }
        /* after the first failure, only wait */
        int news = poll(t->life, bad.code ? 0 : t->r.size, 50);
        for (uint32_t i = 1; news > 0 && !is_set(&t->ending) && i < t->r.size; i++)
            if (t->life[i].revents && !bad.code) until = sgt_now() + read_note(t, i, &bad);
    }
}

/* Watch rank 0, in the thread of another rank: end when rank 0 tells so, or when it has died. */
static void watch_first(net *t)
{
    note n;
    while (!is_set(&t->ending)) {
        if (poll(t->life, 1, 50) <= 0) continue;
        int heard = receive_all(t->life[0].fd, &n, sizeof n) == 0;
        if (is_set(&t->ending)) return;
        if (heard) _exit(n.code);
        sgt_error bad;
        gone(t, 0, &bad);
        if (t->r.rank == 1) print_line(t, bad.text);
        _exit(SGT_EXIT_FAILED);
    }
}

static void *watch(void *ctx)
{
    net *t = ctx;
    if (t->r.rank) watch_first(t);
    else watch_peers(t);
    return NULL;
}

/* ---- joining ---- */

/* Return a socket that listens at host and port, or that is connected to them. On failure, return
 * -1 and set *why to the resolver's message, or to NULL if the reason is in errno. */
static int open_socket(const char *host, int port, int listens, const char **why)
{
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = listens ? AI_PASSIVE : 0};
    struct addrinfo *found;
    char service[16];
    int fd = -1, on = 1, failed = 0;
    snprintf(service, sizeof service, "%d", port);
    int code = getaddrinfo(host, service, &hints, &found);
    *why = code ? gai_strerror(code) : NULL;
    for (struct addrinfo *a = code ? NULL : found; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (fd >= 0 && listens) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (fd >= 0 && listens && bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 128) == 0)
            break;
        if (fd >= 0 && !listens && connect(fd, a->ai_addr, a->ai_addrlen) == 0) break;
        failed = errno;
        if (fd >= 0) close(fd);
        fd = -1;
    }
    if (!code) freeaddrinfo(found);
    errno = failed;
    return fd;
}

int sgt_tcp_listen(sgt_rendezvous *p, sgt_error *err)
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof a;
    const char *why, *where = p->host ? p->host : "any address";
    if ((p->listener = open_socket(p->host, p->port, 1, &why)) < 0)
        return why ? sgt_fail(err, SGT_EIO, "%s: %s", where, why)
                   : sgt_fail_errno(err, "rank 0 listens at %s, port %d", where, p->port);
    if (getsockname(p->listener, (struct sockaddr *)&a, &n) < 0) {
        close(p->listener);
        return sgt_fail_errno(err, "rank 0's socket");
    }
    p->port = ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                            : ((struct sockaddr_in *)&a)->sin_port);
    return SGT_OK;
}

/* Return SGT_EIO, without a message, if the time `until` has passed; SGT_ESTOPPED after an
 * interrupt; otherwise SGT_OK. */
static int too_late(double until, const sgt_stop *stop, sgt_error *err)
{
    if (sgt_stopped(stop))
        return sgt_fail(err, SGT_ESTOPPED, "interrupted before all ranks had come");
    return sgt_now() > until ? SGT_EIO : SGT_OK;
}

/* Return where the socket of a connection with a rank is kept. */
static int *connection(net *t, uint32_t rank, uint32_t life)
{
    return life ? &t->life[rank].fd : &t->data[rank];
}

/* Keep a new connection if it comes from a rank that knows the token of this run; otherwise close
 * it without an answer. */
static int greet(net *t, int fd, uint64_t token, sgt_error *err)
{
    hello h;
    struct timeval patience = {.tv_sec = 5}, none = {0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    int good =
        receive_all(fd, &h, sizeof h) == 0 && h.magic == MAGIC && h.token == token && h.life < 2;
    if (!good) {
        close(fd);
        return SGT_OK;
    }
    if (h.size != t->r.size || h.rank == 0 || h.rank >= t->r.size ||
        *connection(t, h.rank, h.life) >= 0) {
        close(fd);
        return sgt_fail(
            err, SGT_EUSAGE,
            "a rank %u of %u came where %u ranks are, each once (another run's address?)", h.rank,
            h.size, t->r.size);
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
    keep_alive(fd);
    *connection(t, h.rank, h.life) = fd;
    return SGT_OK;
}

/* Return the number of ranks that have not joined; set *first to the lowest of them. */
static uint32_t missing(const net *t, uint32_t *first)
{
    uint32_t n = 0;
    for (uint32_t i = t->r.size; i-- > 1;)
        if (t->data[i] < 0 || t->life[i].fd < 0) n++, *first = i;
    return n;
}

static int accept_all(net *t, const sgt_rendezvous *p, const sgt_stop *stop, sgt_error *err)
{
    double until = sgt_now() + JOIN_SECONDS;
    uint32_t n, first;
    int rc = SGT_OK;
    while (rc == SGT_OK && (n = missing(t, &first)) > 0) {
        struct pollfd line = {.fd = t->listener, .events = POLLIN};
        if ((rc = too_late(until, stop, err)) == SGT_EIO)
            sgt_fail(err, SGT_EIO, "%u of %u ranks have not come within %d s, rank %u among them",
                     n, t->r.size, JOIN_SECONDS, first);
        if (rc < 0 || poll(&line, 1, 50) <= 0) continue;
        int fd = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) rc = greet(t, fd, p->token, err);
    }
    return rc;
}

/* Connect to rank 0. Retry until it listens, for at most JOIN_SECONDS. */
static int reach(net *t, const sgt_rendezvous *p, uint32_t life, const sgt_stop *stop,
                 sgt_error *err)
{
    double until = sgt_now() + JOIN_SECONDS;
    hello h = {.magic = MAGIC, .rank = p->rank, .size = p->size, .life = life, .token = p->token};
    const char *unknown;
    int rc, fd;
    while ((fd = open_socket(p->host, p->port, 0, &unknown)) < 0) {
        int why = unknown ? EHOSTUNREACH : errno;
        if ((rc = too_late(until, stop, err)) == SGT_EIO) {
            errno = why;
            return sgt_fail_errno(err, "rank 0 at %s, port %d, tried for %d s", p->host, p->port,
                                  JOIN_SECONDS);
        }
        if (rc < 0) return rc;
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    *connection(t, 0, life) = fd;
    keep_alive(fd);
    return send_all(fd, &h, sizeof h) < 0
               ? sgt_fail_errno(err, "rank 0 at %s, port %d", p->host, p->port)
               : SGT_OK;
}

static void release(net *t)
{
    for (uint32_t i = 0; t->data && t->life && i < t->r.size; i++) {
        if (t->data[i] >= 0) close(t->data[i]);
        if (t->life[i].fd >= 0) close(t->life[i].fd);
    }
    if (t->listener >= 0) close(t->listener);
    free(t->data);
    free(t->life);
    free(t);
}

int sgt_tcp_join(sgt_ranks **out, sgt_rendezvous *p, const char *program, const sgt_stop *stop,
                 sgt_error *err)
{
    net *t = calloc(1, sizeof *t);
    if (!t) return sgt_fail_memory(err, "ranks");
    t->r = (sgt_ranks){.rank = p->rank,
                       .size = p->size,
                       .local = p->local,
                       .broadcast = broadcast,
                       .sum = sum,
                       .barrier = barrier,
                       .give_up = give_up};
    t->program = program;
    t->listener = p->listener;
    t->data = malloc(p->size * sizeof *t->data);
    t->life = malloc(p->size * sizeof *t->life);
    int rc = t->data && t->life ? SGT_OK : sgt_fail_memory(err, "ranks");
    for (uint32_t i = 0; rc == SGT_OK && i < p->size; i++) {
        t->data[i] = -1;
        t->life[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    }
    if (rc == SGT_OK && !p->rank) rc = accept_all(t, p, stop, err);
    for (uint32_t life = 0; rc == SGT_OK && p->rank && life < 2; life++)
        rc = reach(t, p, life, stop, err);
    if (rc == SGT_OK) rc = barrier(&t->r, err);
    if (rc == SGT_OK && pthread_create(&t->watcher, NULL, watch, t) != 0)
        rc = sgt_fail(err, SGT_ENOMEM, "ranks: cannot start a thread");
    if (rc < 0) {
        release(t);
        return rc;
    }
    *out = &t->r;
    return SGT_OK;
}

/* Wait, after this rank has failed, until rank 0 has printed the failure and ended this rank. */
static void wait_for_end(const net *t)
{
    double until = sgt_now() + END_SECONDS + 2 * GRACE_SECONDS;
    while (sgt_now() < until && !is_set(&t->ending))
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

void sgt_tcp_leave(sgt_ranks *r, int code)
{
    net *t = (net *)r;
    if (code && r->rank) wait_for_end(t);
    /* until all ranks have come here, a closed connection is a death, of which the watcher tells */
    if (!code && barrier(r, NULL) < 0) wait_for_end(t);
    set(&t->ending);
    if (code) end_others(t, code);
    /* a barrier, because no connection may close before every rank knows that this is the end */
    else barrier(r, NULL);
    pthread_join(t->watcher, NULL);
    release(t);
}
