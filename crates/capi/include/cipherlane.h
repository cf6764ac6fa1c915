/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Cipherlane: encrypts by whatever is fastest on this machine (vector lanes, idle cores,
 * installed libraries, accelerators), and says why.
 *
 * Functions answer CIPHERLANE_OK, which is 0, or another cipherlane_status. Then
 * cipherlane_error_text() has the reason and the remedy in words, for the same thread.
 *
 * A framework and a session may be used by any number of threads at once; what makes or frees
 * one is called by one thread. A child of fork() opens its own. NULL stands for memory of no
 * bytes. Keys, plaintexts and tags of the caller's are read in place and never kept: to wipe
 * them is the caller's. Link with -lcipherlane.
 */
#ifndef CIPHERLANE_H
#define CIPHERLANE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cipherlane_status {
	CIPHERLANE_OK = 0,
	/* Authentication failed; the output was wiped. */
	CIPHERLANE_BAD_TAG = 1,
	/* An argument was refused, and nothing was done with it. */
	CIPHERLANE_INVALID = 2,
	/* No driver of that name, or the driver cannot be used. */
	CIPHERLANE_UNAVAILABLE = 3,
	/* A driver failed in the middle of a request in place, whose data is lost. */
	CIPHERLANE_FAILED = 4,
	/* A setting or a file of settings cannot be understood or read. */
	CIPHERLANE_CONFIG = 5,
	/* A counter of nonces has given all of them, or is the parent's of this process. */
	CIPHERLANE_NONCES = 6,
	/* The work is not finished yet. */
	CIPHERLANE_PENDING = 7,
	/* A fault of this library. */
	CIPHERLANE_INTERNAL = 8
};

enum cipherlane_direction {
	CIPHERLANE_ENCRYPT = 0, /* a MAC: write the tag */
	CIPHERLANE_DECRYPT = 1  /* a MAC: compare the tag */
};

enum cipherlane_kind {
	CIPHERLANE_CIPHER = 0,
	CIPHERLANE_AEAD = 1,
	CIPHERLANE_MAC = 2
};

/* What a driver is chosen for. */
enum cipherlane_goal {
	CIPHERLANE_GOAL_DEFAULT = 0, /* as the settings say: latency, unless changed */
	CIPHERLANE_GOAL_LATENCY = 1,
	CIPHERLANE_GOAL_THROUGHPUT = 2,
	CIPHERLANE_GOAL_CPU = 3 /* the least processor time of the caller */
};

typedef struct cipherlane_framework cipherlane_framework;
typedef struct cipherlane_session cipherlane_session;
typedef struct cipherlane_ticket cipherlane_ticket;
typedef struct cipherlane_nonces cipherlane_nonces;

/* The library's version, such as "0.1.0". */
const char *cipherlane_version(void);

/* Why the last call of this thread that failed did so. Valid until the thread's next call. */
const char *cipherlane_error_text(void);

/*
 * Every built-in driver with the default settings: no file and no variable of the environment is
 * read. A program needs one framework.
 */
int cipherlane_framework_new(cipherlane_framework **framework);

/*
 * The same with the settings of a TOML file, or with those that the command 'cipherlane' obeys
 * where file is NULL: /etc/cipherlane.toml and the user's file. CIPHERLANE_* of the environment come
 * after either.
 */
int cipherlane_framework_load(const char *file, cipherlane_framework **framework);

/* Sessions that are open stay usable. NULL is allowed, as in all functions that free. */
void cipherlane_framework_free(cipherlane_framework *framework);

struct cipherlane_algorithm {
	const char *name; /* as Linux has it: "gcm(aes)" */
	int kind;         /* cipherlane_kind */
	size_t iv_len;    /* bytes of IV or nonce; 0: none */
	size_t block_len; /* the payload is a multiple of it */
	size_t tag_len;   /* the longest and default one; 0: none */
};

/* The algorithms by number from 0; CIPHERLANE_INVALID past the last one. */
int cipherlane_algorithm_at(size_t number, struct cipherlane_algorithm *algorithm);

struct cipherlane_options {
	size_t size;        /* sizeof(struct cipherlane_options) */
	size_t tag_len;     /* 0: the longest */
	const char *driver; /* NULL: the best at each moment ("auto") */
	int goal;           /* cipherlane_goal */
};

/*
 * A key in use. The algorithm has the name of Linux's CryptoAPI, "gcm(aes)", "xts(aes)",
 * "hmac(sha256)"; options may be NULL.
 */
int cipherlane_session_open(const cipherlane_framework *framework, const char *algorithm,
			    const void *key, size_t key_len,
			    const struct cipherlane_options *options,
			    cipherlane_session **session);

/* Waits for work under way, and wipes the key. */
void cipherlane_session_free(cipherlane_session *session);

/*
 * An AEAD: encrypts data in place, and writes the tag. aad is authenticated, not encrypted. A
 * nonce must never come twice under one key.
 */
int cipherlane_seal(const cipherlane_session *session, const void *nonce, size_t nonce_len,
		    const void *aad, size_t aad_len, void *data, size_t len, void *tag,
		    size_t tag_len);

/* The reverse: CIPHERLANE_BAD_TAG where anything was changed; the data is wiped then. */
int cipherlane_open(const cipherlane_session *session, const void *nonce, size_t nonce_len,
		    const void *aad, size_t aad_len, void *data, size_t len, const void *tag,
		    size_t tag_len);

/* A cipher, in place. Nothing shows whether data was changed: an AEAD is the safer choice. */
int cipherlane_encrypt(const cipherlane_session *session, const void *iv, size_t iv_len,
		       void *data, size_t len);
int cipherlane_decrypt(const cipherlane_session *session, const void *iv, size_t iv_len,
		       void *data, size_t len);

/* A MAC: writes the tag, or compares it in constant time. */
int cipherlane_mac(const cipherlane_session *session, const void *message, size_t len,
		   void *tag, size_t tag_len);
int cipherlane_verify(const cipherlane_session *session, const void *message, size_t len,
		      const void *tag, size_t tag_len);

/*
 * One unit of work. Equal input and output mean in place; an overlap in part is refused, and
 * neither aad nor tag may lie in what is written. A MAC has no output: NULL.
 */
struct cipherlane_request {
	const void *iv;
	size_t iv_len;
	const void *aad;
	size_t aad_len;
	const void *input;
	void *output;
	size_t len; /* bytes of input, and of output */
	void *tag;  /* written when encrypting, compared when decrypting */
	size_t tag_len;
	int status; /* written: a cipherlane_status */
};

/*
 * Runs requests side by side and waits for all of them. Each has its own status afterwards; the
 * answer is that of the first that failed, and the others are done all the same. No memory that
 * one request writes is another one's.
 */
int cipherlane_process(const cipherlane_session *session, int direction,
		       struct cipherlane_request *requests, size_t count);

/*
 * Hands requests to a driver and returns at once, as far as the driver allows that. *taken says
 * how many it took, from the front; where that is 0, *ticket is NULL: fetch something that is
 * under way, and try again. The requests that were taken and all their memory belong to the
 * library until the ticket is fetched; to free any of it before that is an error.
 */
int cipherlane_submit(const cipherlane_session *session, int direction,
		      struct cipherlane_request *requests, size_t count, size_t *taken,
		      cipherlane_ticket **ticket);

/*
 * CIPHERLANE_PENDING while work is under way. Otherwise as cipherlane_process, and the ticket is
 * gone: *ticket is NULL.
 */
int cipherlane_ticket_poll(cipherlane_ticket **ticket);

/* Waits, and helps with the work. The ticket is gone afterwards: *ticket is NULL. */
int cipherlane_ticket_wait(cipherlane_ticket **ticket);

/*
 * Counts the nonces of one key, for AEADs with nonces of 12 bytes: 4 that stay and a number of 64
 * bits (NIST SP 800-38D, section 8.2.1), beginning at first. Any number of threads may ask.
 */
int cipherlane_nonces_new(const uint8_t fixed[4], uint64_t first, cipherlane_nonces **nonces);
int cipherlane_nonces_next(const cipherlane_nonces *nonces, uint8_t nonce[12]);
void cipherlane_nonces_free(cipherlane_nonces *nonces);

/*
 * Who would serve one request of size bytes, and why, as a sentence of at most text_size bytes
 * with its 0. *needed, unless NULL, has the bytes that the whole sentence takes.
 */
int cipherlane_why(const cipherlane_framework *framework, const char *algorithm, size_t size,
		   char *text, size_t text_size, size_t *needed);

#ifdef __cplusplus
}
#endif

#endif
