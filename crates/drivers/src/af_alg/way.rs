//! From an algorithm and a request to what the kernel takes and gives.

use std::io::{self, IoSlice};

use cipherlane_core::{Algorithm, Direction, Kind, Request, Status};
use zeroize::Zeroizing;

use super::socket::{Head, Operation};

/// The longest tag, and the longest digest of a MAC.
pub(super) const LONGEST_TAG: usize = 64;

/// How the kernel wants an algorithm's keys and requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// The type of socket address: `skcipher`, `aead`, `hash`.
    pub(super) socket_type: &'static str,
    pub(super) kind: Kind,
    iv_len: usize,
    /// The IV stands behind the additional data too, and counts as a part of them (`rfc4106`,
    /// `rfc4543`: the kernel's documentation of `aead_request_set_ad`).
    iv_in_aad: bool,
    /// Bytes of the MAC's key, which stands before that of the cipher, in an `authenc` template.
    mac_key: Option<usize>,
}

impl Way {
    /// `None`: Linux has no algorithm of this name.
    pub(super) fn of(algorithm: &Algorithm) -> Option<Way> {
        let name = algorithm.name;
        if ["gost", "kuznyechik", "magma"]
            .iter()
            .any(|family| name.contains(family))
        {
            return None;
        }
        let mac_key = name.starts_with("authenc").then(|| {
            if name.contains("hmac(sha256)") {
                32
            } else {
                64
            }
        });
        Some(Way {
            socket_type: match algorithm.kind {
                Kind::Cipher => "skcipher",
                Kind::Aead => "aead",
                Kind::Mac => "hash",
            },
            kind: algorithm.kind,
            iv_len: algorithm.iv_len,
            iv_in_aad: name.starts_with("rfc4106") || name.starts_with("rfc4543"),
            mac_key,
        })
    }

    /// A key as the kernel takes it. `authenc` wants a netlink attribute with the length of the
    /// cipher's key before both (`crypto_authenc_extractkeys`).
    pub(super) fn key(&self, key: &[u8]) -> Zeroizing<Vec<u8>> {
        let Some(mac) = self.mac_key else {
            return Zeroizing::new(key.to_vec());
        };
        /// `CRYPTO_AUTHENC_KEYA_PARAM`
        const PARAM: u16 = 1;
        let mut blob = Zeroizing::new(Vec::with_capacity(8 + key.len()));
        blob.extend(8u16.to_ne_bytes());
        blob.extend(PARAM.to_ne_bytes());
        blob.extend((key.len().saturating_sub(mac) as u32).to_be_bytes());
        blob.extend(key);
        blob
    }

    /// What is received for a request.
    pub(super) fn shape(&self, direction: Direction, request: &Request<'_>) -> Shape {
        let (aad, payload, tag) = match (self.kind, direction) {
            (Kind::Mac, _) => (0, 0, request.tag_len()),
            (Kind::Cipher, _) => (0, request.len(), 0),
            (Kind::Aead, Direction::Decrypt) => (self.aad_len(request), request.len(), 0),
            (Kind::Aead, Direction::Encrypt) => {
                (self.aad_len(request), request.len(), request.tag_len())
            }
        };
        Shape { aad, payload, tag }
    }

    /// As the kernel counts it.
    fn aad_len(&self, request: &Request<'_>) -> usize {
        let iv = if self.iv_in_aad { self.iv_len } else { 0 };
        request.aad_len() + iv
    }

    /// Sends a request.
    pub(super) fn send(
        &self,
        operation: &Operation,
        direction: Direction,
        request: &mut Request<'_>,
    ) -> io::Result<()> {
        let iv_block = request.iv_block();
        let iv = &iv_block[..self.iv_len];
        let behind_aad = if self.iv_in_aad { iv } else { &[] };
        let mut tag = [0; LONGEST_TAG];
        let tag_len = match (self.kind, direction) {
            (Kind::Aead, Direction::Decrypt) => request.tag_len(),
            _ => 0,
        };
        tag[..tag_len].copy_from_slice(&request.tag_bytes()[..tag_len]);
        let head = match self.kind {
            Kind::Mac => Head::none(),
            Kind::Cipher => Head::new(direction, iv, None),
            Kind::Aead => Head::new(direction, iv, Some(self.aad_len(request))),
        };
        let parts = [
            request.aad_bytes(),
            behind_aad,
            request.input(),
            &tag[..tag_len],
        ];
        operation.send(&head, &parts.map(IoSlice::new))
    }

    /// Ends a request whose output is written; `tag` is what was received behind the payload.
    pub(super) fn finish(&self, direction: Direction, request: &mut Request<'_>, tag: &[u8]) {
        match (self.kind, direction) {
            (Kind::Mac, _) | (Kind::Aead, Direction::Encrypt) => {
                request.finish_tag(direction, tag);
            }
            // The kernel has compared the tag.
            (Kind::Cipher, _) | (Kind::Aead, Direction::Decrypt) => {
                request.set_status(Status::Done);
            }
        }
    }
}

/// What is received for a request: additional data come back too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) aad: usize,
    pub(super) payload: usize,
    pub(super) tag: usize,
}

impl Shape {
    pub(super) fn len(self) -> usize {
        self.aad + self.payload + self.tag
    }

    /// Bytes to ask for behind the payload. The kernel does nothing, and compares no tag, where it
    /// is asked for none at all; and waits for another request where it is asked for too many.
    pub(super) fn behind(self) -> usize {
        if self.len() == 0 { 1 } else { self.tag }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_algorithm_of_linux_has_a_way() {
        for algorithm in Algorithm::all() {
            let way = Way::of(algorithm);
            let is_national = algorithm.name.contains("gost")
                || algorithm.name.contains("kuznyechik")
                || algorithm.name.contains("magma");
            assert_eq!(way.is_none(), is_national, "{}", algorithm.name);
        }
    }

    #[test]
    fn keys_of_authenc_say_where_they_divide() {
        let algorithm = Algorithm::find("authenc(hmac(sha256),cbc(aes))").unwrap();
        let key: Vec<u8> = (0..48).collect();
        let blob = Way::of(algorithm).unwrap().key(&key);
        assert_eq!(blob[..2], 8u16.to_ne_bytes());
        assert_eq!(blob[4..8], [0, 0, 0, 16]);
        assert_eq!(blob[8..], key);
    }
}
