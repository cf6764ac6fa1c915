/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every mistake that can be found out is refused in words, and writes nothing. */
#include "check.h"

static cipherlane_framework *framework;
static cipherlane_session *gcm, *cbc, *hmac;
static unsigned char nonce[16], iv[16], data[64], tag[32], untouched[64];

static void of_sessions(void)
{
	struct {
		struct cipherlane_options known;
		unsigned char later[16];
	} options;
	cipherlane_session *session = gcm;

	REFUSED(cipherlane_session_open(NULL, "gcm(aes)", nonce, 16, NULL, &session),
		CIPHERLANE_INVALID, "framework is NULL");
	CHECK(session == NULL);
	REFUSED(cipherlane_session_open(framework, NULL, data, 16, NULL, &session),
		CIPHERLANE_INVALID, "algorithm is NULL");
	REFUSED(cipherlane_session_open(framework, "gcm(aes)", NULL, 16, NULL, &session),
		CIPHERLANE_INVALID, "key is NULL, but has 16 bytes");
	REFUSED(cipherlane_session_open(framework, "gcm(aes)", data, SIZE_MAX, NULL, &session),
		CIPHERLANE_INVALID, "more than memory has");
	REFUSED(cipherlane_session_open(framework, "gcm(aes)", data, 17, NULL, &session),
		CIPHERLANE_INVALID, "a key of 17 bytes");
	REFUSED(cipherlane_session_open(framework, "rot13(aes)", data, 16, NULL, &session),
		CIPHERLANE_INVALID, "unknown algorithm 'rot13(aes)'");
	REFUSED(cipherlane_session_open(framework, "gcm\xff", data, 16, NULL, &session),
		CIPHERLANE_INVALID, "no UTF-8");
	REFUSED(cipherlane_session_open(framework, "gcm(aes)", data, 16, NULL, NULL),
		CIPHERLANE_INVALID, "session is NULL");

	memset(&options, 0, sizeof(options));
	REFUSED(cipherlane_session_open(framework, "gcm(aes)", data, 16, &options.known, &session),
		CIPHERLANE_INVALID, "sizeof(struct cipherlane_options)");
	options.known.size = sizeof(options.known);
	options.known.driver = "nobody";
	REFUSED(cipherlane_session_open(framework, "gcm(aes)", data, 16, &options.known, &session),
		CIPHERLANE_UNAVAILABLE, "unknown driver 'nobody'");
	options.known.driver = "software";
	options.known.tag_len = 3;
	REFUSED(cipherlane_session_open(framework, "gcm(aes)", data, 16, &options.known, &session),
		CIPHERLANE_INVALID, "a tag of 3 bytes");
	options.known.tag_len = 12;
	options.known.goal = 77;
	REFUSED(cipherlane_session_open(framework, "gcm(aes)", data, 16, &options.known, &session),
		CIPHERLANE_INVALID, "goal 77");
	options.known.goal = CIPHERLANE_GOAL_CPU;
	options.known.size = sizeof(options);
	options.later[3] = 1;
	REFUSED(cipherlane_session_open(framework, "gcm(aes)", data, 16, &options.known, &session),
		CIPHERLANE_INVALID, "more than this version knows");
	options.later[3] = 0;
	OK(cipherlane_session_open(framework, "gcm(aes)", data, 16, &options.known, &session));
	OK(cipherlane_seal(session, nonce, 12, NULL, 0, NULL, 0, tag, 12));
	cipherlane_session_free(session);
	memset(tag, 0, sizeof(tag));
}

static void of_messages(void)
{
	REFUSED(cipherlane_seal(NULL, nonce, 12, NULL, 0, data, 64, tag, 16), CIPHERLANE_INVALID,
		"session is NULL");
	REFUSED(cipherlane_seal(gcm, nonce, 11, NULL, 0, data, 64, tag, 16), CIPHERLANE_INVALID,
		"an IV of 11 bytes");
	REFUSED(cipherlane_seal(gcm, data, 64, NULL, 0, data, 64, tag, 16), CIPHERLANE_INVALID,
		"an IV of");
	REFUSED(cipherlane_seal(gcm, nonce, 12, NULL, 5, data, 64, tag, 16), CIPHERLANE_INVALID,
		"aad is NULL, but has 5 bytes");
	REFUSED(cipherlane_seal(gcm, nonce, 12, data, 64, data, 64, tag, 16), CIPHERLANE_INVALID,
		"data and aad overlap");
	REFUSED(cipherlane_seal(gcm, nonce, 12, NULL, 0, data, 64, data + 48, 16),
		CIPHERLANE_INVALID, "data and tag overlap");
	REFUSED(cipherlane_seal(gcm, nonce, 12, NULL, 0, data, SIZE_MAX, tag, 16),
		CIPHERLANE_INVALID, "more than memory has");
	REFUSED(cipherlane_seal(gcm, nonce, 12, NULL, 0, data, SIZE_MAX / 2, tag, 16),
		CIPHERLANE_INVALID, "");
	REFUSED(cipherlane_seal(gcm, nonce, 12, NULL, 0, data, 64, tag, 15), CIPHERLANE_INVALID,
		"a tag of 15 bytes");
	REFUSED(cipherlane_seal(gcm, nonce, 12, NULL, 0, data, 64, NULL, 0), CIPHERLANE_INVALID,
		"a tag of 0 bytes");
	REFUSED(cipherlane_seal(cbc, iv, 16, NULL, 0, data, 64, tag, 16), CIPHERLANE_INVALID,
		"has no 'seal'");
	REFUSED(cipherlane_open(gcm, nonce, 12, NULL, 0, data, 64, data, 16), CIPHERLANE_INVALID,
		"data and tag overlap");
	REFUSED(cipherlane_encrypt(cbc, iv, 16, data, 63), CIPHERLANE_INVALID, "63 bytes");
	REFUSED(cipherlane_encrypt(gcm, nonce, 12, data, 64), CIPHERLANE_INVALID,
		"has no 'encrypt'");
	REFUSED(cipherlane_decrypt(cbc, NULL, 16, data, 64), CIPHERLANE_INVALID,
		"iv is NULL, but has 16 bytes");
	REFUSED(cipherlane_mac(hmac, data, 64, data, 32), CIPHERLANE_INVALID,
		"tag and message overlap");
	REFUSED(cipherlane_mac(cbc, data, 64, tag, 32), CIPHERLANE_INVALID, "has no 'mac'");
	REFUSED(cipherlane_verify(hmac, data, 64, tag, 400), CIPHERLANE_INVALID, "a tag of");
	CHECK(!memcmp(data, untouched, sizeof(data)));
}

static void of_batches(void)
{
	struct cipherlane_request requests[2] = { { 0 } };
	cipherlane_ticket *ticket = NULL;
	size_t taken;
	int i;

	for (i = 0; i < 2; i++) {
		requests[i].iv = nonce;
		requests[i].iv_len = 12;
		requests[i].input = requests[i].output = data + 32 * i;
		requests[i].len = 32;
		requests[i].tag = tag + 16 * i;
		requests[i].tag_len = 16;
		requests[i].status = -1;
	}
	REFUSED(cipherlane_process(gcm, 2, requests, 2), CIPHERLANE_INVALID, "direction 2");
	REFUSED(cipherlane_process(gcm, 0, requests, 0), CIPHERLANE_INVALID, "empty batch");
	REFUSED(cipherlane_process(gcm, 0, NULL, 2), CIPHERLANE_INVALID, "requests is NULL");
	REFUSED(cipherlane_process(gcm, 0, requests, SIZE_MAX / 2), CIPHERLANE_INVALID,
		"more than memory has");
	/* A request whose memory cannot be: none is run. */
	requests[1].tag = data + 40;
	REFUSED(cipherlane_process(gcm, 0, requests, 2), CIPHERLANE_INVALID,
		"tag and input overlap");
	CHECK(requests[0].status == CIPHERLANE_PENDING);
	CHECK(requests[1].status == CIPHERLANE_INVALID);
	REFUSED(cipherlane_submit(gcm, 0, requests, 2, &taken, &ticket), CIPHERLANE_INVALID,
		"tag and input overlap");
	CHECK(taken == 0 && ticket == NULL);
	REFUSED(cipherlane_submit(gcm, 0, requests, 2, NULL, &ticket), CIPHERLANE_INVALID,
		"taken is NULL");
	REFUSED(cipherlane_submit(gcm, 0, requests, 2, &taken, NULL), CIPHERLANE_INVALID,
		"ticket is NULL");
	REFUSED(cipherlane_ticket_wait(NULL), CIPHERLANE_INVALID, "ticket is NULL");
	REFUSED(cipherlane_ticket_poll(&ticket), CIPHERLANE_INVALID, "ticket is NULL");
	requests[1].tag = tag + 16;
	requests[1].input = data + 31;
	REFUSED(cipherlane_process(gcm, 0, requests + 1, 1), CIPHERLANE_INVALID, "overlap in part");
	requests[1].input = requests[1].output = NULL;
	REFUSED(cipherlane_process(gcm, 0, requests + 1, 1), CIPHERLANE_INVALID,
		"input is NULL, but has 32 bytes");
	requests[1].input = data + 32;
	REFUSED(cipherlane_process(gcm, 0, requests + 1, 1), CIPHERLANE_INVALID, "output of 0");
	CHECK(!memcmp(data, untouched, sizeof(data)));
	/* A length that is refused by the algorithm's rules: the other one is done. */
	requests[1].output = data + 32;
	requests[1].iv_len = 13;
	nonce[11] = 1;
	REFUSED(cipherlane_process(gcm, 0, requests, 2), CIPHERLANE_INVALID, "an IV of 13 bytes");
	CHECK(requests[0].status == CIPHERLANE_OK);
	CHECK(requests[1].status == CIPHERLANE_INVALID);
	CHECK(memcmp(data, untouched, 32) && !memcmp(data + 32, untouched + 32, 32));
	/* No payload at all is a message too. */
	requests[1].iv_len = 12;
	requests[1].input = requests[1].output = NULL;
	requests[1].len = 0;
	OK(cipherlane_process(gcm, CIPHERLANE_ENCRYPT, requests + 1, 1));
	OK(cipherlane_process(gcm, CIPHERLANE_DECRYPT, requests + 1, 1));
}

static void of_the_rest(void)
{
	cipherlane_framework *other = framework;
	cipherlane_nonces *nonces;
	struct cipherlane_algorithm algorithm;
	unsigned char fixed[4] = { 1, 2, 3, 4 };
	char text[400];
	size_t needed = 0, count = 0;

	REFUSED(cipherlane_framework_new(NULL), CIPHERLANE_INVALID, "framework is NULL");
	REFUSED(cipherlane_framework_load("/nonexistent/cipherlane.toml", &other),
		CIPHERLANE_CONFIG, "/nonexistent/cipherlane.toml");
	CHECK(other == NULL);
	REFUSED(cipherlane_nonces_new(NULL, 0, &nonces), CIPHERLANE_INVALID, "fixed is NULL");
	OK(cipherlane_nonces_new(fixed, UINT64_MAX - 1, &nonces));
	OK(cipherlane_nonces_next(nonces, nonce));
	CHECK(!memcmp(nonce, "\1\2\3\4\377\377\377\377\377\377\377\376", 12));
	REFUSED(cipherlane_nonces_next(nonces, nonce), CIPHERLANE_NONCES, "used");
	REFUSED(cipherlane_nonces_next(nonces, NULL), CIPHERLANE_INVALID, "nonce is NULL");
	cipherlane_nonces_free(nonces);
	while (cipherlane_algorithm_at(count, &algorithm) == CIPHERLANE_OK) {
		CHECK(strlen(algorithm.name) > 2);
		count++;
	}
	CHECK(count > 20);
	REFUSED(cipherlane_algorithm_at(SIZE_MAX, &algorithm), CIPHERLANE_INVALID, "no algorithm");
	REFUSED(cipherlane_algorithm_at(0, NULL), CIPHERLANE_INVALID, "algorithm is NULL");
	OK(cipherlane_why(framework, "gcm(aes)", 1400, text, sizeof(text), &needed));
	CHECK(strstr(text, "serves gcm(aes)") && needed == strlen(text) + 1);
	OK(cipherlane_why(framework, "gcm(aes)", 1400, text, 5, &needed));
	CHECK(strlen(text) == 4 && needed > 5);
	OK(cipherlane_why(framework, "gcm(aes)", 1400, NULL, 0, &needed));
	REFUSED(cipherlane_why(framework, "gcm(aes)", 1400, NULL, 0, NULL), CIPHERLANE_INVALID,
		"text has no bytes");
	REFUSED(cipherlane_why(framework, "rot13", 1400, text, 5, NULL), CIPHERLANE_INVALID,
		"unknown algorithm");
	REFUSED(cipherlane_why(framework, "gcm(aes)", SIZE_MAX, text, 5, NULL), CIPHERLANE_INVALID,
		"more than memory has");
	cipherlane_framework_free(NULL);
	cipherlane_session_free(NULL);
	cipherlane_nonces_free(NULL);
}

int main(void)
{
	OK(cipherlane_framework_new(&framework));
	fill(data, sizeof(data));
	memcpy(untouched, data, sizeof(data));
	OK(cipherlane_session_open(framework, "gcm(aes)", data, 16, NULL, &gcm));
	OK(cipherlane_session_open(framework, "cbc(aes)", data, 16, NULL, &cbc));
	OK(cipherlane_session_open(framework, "hmac(sha256)", data, 16, NULL, &hmac));
	of_sessions();
	of_messages();
	of_batches();
	of_the_rest();
	cipherlane_session_free(gcm);
	cipherlane_session_free(cbc);
	cipherlane_session_free(hmac);
	cipherlane_framework_free(framework);
	return 0;
}
