/* Programs that end by _exit, as OpenSSH's server does for each session, run no exit handlers,
   so that the provider could not tell its counters. This library, preloaded, runs OpenSSL's own
   exit handler first. Nothing else of the program changes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

void _exit(int status) {
    void (*cleanup)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "OPENSSL_cleanup");
    if (cleanup)
        cleanup();
    for (;;)
        syscall(SYS_exit_group, status);
}
