/* A disk that needs a while for each sync: the ms (64 bits, native) that the file $SLOW_DISK begins
   with, at any moment, for every process that has loaded this by LD_PRELOAD. What is written with
   O_DSYNC or past the page cache takes as long. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static const volatile long *delay;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SLOW_DISK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *seen = file < 0 ? MAP_FAILED : mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    if (seen != MAP_FAILED) delay = seen;
    if (file >= 0) close(file);
}

static void wait(void) {
    long ms = delay ? *delay : 0;
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (ms && nanosleep(&left, &left)) continue;
}

static int synced(int file) {
    int flags = fcntl(file, F_GETFL);
    return flags >= 0 && flags & (O_DSYNC | O_DIRECT);
}

int fdatasync(int file) {
    wait();
    return syscall(SYS_fdatasync, file);
}

int fsync(int file) {
    wait();
    return syscall(SYS_fsync, file);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
    if (synced(file)) wait();
    return syscall(SYS_pwrite64, file, data, size, at);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
    return pwrite64(file, data, size, at);
}
