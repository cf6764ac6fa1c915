// How long a request takes through AF_ALG, by the kernel's own AES and by the engine, with the
// threshold off (everything to the engine) and on: slices of each in turn, so that what else the
// machine does strikes all alike.
// usage: afalg MODE MILLISECONDS ROUNDS, where MODE is cbc, ctr or another of AES
// prints for each size and way the median microseconds, the best round's, and the median of the
// rounds' ratios to software
#define _GNU_SOURCE
#include <err.h>
#include <linux/if_alg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define THRESHOLD "/sys/module/cipherlane_engine/parameters/threshold"

enum { SOFTWARE, ALL, AUTO, WAYS };

static const char *const names[WAYS] = {"software", "engine, threshold off", "engine, threshold on"};
static const int sizes[] = {16, 256, 1024, 4096, 16384, 65536};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static int open_driver(const char *name)
{
    static const unsigned char key[16] = "0123456789abcdef";
    struct sockaddr_alg address = {.salg_family = AF_ALG, .salg_type = "skcipher"};
    int listener = socket(AF_ALG, SOCK_SEQPACKET, 0);
    int file;

    snprintf((char *)address.salg_name, sizeof(address.salg_name), "%s", name);
    if (listener < 0 || bind(listener, (void *)&address, sizeof(address)))
        err(1, "AF_ALG: %s", name);
    if (setsockopt(listener, SOL_ALG, ALG_SET_KEY, key, sizeof(key)))
        err(1, "AF_ALG: key of %s", name);
    file = accept(listener, NULL, NULL);
    if (file < 0)
        err(1, "AF_ALG: %s", name);
    return file;
}

static void encrypt(int file, unsigned char *in, unsigned char *out, size_t len)
{
    char control[CMSG_SPACE(4) + CMSG_SPACE(sizeof(struct af_alg_iv) + 16)] = {0};
    struct iovec part = {in, len};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    struct af_alg_iv *iv;
    size_t done = 0;

    c->cmsg_level = SOL_ALG;
    c->cmsg_type = ALG_SET_OP;
    c->cmsg_len = CMSG_LEN(4);
    *(unsigned int *)CMSG_DATA(c) = ALG_OP_ENCRYPT;
    c = CMSG_NXTHDR(&message, c);
    c->cmsg_level = SOL_ALG;
    c->cmsg_type = ALG_SET_IV;
    c->cmsg_len = CMSG_LEN(sizeof(*iv) + 16);
    iv = (void *)CMSG_DATA(c);
    iv->ivlen = 16;
    if (sendmsg(file, &message, 0) != (ssize_t)len)
        err(1, "sendmsg");
    while (done < len) {
        ssize_t got = read(file, out + done, len - done);

        if (got <= 0)
            err(1, "read");
        done += got;
    }
}

static void set_threshold(int bytes)
{
    FILE *file = fopen(THRESHOLD, "w");

    if (!file || fprintf(file, "%d", bytes) < 0 || fclose(file))
        err(1, THRESHOLD);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, count, sizeof(*values), by_size);
    return values[count / 2];
}

int main(int argc, char **argv)
{
    static unsigned char reference[65536];
    double slice = argc > 3 ? atof(argv[2]) / 1e3 : 0;
    int rounds = argc > 3 ? atoi(argv[3]) : 0;
    unsigned char *in = aligned_alloc(4096, 65536), *out = aligned_alloc(4096, 65536);
    char name[64];
    int files[WAYS];

    if (slice <= 0 || rounds < 1 || rounds > 101)
        errx(2, "usage: afalg MODE MILLISECONDS ROUNDS");
    snprintf(name, sizeof(name), "%s(aes-generic)", argv[1]);
    files[SOFTWARE] = open_driver(name);
    snprintf(name, sizeof(name), "%s-aes-cipherlane", argv[1]);
    files[ALL] = open_driver(name);
    files[AUTO] = open_driver(name);
    memset(in, 7, 65536);
    for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        double times[WAYS][101], ratios[WAYS][101];

        for (int round = 0; round < rounds; round++)
            for (int turn = 0; turn < WAYS; turn++) {
                // Each is the first in a third of the rounds.
                int way = (turn + round) % WAYS;
                double since, passed;
                long count = 0;

                set_threshold(way == ALL ? 0 : -1);
                encrypt(files[way], in, out, sizes[i]);
                if (round == 0 && turn == 0)
                    memcpy(reference, out, sizes[i]);
                else if (memcmp(reference, out, sizes[i]))
                    errx(1, "%d bytes: the results differ", sizes[i]);
                since = now();
                do {
                    encrypt(files[way], in, out, sizes[i]);
                    count++;
                    passed = now() - since;
                } while (passed < slice);
                times[way][round] = passed / count * 1e6;
            }
        for (int way = 0; way < WAYS; way++)
            for (int round = 0; round < rounds; round++)
                ratios[way][round] = times[SOFTWARE][round] / times[way][round];
        for (int way = 0; way < WAYS; way++) {
            double us = median(times[way], rounds);

            printf("%6d B  %-22s %9.1f us %9.0f op/s  best %9.1f us  %6.2f of software\n", sizes[i],
                   names[way], us, 1e6 / us, times[way][0], median(ratios[way], rounds));
        }
        fflush(stdout);
    }
    return 0;
}
