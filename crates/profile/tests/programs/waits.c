/* Waits that are ended by a function of a known name: 'pipe' of another process, 'mutex' of another
 * thread, 'chain' of another thread that waits for a process. Built with frame pointers. The C library's functions have none, so that the function that
 * calls them is not seen, and each has one around it that is. */

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 300, LONG_US = 1000, SHORT_US = 200 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int over;

__attribute__((noinline)) static int put(int wire) {
    char byte = 1;
    return write(wire, &byte, 1) == 1;
}

__attribute__((noinline)) static int hands_over(int wire) {
    int done = put(wire);
    return done + 1;
}

__attribute__((noinline)) static int take(int wire) {
    char byte;
    return read(wire, &byte, 1) == 1;
}

__attribute__((noinline)) static int takes_over(int wire) {
    int done = take(wire);
    return done + 1;
}

static int pipe_between_processes(void) {
    int wires[2];
    if (pipe(wires) != 0)
        return 1;
    if (fork() == 0) {
        close(wires[1]);
        while (takes_over(wires[0]) == 2)
            ;
        _exit(0);
    }
    close(wires[0]);
    for (int round = 0; round < ROUNDS; round++) {
        hands_over(wires[1]);
        usleep(LONG_US);
    }
    close(wires[1]);
    return wait(NULL) < 0;
}

__attribute__((noinline)) static int unlock(void) {
    return pthread_mutex_unlock(&mutex);
}

__attribute__((noinline)) static int lets_go(void) {
    int failed = unlock();
    return failed + 1;
}

__attribute__((noinline)) static int lock(void) {
    return pthread_mutex_lock(&mutex);
}

__attribute__((noinline)) static int wants_it(void) {
    int failed = lock();
    return failed + 1;
}

static void *holder(void *unused) {
    while (!over) {
        lock();
        usleep(LONG_US);
        lets_go();
        usleep(SHORT_US);
    }
    return unused;
}

static int mutex_between_threads(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, holder, NULL) != 0)
        return 1;
    for (int round = 0; round < ROUNDS; round++) {
        wants_it();
        unlock();
        usleep(SHORT_US / 2);
    }
    over = 1;
    return pthread_join(thread, NULL);
}

/* The holder waits for another process meanwhile. */
static void *waiting_holder(void *wire) {
    int more = 1;
    while (more) {
        lock();
        more = takes_over(*(int *)wire) == 2;
        lets_go();
        usleep(SHORT_US);
    }
    over = 1;
    return NULL;
}

static int chain(void) {
    int wires[2];
    pthread_t thread;
    if (pipe(wires) != 0)
        return 1;
    if (fork() == 0) {
        close(wires[0]);
        for (int round = 0; round < ROUNDS; round++) {
            usleep(LONG_US);
            hands_over(wires[1]);
        }
        _exit(0);
    }
    close(wires[1]);
    if (pthread_create(&thread, NULL, waiting_holder, &wires[0]) != 0)
        return 1;
    while (!over) {
        wants_it();
        unlock();
        usleep(SHORT_US / 2);
    }
    return pthread_join(thread, NULL);
}

int main(int count, char **words) {
    if (count == 2 && strcmp(words[1], "pipe") == 0)
        return pipe_between_processes();
    if (count == 2 && strcmp(words[1], "mutex") == 0)
        return mutex_between_threads();
    if (count == 2 && strcmp(words[1], "chain") == 0)
        return chain();
    return 2;
}
