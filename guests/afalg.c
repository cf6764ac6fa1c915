/*
 * Uses ciphers of a guest's kernel by AF_ALG, by the names of their drivers.
 *
 *   afalg compare ONE OTHER COUNT          random cases by both; 1 where results differ
 *   afalg rate DRIVER SIZE DEPTH SECONDS   encrypts, DEPTH requests under way; prints
 *                                          'rate DRIVER SIZE DEPTH OPERATIONS SECONDS'
 *   afalg once DRIVER                      one request; prints the error where it fails
 */
#include <errno.h>
#include <linux/if_alg.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef SOL_ALG
#define SOL_ALG 279
#endif

#define LONGEST 65536
#define DEEPEST 64

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static void fail(const char *doing, const char *what)
{
	printf("afalg: %s %s: %s\n", doing, what, strerror(errno));
	exit(2);
}

/* A socket with a key; operations are accepted from it. */
static int with_key(const char *driver, const unsigned char *key, int len)
{
	struct sockaddr_alg name = { .salg_family = AF_ALG, .salg_type = "skcipher" };
	int cipher = socket(AF_ALG, SOCK_SEQPACKET, 0);

	if (cipher < 0)
		fail("socket", "AF_ALG");
	strncpy((char *)name.salg_name, driver, sizeof(name.salg_name) - 1);
	if (bind(cipher, (void *)&name, sizeof(name)) < 0)
		fail("bind", driver);
	if (setsockopt(cipher, SOL_ALG, ALG_SET_KEY, key, len) < 0)
		fail("set a key of", driver);
	return cipher;
}

/* Hands a request in; what is read afterwards is its result. */
static int begin(int operation, int is_encryption, const unsigned char *iv, void *data, size_t len)
{
	char control[CMSG_SPACE(4) + CMSG_SPACE(sizeof(struct af_alg_iv) + 16)] = { 0 };
	struct iovec part = { data, len };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1,
				  .msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	struct af_alg_iv *vector;

	header->cmsg_level = SOL_ALG;
	header->cmsg_type = ALG_SET_OP;
	header->cmsg_len = CMSG_LEN(4);
	*(int *)CMSG_DATA(header) = is_encryption ? ALG_OP_ENCRYPT : ALG_OP_DECRYPT;
	header = CMSG_NXTHDR(&message, header);
	header->cmsg_level = SOL_ALG;
	header->cmsg_type = ALG_SET_IV;
	header->cmsg_len = CMSG_LEN(sizeof(*vector) + 16);
	vector = (void *)CMSG_DATA(header);
	vector->ivlen = 16;
	memcpy(vector->iv, iv, 16);
	return sendmsg(operation, &message, 0) == (ssize_t)len ? 0 : -1;
}

static int finish(int operation, unsigned char *result, size_t len)
{
	ssize_t got;

	for (size_t at = 0; at < len; at += got) {
		got = read(operation, result + at, len - at);
		if (got <= 0)
			return -1;
	}
	return 0;
}

static int compare(const char *one, const char *other, int count)
{
	static unsigned char data[LONGEST + 64], results[2][LONGEST];
	const char *drivers[] = { one, other };
	unsigned char key[32], iv[16];
	int differ = 0;

	srand(1);
	for (int round = 0; round < count; round++) {
		int key_len = 16 + 8 * (round % 3);
		int most = round % 4 == 0 ? LONGEST / 16 : round % 4 == 1 ? 300 : 16;
		size_t len = 16 * (1 + rand() % most), offset = round % 64;

		for (int i = 0; i < 32; i++)
			key[i] = rand();
		for (int i = 0; i < 16; i++)
			iv[i] = rand();
		for (size_t i = 0; i < sizeof(data); i++)
			data[i] = rand() >> 8;
		for (int i = 0; i < 2; i++) {
			int cipher = with_key(drivers[i], key, key_len);
			int operation = accept(cipher, NULL, NULL);

			if (begin(operation, round & 1, iv, data + offset, len) ||
			    finish(operation, results[i], len))
				fail("encrypt with", drivers[i]);
			close(operation);
			close(cipher);
		}
		if (memcmp(results[0], results[1], len)) {
			printf("afalg: case %d of %zu bytes differs\n", round, len);
			differ++;
		}
	}
	printf("compared %d cases, %d differ\n", count, differ);
	return differ != 0;
}

struct user {
	int operation;
	size_t size;
	double end;
	long done;
	unsigned char *data, *result;
};

/* One of those that have a request under way at the same time. */
static void *use(void *place)
{
	struct user *user = place;
	unsigned char iv[16] = { 2 };

	do {
		if (begin(user->operation, 1, iv, user->data, user->size) ||
		    finish(user->operation, user->result, user->size))
			fail("encrypt", "for a user");
		user->done++;
	} while (now() < user->end);
	return NULL;
}

/* By threads, since the kernel has requests of AF_ALG wait, those by aio too. */
static int rate(const char *driver, size_t size, int depth, double seconds)
{
	static unsigned char data[LONGEST], results[DEEPEST][LONGEST];
	unsigned char key[16] = { 1 };
	int cipher = with_key(driver, key, sizeof(key));
	struct user users[DEEPEST];
	pthread_t threads[DEEPEST];
	double start = now();
	long done = 0;

	for (int i = 0; i < depth; i++) {
		users[i] = (struct user){ accept(cipher, NULL, NULL), size, start + seconds, 0, data,
					  results[i] };
		if (pthread_create(&threads[i], NULL, use, &users[i]))
			fail("start a thread for", driver);
	}
	for (int i = 0; i < depth; i++) {
		pthread_join(threads[i], NULL);
		done += users[i].done;
	}
	printf("rate %s %zu %d %ld %.6f\n", driver, size, depth, done, now() - start);
	return 0;
}

static int once(const char *driver)
{
	unsigned char data[64] = { 0 }, key[16] = { 1 }, iv[16] = { 2 };
	int operation = accept(with_key(driver, key, sizeof(key)), NULL, NULL);

	if (begin(operation, 1, iv, data, sizeof(data)) || finish(operation, data, sizeof(data)))
		fail("encrypt with", driver);
	printf("once: %s works\n", driver);
	return 0;
}

int main(int count, char **words)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (count == 5 && !strcmp(words[1], "compare"))
		return compare(words[2], words[3], atoi(words[4]));
	if (count == 3 && !strcmp(words[1], "once"))
		return once(words[2]);
	if (count == 6 && !strcmp(words[1], "rate")) {
		size_t size = atol(words[3]);
		int depth = atoi(words[4]);

		if (size >= 1 && size <= LONGEST && depth >= 1 && depth <= DEEPEST)
			return rate(words[2], size, depth, atof(words[5]));
	}
	fprintf(stderr, "afalg: the first lines of afalg.c tell how it is called\n");
	return 2;
}
