/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One session and one counter of nonces on four threads, and a forked child with its own. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define THREADS 4
#define TURNS 500

static cipherlane_session *session;
static cipherlane_nonces *nonces;
static unsigned char given[THREADS][TURNS][12];

static void *work(void *argument)
{
	unsigned char (*own)[12] = argument;
	unsigned char data[300], before[300], tag[16];
	int turn;

	for (turn = 0; turn < TURNS; turn++) {
		memset(before, turn, sizeof(before));
		memcpy(data, before, sizeof(data));
		OK(cipherlane_nonces_next(nonces, own[turn]));
		OK(cipherlane_seal(session, own[turn], 12, NULL, 0, data, sizeof(data), tag, 16));
		CHECK(memcmp(data, before, sizeof(data)));
		OK(cipherlane_open(session, own[turn], 12, NULL, 0, data, sizeof(data), tag, 16));
		CHECK(!memcmp(data, before, sizeof(data)));
		/* What failed in one thread is that thread's. */
		CHECK(cipherlane_seal(session, NULL, 0, NULL, 0, NULL, 0, NULL, 0) != 0);
	}
	CHECK(strlen(cipherlane_error_text()) > 10);
	return NULL;
}

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, 12);
}

int main(void)
{
	unsigned char key[32], fixed[4] = { 0 }, nonce[12];
	cipherlane_framework *framework;
	pthread_t threads[THREADS];
	int i, status;
	pid_t child;

	fill(key, sizeof(key));
	OK(cipherlane_framework_new(&framework));
	OK(cipherlane_session_open(framework, "gcm(aes)", key, sizeof(key), NULL, &session));
	/* The session keeps what it needs. */
	cipherlane_framework_free(framework);
	OK(cipherlane_nonces_new(fixed, 0, &nonces));
	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, work, given[i]));
	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(*cipherlane_error_text() == 0);
	qsort(given, (size_t)THREADS * TURNS, 12, by_bytes);
	for (i = 1; i < THREADS * TURNS; i++)
		CHECK(memcmp(given[0][i - 1], given[0][i], 12));

	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		REFUSED(cipherlane_nonces_next(nonces, nonce), CIPHERLANE_NONCES, "parent");
		OK(cipherlane_framework_new(&framework));
		OK(cipherlane_session_open(framework, "gcm(aes)", key, 16, NULL, &session));
		REFUSED(cipherlane_seal(session, fixed, 4, NULL, 0, NULL, 0, key, 16),
			CIPHERLANE_INVALID, "an IV of 4 bytes");
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	cipherlane_nonces_free(nonces);
	cipherlane_session_free(session);
	return 0;
}
