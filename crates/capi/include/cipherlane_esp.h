/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ESP (RFC 4303): one security association on any number of threads at once, without a lock, and
 * many packets per call. What calls answer: cipherlane.h.
 *
 * An SA belongs to the process that made it: in a forked child every packet is refused.
 */
#ifndef CIPHERLANE_ESP_H
#define CIPHERLANE_ESP_H

#include <cipherlane.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cipherlane_outbound_sa cipherlane_outbound_sa;
typedef struct cipherlane_inbound_sa cipherlane_inbound_sa;

/* What IKE, or a file, says of an SA. All that is 0 or NULL is the default. */
struct cipherlane_sa_parameters {
	size_t size;  /* sizeof(struct cipherlane_sa_parameters) */
	uint32_t spi; /* 256 or more */
	/*
	 * "aes-gcm-16", "-12", "-8", "chacha20-poly1305", "aes-gmac", "aes-cbc-hmac-sha256",
	 * "aes-cbc-hmac-sha512", "aes-ctr-hmac-sha256", "aes-ctr-hmac-sha512", "null-hmac-sha256",
	 * "null-hmac-sha512", "gost-4m-imit-z", "-a", "gost-1k-imit-z", "-a", "kuznyechik-mgm",
	 * "magma-mgm", "kuznyechik-mgm-mac", "magma-mgm-mac"
	 */
	const char *transform;
	/* With the salt at its end where the transform has one, as IKE's KEYMAT has it. */
	const void *encryption_key;
	size_t encryption_key_len;
	/* NULL for combined modes. */
	const void *integrity_key;
	size_t integrity_key_len;
	/* Sequence numbers wide, 32 to 65536; 0: 4096. Inbound only. */
	uint32_t replay_window;
	/* Not 0: no protection against replays. */
	uint8_t without_replay_protection;
	/* Not 0: sequence numbers of 32 bits, not the extended ones of 64. */
	uint8_t without_esn;
	/* Not 0: payloads of IP packets, not whole ones. */
	uint8_t transport_mode;
	/* Not 0: behind UDP (RFC 3948), where keepalives and IKE come too. */
	uint8_t udp;
	/*
	 * The highest sequence number that was sent, or may have been, or was received, by an SA of
	 * these keys before. Two outbound SAs that send the same numbers give plaintext away.
	 */
	uint64_t last_sequence;
};

enum cipherlane_verdict {
	CIPHERLANE_ESP_PENDING = 0,
	CIPHERLANE_ESP_SEALED = 1,   /* the content is the ESP packet, from the SPI to the ICV */
	CIPHERLANE_ESP_ACCEPTED = 2, /* authentic and new; the content is what ESP protected */
	CIPHERLANE_ESP_DUMMY = 3,    /* authentic, and to be dropped (RFC 4303, section 2.6) */
	CIPHERLANE_ESP_REFUSED = 16  /* and above: cipherlane_esp_verdict_name() has the reason */
};

/* One packet in a buffer with head and tail room, worked on in place. */
struct cipherlane_packet {
	void *buffer;
	size_t buffer_len;
	size_t offset;       /* where the content begins; written */
	size_t len;          /* bytes of content; written */
	uint64_t sequence;   /* written */
	int verdict;         /* written: a cipherlane_verdict */
	uint8_t next_header; /* what the content is; needed to seal in transport mode, else written */
};

/*
 * The name of a verdict, "sealed", "replayed", "integrity_failures"; the same as that of the
 * counter in 'cipherlane gateway status'. NULL for a number that is none.
 */
const char *cipherlane_esp_verdict_name(int verdict);

int cipherlane_outbound_sa_new(const cipherlane_framework *framework,
			       const struct cipherlane_sa_parameters *parameters,
			       cipherlane_outbound_sa **sa);
void cipherlane_outbound_sa_free(cipherlane_outbound_sa *sa);

/* Bytes that a packet needs before its content and behind it; 0 for NULL. */
size_t cipherlane_outbound_sa_head_room(const cipherlane_outbound_sa *sa);
size_t cipherlane_outbound_sa_tail_room(const cipherlane_outbound_sa *sa);

/*
 * Seals packets, with consecutive sequence numbers in their order. Each has its own verdict
 * afterwards; *done, unless NULL, is the number of those that were sealed. No buffer is another
 * packet's.
 */
int cipherlane_outbound_sa_seal(const cipherlane_outbound_sa *sa,
				struct cipherlane_packet *packets, size_t count, size_t *done);

int cipherlane_inbound_sa_new(const cipherlane_framework *framework,
			      const struct cipherlane_sa_parameters *parameters,
			      cipherlane_inbound_sa **sa);
void cipherlane_inbound_sa_free(cipherlane_inbound_sa *sa);

/*
 * Opens ESP packets, from the SPI to the ICV each. *done, unless NULL, is the number of those
 * that were accepted. What was decrypted and then refused is wiped.
 */
int cipherlane_inbound_sa_open(const cipherlane_inbound_sa *sa,
			       struct cipherlane_packet *packets, size_t count, size_t *done);

struct cipherlane_esp_statistics {
	uint64_t packets; /* sealed, or accepted */
	uint64_t bytes;   /* of their content */
	uint64_t lost;    /* numbers that left the replay window without having been received */
	uint64_t refused;
};

int cipherlane_outbound_sa_statistics(const cipherlane_outbound_sa *sa,
				      struct cipherlane_esp_statistics *statistics);
int cipherlane_inbound_sa_statistics(const cipherlane_inbound_sa *sa,
				     struct cipherlane_esp_statistics *statistics);

#ifdef __cplusplus
}
#endif

#endif
