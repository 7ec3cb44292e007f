/* Lets one call of the C library fail, in one process, when a test says so: preloaded into an
 * appliance by tests/faults/system_calls.py, which writes the order into shared memory.
 *
 * An order is a process, a call, the number of it that fails, and with what. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPEN, READ, PREAD, PREADV, WRITE, PWRITE, PWRITEV, SENDFILE, FSTAT, STAT, STATVFS, FSYNC,
       FDATASYNC, RENAME, UNLINK, MKDIR, RMDIR, FTRUNCATE, FALLOCATE, OPENDIR, MMAP, ACCEPT,
       EPOLL_WAIT, EPOLL_CTL, SOCKET, CONNECT, RECV, SEND, SENDMSG, EVENTFD_WRITE, CALLS };

struct order {
    volatile int pid, call, error, after, hit;  /* error -1: the call does half of what it is asked */
    volatile int seen[CALLS];
};

static struct order *order;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("PENSTOCK_TEST_CALLS");
    int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open64");
    if (!path) return;
    int fd = real(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    void *(*map)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
    void *at = map(0, sizeof *order, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at != MAP_FAILED) order = at;
}

/* 0: as usual; else the error, or -1 for half of it. */
static int due(int call) {
    if (!order || order->pid != getpid()) return 0;
    __sync_add_and_fetch(&order->seen[call], 1);
    if (order->call != call) return 0;
    if (__sync_sub_and_fetch(&order->after, 1) != 0) return 0;
    order->hit = 1;
    return order->error;
}

#define REAL(name, type) \
    static __typeof__(type) real; \
    if (!real) real = (__typeof__(type))dlsym(RTLD_NEXT, name)
#define FAILS(call, result) \
    int fault = due(call); \
    if (fault > 0) { errno = fault; return result; }
#define HALF(n) (fault < 0 && (n) > 1 ? (n) / 2 : (n))

#define WRAP(call, result, ret, name, params, args) \
    ret name params { \
        REAL(#name, ret (*) params); \
        FAILS(call, result); \
        return real args; \
    }

#define OPENER(name, before, args) \
    int name(before const char *path, int flags, ...) { \
        REAL(#name, int (*)(before const char *, int, ...)); \
        va_list list; va_start(list, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0; \
        va_end(list); \
        FAILS(OPEN, -1); \
        return real args; \
    }
OPENER(open, , (path, flags, mode))
OPENER(open64, , (path, flags, mode))
#define AT int at,
OPENER(openat, AT, (at, path, flags, mode))
OPENER(openat64, AT, (at, path, flags, mode))

WRAP(READ, -1, ssize_t, read, (int fd, void *to, size_t n), (fd, to, HALF(n)))
WRAP(PREAD, -1, ssize_t, pread64, (int fd, void *to, size_t n, off64_t at), (fd, to, HALF(n), at))
WRAP(WRITE, -1, ssize_t, write, (int fd, const void *from, size_t n), (fd, from, HALF(n)))
WRAP(PWRITE, -1, ssize_t, pwrite64, (int fd, const void *from, size_t n, off64_t at),
     (fd, from, HALF(n), at))
WRAP(SENDFILE, -1, ssize_t, sendfile64, (int to, int from, off64_t *at, size_t n),
     (to, from, at, HALF(n)))
WRAP(SENDFILE, -1, ssize_t, sendfile, (int to, int from, off_t *at, size_t n),
     (to, from, at, HALF(n)))
WRAP(RECV, -1, ssize_t, recv, (int fd, void *to, size_t n, int flags), (fd, to, HALF(n), flags))
WRAP(SEND, -1, ssize_t, send, (int fd, const void *from, size_t n, int flags),
     (fd, from, HALF(n), flags))

/* Half of the first buffer alone. */
#define VECTOR(call, name, params, args_of) \
    ssize_t name params { \
        REAL(#name, ssize_t (*) params); \
        FAILS(call, -1); \
        if (fault < 0 && count > 0) { \
            struct iovec one = {list[0].iov_base, HALF(list[0].iov_len)}; \
            return real args_of(&one, 1); \
        } \
        return real args_of(list, count); \
    }
#define V3(l, c) (fd, l, c, at)
#define V4(l, c) (fd, l, c, at, flags)
VECTOR(PREADV, preadv64, (int fd, const struct iovec *list, int count, off64_t at), V3)
VECTOR(PREADV, preadv64v2, (int fd, const struct iovec *list, int count, off64_t at, int flags), V4)
VECTOR(PWRITEV, pwritev64, (int fd, const struct iovec *list, int count, off64_t at), V3)
VECTOR(PWRITEV, pwritev64v2, (int fd, const struct iovec *list, int count, off64_t at, int flags),
       V4)

ssize_t sendmsg(int fd, const struct msghdr *what, int flags) {
    REAL("sendmsg", ssize_t (*)(int, const struct msghdr *, int));
    FAILS(SENDMSG, -1);
    if (fault < 0 && what->msg_iovlen > 0) {
        struct iovec one = {what->msg_iov[0].iov_base, HALF(what->msg_iov[0].iov_len)};
        struct msghdr less = *what;
        less.msg_iov = &one;
        less.msg_iovlen = 1;
        return real(fd, &less, flags);
    }
    return real(fd, what, flags);
}

WRAP(FSTAT, -1, int, fstat64, (int fd, struct stat64 *to), (fd, to))
WRAP(FSTAT, -1, int, fstat, (int fd, struct stat *to), (fd, to))
WRAP(STAT, -1, int, stat64, (const char *path, struct stat64 *to), (path, to))
WRAP(STAT, -1, int, stat, (const char *path, struct stat *to), (path, to))
WRAP(STAT, -1, int, fstatat64, (int at, const char *path, struct stat64 *to, int flags),
     (at, path, to, flags))
WRAP(STATVFS, -1, int, statvfs64, (const char *path, struct statvfs64 *to), (path, to))
WRAP(STATVFS, -1, int, statvfs, (const char *path, struct statvfs *to), (path, to))
WRAP(FSYNC, -1, int, fsync, (int fd), (fd))
WRAP(FDATASYNC, -1, int, fdatasync, (int fd), (fd))
WRAP(RENAME, -1, int, rename, (const char *from, const char *to), (from, to))
WRAP(UNLINK, -1, int, unlink, (const char *path), (path))
WRAP(MKDIR, -1, int, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(RMDIR, -1, int, rmdir, (const char *path), (path))
WRAP(FTRUNCATE, -1, int, ftruncate64, (int fd, off64_t size), (fd, size))
WRAP(MMAP, MAP_FAILED, void *, mmap64, (void *at, size_t n, int prot, int flags, int fd,
     off64_t from), (at, n, prot, flags, fd, from))
WRAP(MMAP, MAP_FAILED, void *, mmap, (void *at, size_t n, int prot, int flags, int fd, off_t from),
     (at, n, prot, flags, fd, from))
WRAP(ACCEPT, -1, int, accept4, (int fd, struct sockaddr *who, socklen_t *size, int flags),
     (fd, who, size, flags))
WRAP(EPOLL_WAIT, -1, int, epoll_wait, (int fd, struct epoll_event *to, int most, int ms),
     (fd, to, most, ms))
int epoll_ctl(int fd, int what, int of, struct epoll_event *event) { /* the others take nothing */
    REAL("epoll_ctl", int (*)(int, int, int, struct epoll_event *));
    if (what == EPOLL_CTL_ADD) { FAILS(EPOLL_CTL, -1); }
    return real(fd, what, of, event);
}
WRAP(SOCKET, -1, int, socket, (int family, int kind, int protocol), (family, kind, protocol))
WRAP(CONNECT, -1, int, connect, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size))
WRAP(EVENTFD_WRITE, -1, int, eventfd_write, (int fd, unsigned long value), (fd, value))
typedef struct __dirstream DIR;
WRAP(OPENDIR, NULL, DIR *, opendir, (const char *path), (path))

int posix_fallocate64(int fd, off64_t at, off64_t size) { /* returns its error */
    REAL("posix_fallocate64", int (*)(int, off64_t, off64_t));
    int fault = due(FALLOCATE);
    return fault > 0 ? fault : real(fd, at, size);
}
