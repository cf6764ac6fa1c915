/*
 * Uses ciphers of a guest's kernel by AF_ALG, by the names of their drivers.
 *
 *   afalg compare ONE OTHER COUNT          random cases by both; 1 where results differ
 *   afalg aead ONE OTHER DEPTH COUNT       the same for an AEAD, by ONE with DEPTH requests under
 *                                          way at once (aio), each on a socket of its own
 *   afalg rate DRIVER SIZE DEPTH SECONDS   encrypts, DEPTH requests under way; prints
 *                                          'rate DRIVER SIZE DEPTH OPERATIONS SECONDS'. With
 *                                          ecb-cipher_null it shows what AF_ALG itself costs
 *   afalg once DRIVER                      one request; prints the error where it fails
 *   afalg ways SOFTWARE DRIVER FILE MILLISECONDS ROUNDS
 *                                          times by SOFTWARE, and by DRIVER with the threshold in
 *                                          FILE off and on, in turn
 */
#include <errno.h>
#include <linux/aio_abi.h>
#include <linux/if_alg.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SOL_ALG
#define SOL_ALG 279
#endif

#define LONGEST 65536
#define LONGEST_RATE 131072
#define DEEPEST 64
#define MOST_ROUNDS 101
#define TAG 16
/* Copies, with neither key nor IV. */
#define NO_CIPHER "ecb-cipher_null"

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

static void draw(unsigned char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = rand() >> 8;
}

/* A socket with a key, if @len is not 0; operations are accepted from it. */
static int with_key(const char *type, const char *driver, const unsigned char *key, int len)
{
	struct sockaddr_alg name = { .salg_family = AF_ALG };
	int cipher = socket(AF_ALG, SOCK_SEQPACKET, 0);

	if (cipher < 0)
		fail("socket", "AF_ALG");
	strncpy((char *)name.salg_type, type, sizeof(name.salg_type) - 1);
	strncpy((char *)name.salg_name, driver, sizeof(name.salg_name) - 1);
	if (bind(cipher, (void *)&name, sizeof(name)) < 0)
		fail("bind", driver);
	if (len && setsockopt(cipher, SOL_ALG, ALG_SET_KEY, key, len) < 0)
		fail("set a key of", driver);
	return cipher;
}

/* The next part of a message's control data: where its content goes. */
static void *add_part(struct msghdr *message, struct cmsghdr **part, int type, size_t len)
{
	*part = *part ? CMSG_NXTHDR(message, *part) : CMSG_FIRSTHDR(message);
	(*part)->cmsg_level = SOL_ALG;
	(*part)->cmsg_type = type;
	(*part)->cmsg_len = CMSG_LEN(len);
	return CMSG_DATA(*part);
}

/* Hands a request in, whose first @aad_len bytes are additional data: its result is read later. */
static int begin(int operation, int is_encryption, const unsigned char *iv, uint32_t iv_len,
		 uint32_t aad_len, void *data, size_t len)
{
	char control[2 * CMSG_SPACE(4) + CMSG_SPACE(sizeof(struct af_alg_iv) + 16)] = { 0 };
	struct iovec bytes = { data, len };
	struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control };
	struct cmsghdr *part = NULL;
	struct af_alg_iv *vector;

	/* Bytes behind the last part would be one. */
	message.msg_controllen = 2 * CMSG_SPACE(4) + CMSG_SPACE(sizeof(*vector) + iv_len);
	*(uint32_t *)add_part(&message, &part, ALG_SET_OP, 4) =
		is_encryption ? ALG_OP_ENCRYPT : ALG_OP_DECRYPT;
	*(uint32_t *)add_part(&message, &part, ALG_SET_AEAD_ASSOCLEN, 4) = aad_len;
	vector = add_part(&message, &part, ALG_SET_IV, sizeof(*vector) + iv_len);
	vector->ivlen = iv_len;
	memcpy(vector->iv, iv, iv_len);
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
	unsigned char key[32], iv[16];
	int differ = 0;

	for (int round = 0; round < count; round++) {
		int key_len = 16 + 8 * (round % 3);
		int most = round % 4 == 0 ? LONGEST / 16 : round % 4 == 1 ? 300 : 16;
		size_t len = 16 * (1 + rand() % most), offset = round % 64;

		draw(key, sizeof(key));
		draw(iv, sizeof(iv));
		draw(data, sizeof(data));
		for (int i = 0; i < 2; i++) {
			int cipher = with_key("skcipher", i ? other : one, key, key_len);
			int operation = accept(cipher, NULL, NULL);

			if (begin(operation, round & 1, iv, 16, 0, data + offset, len) ||
			    finish(operation, results[i], len))
				fail("encrypt with", i ? other : one);
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

/* A request of an AEAD: additional data and payload, and the same sealed. */
struct packet {
	unsigned char plain[4096], sealed[4096 + TAG], result[4096 + TAG];
	size_t len;
	int operation, is_forged;
};

/* One that OTHER has sealed, handed in to the one that is tested. */
static void make_packet(struct packet *packet, int by_other, int by_one, int is_encryption,
			uint32_t iv_len)
{
	uint32_t aad_len = rand() % 65;
	int operation = accept(by_other, NULL, NULL);
	unsigned char iv[16];

	packet->len = aad_len + 1 + rand() % 4000;
	packet->operation = accept(by_one, NULL, NULL);
	packet->is_forged = !is_encryption && rand() % 4 == 0;
	draw(packet->plain, packet->len);
	draw(iv, sizeof(iv));
	/* CCM's has the length of the length in front, and the counter at its end. */
	iv[0] = 3;
	memset(iv + 12, 0, 4);
	if (begin(operation, 1, iv, iv_len, aad_len, packet->plain, packet->len) ||
	    finish(operation, packet->sealed, packet->len + TAG))
		fail("seal", "a packet");
	close(operation);
	if (packet->is_forged)
		packet->sealed[packet->len + rand() % TAG] ^= 1;
	if (begin(packet->operation, is_encryption, iv, iv_len, aad_len,
		  is_encryption ? packet->plain : packet->sealed,
		  packet->len + (is_encryption ? 0 : TAG)))
		fail("hand in", "a packet");
}

/* The kernel lets one request of a socket be under way: each has its own, of the same key. */
static int compare_aead(const char *one, const char *other, int depth, int count)
{
	static struct packet packets[DEEPEST];
	struct iocb requests[DEEPEST], *list[DEEPEST];
	struct io_event events[DEEPEST];
	aio_context_t context = 0;
	unsigned char key[16];
	int differ = 0;

	if (syscall(SYS_io_setup, DEEPEST, &context))
		fail("set up", "aio");
	for (int round = 0; round < count; round++) {
		int is_encryption = round & 1, ciphers[2];

		draw(key, sizeof(key));
		for (int i = 0; i < 2; i++) {
			ciphers[i] = with_key("aead", i ? other : one, key, sizeof(key));
			if (setsockopt(ciphers[i], SOL_ALG, ALG_SET_AEAD_AUTHSIZE, NULL, TAG) < 0)
				fail("set the length of a tag of", i ? other : one);
		}
		for (int i = 0; i < depth; i++) {
			make_packet(&packets[i], ciphers[1], ciphers[0], is_encryption,
				    strstr(other, "ccm") ? 16 : 12);
			requests[i] = (struct iocb){
				.aio_data = i, .aio_lio_opcode = IOCB_CMD_PREAD,
				.aio_fildes = packets[i].operation,
				.aio_buf = (uintptr_t)packets[i].result,
				.aio_nbytes = packets[i].len + (is_encryption ? TAG : 0),
			};
			list[i] = &requests[i];
		}
		if (syscall(SYS_io_submit, context, depth, list) != depth ||
		    syscall(SYS_io_getevents, context, depth, depth, events, NULL) != depth)
			fail("use at once", one);
		for (int i = 0; i < depth; i++) {
			struct packet *packet = &packets[events[i].data];
			int64_t len = packet->len + (is_encryption ? TAG : 0);

			if (packet->is_forged ? events[i].res != -EBADMSG :
			    events[i].res != len ||
			    memcmp(packet->result, is_encryption ? packet->sealed : packet->plain,
				   len)) {
				printf("afalg: round %d: %zu bytes end with %lld\n", round,
				       packet->len, (long long)events[i].res);
				differ++;
			}
			close(packet->operation);
		}
		close(ciphers[0]);
		close(ciphers[1]);
	}
	printf("compared %d packets, %d differ\n", count * depth, differ);
	return differ != 0;
}

struct user {
	int operation;
	uint32_t iv_len;
	size_t size;
	double end;
	long done;
	unsigned char *data, *result;
};

static void encrypt(int operation, uint32_t iv_len, unsigned char *data, unsigned char *result,
		    size_t len)
{
	unsigned char iv[16] = { 2 };

	if (begin(operation, 1, iv, iv_len, 0, data, len) || finish(operation, result, len))
		fail("encrypt", "for a user");
}

/* One of those that have a request under way at the same time. */
static void *use(void *place)
{
	struct user *user = place;

	do {
		encrypt(user->operation, user->iv_len, user->data, user->result, user->size);
		user->done++;
	} while (now() < user->end);
	return NULL;
}

/* By threads, since the kernel has requests of these ciphers wait, those by aio too. */
static int rate(const char *driver, size_t size, int depth, double seconds)
{
	static unsigned char data[LONGEST_RATE], results[DEEPEST][LONGEST_RATE];
	unsigned char key[16] = { 1 };
	uint32_t iv_len = strcmp(driver, NO_CIPHER) ? 16 : 0;
	int cipher = with_key("skcipher", driver, key, iv_len ? sizeof(key) : 0);
	struct user users[DEEPEST];
	pthread_t threads[DEEPEST];
	double start = now();
	long done = 0;

	for (int i = 0; i < depth; i++) {
		users[i] = (struct user){ accept(cipher, NULL, NULL), iv_len, size,
					  start + seconds, 0, data, results[i] };
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
	unsigned char data[64] = { 0 }, key[16] = { 1 };

	encrypt(accept(with_key("skcipher", driver, key, sizeof(key)), NULL, NULL), 16, data,
		data, sizeof(data));
	printf("once: %s works\n", driver);
	return 0;
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

static void set_threshold(const char *file, int bytes)
{
	FILE *parameter = fopen(file, "w");

	if (!parameter || fprintf(parameter, "%d", bytes) < 0 || fclose(parameter))
		fail("write", file);
}

enum { SOFTWARE, ALL, AUTO, WAYS };

/* Slices of each way in turn, so that what else the machine does strikes all alike. */
static int ways(char **drivers, const char *threshold, double slice, int rounds)
{
	static const char *const names[] = { "software", "engine, threshold off",
					     "engine, threshold on" };
	static const size_t sizes[] = { 16, 256, 1024, 4096, 16384, LONGEST };
	static unsigned char in[LONGEST] __attribute__((aligned(4096)));
	static unsigned char out[LONGEST] __attribute__((aligned(4096)));
	static unsigned char expected[LONGEST];
	static double times[WAYS][MOST_ROUNDS], ratios[WAYS][MOST_ROUNDS];
	unsigned char key[16] = { 3 };
	int users[WAYS];

	for (int way = 0; way < WAYS; way++)
		users[way] = accept(with_key("skcipher", drivers[way != SOFTWARE], key, 16), NULL,
				    NULL);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		encrypt(users[SOFTWARE], 16, in, expected, sizes[i]);
		for (int turn = 0; turn < WAYS * rounds; turn++) {
			/* Each is the first in a third of the rounds. */
			int round = turn / WAYS, way = (turn + round) % WAYS;
			double since, passed;
			long count = 0;

			set_threshold(threshold, way == ALL ? 0 : -1);
			encrypt(users[way], 16, in, out, sizes[i]);
			if (memcmp(expected, out, sizes[i])) {
				printf("afalg: %zu bytes: the results differ\n", sizes[i]);
				return 1;
			}
			since = now();
			do {
				encrypt(users[way], 16, in, out, sizes[i]);
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

			printf("%6zu B  %-22s %9.1f us %9.0f op/s  best %9.1f us  %6.2f of software\n",
			       sizes[i], names[way], us, 1e6 / us, times[way][0],
			       median(ratios[way], rounds));
		}
	}
	return 0;
}

int main(int count, char **words)
{
	int depth = count > 4 ? atoi(words[4]) : 0, rounds = count > 6 ? atoi(words[6]) : 0;

	srand(1);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (count == 5 && !strcmp(words[1], "compare"))
		return compare(words[2], words[3], atoi(words[4]));
	if (count == 3 && !strcmp(words[1], "once"))
		return once(words[2]);
	if (count == 6 && !strcmp(words[1], "aead") && depth >= 1 && depth <= DEEPEST)
		return compare_aead(words[2], words[3], depth, atoi(words[5]));
	if (count == 6 && !strcmp(words[1], "rate") && depth >= 1 && depth <= DEEPEST) {
		size_t size = atol(words[3]);

		if (size >= 1 && size <= LONGEST_RATE)
			return rate(words[2], size, depth, atof(words[5]));
	}
	if (count == 7 && !strcmp(words[1], "ways") && rounds >= 1 && rounds <= MOST_ROUNDS)
		return ways(words + 2, words[4], atof(words[5]) / 1e3, rounds);
	fprintf(stderr, "afalg: the first lines of afalg.c tell how it is called\n");
	return 2;
}
