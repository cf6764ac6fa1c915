//! The work and the libraries that do it: in place, in buffers that stay in the cache as far as they
//! fit, with a fresh IV for every message.

use std::array::from_fn;
use std::hint::black_box;

use aws_lc_rs::cipher as aws_cipher;
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::iv::FixedLength;
use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::chacha::{self, ChaChaKey};
use cipherlane_kernels::gcm::{self, GcmKey};
use cipherlane_kernels::job::{AeadJob, CipherJob};
use cipherlane_kernels::{cbc, ctr};
use cipherlane_measure::record::Case;
use cipherlane_measure::subject::{Candidate, Failure};

/// The name that Cipherlane has among the candidates.
pub const KERNELS: &str = "kernels";

const AES_KEY: [u8; 16] = [0x2b; 16];
const CHACHA_KEY: [u8; 32] = [0x80; 32];

/// An operation that the kernels and at least one of the crates have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// AES-128-GCM, sealing.
    Gcm,
    /// ChaCha20-Poly1305, sealing.
    ChaCha,
    /// AES-128-CBC, encrypting.
    CbcEncrypt,
    /// AES-128-CBC, decrypting.
    CbcDecrypt,
    /// AES-128-CTR.
    Ctr,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 5] = [
        Operation::Gcm,
        Operation::ChaCha,
        Operation::CbcEncrypt,
        Operation::CbcDecrypt,
        Operation::Ctr,
    ];

    /// As it stands in the record.
    pub fn case(self, batch: usize) -> Case {
        let (algorithm, keybits, direction) = match self {
            Operation::Gcm => ("gcm(aes)", 128, "encrypt"),
            Operation::ChaCha => ("rfc7539(chacha20,poly1305)", 256, "encrypt"),
            Operation::CbcEncrypt => ("cbc(aes)", 128, "encrypt"),
            Operation::CbcDecrypt => ("cbc(aes)", 128, "decrypt"),
            Operation::Ctr => ("ctr(aes)", 128, "encrypt"),
        };
        Case {
            algorithm: algorithm.into(),
            keybits,
            direction: direction.into(),
            batch: batch as u64,
            threads: 1,
            depth: None,
            pause_us: None,
        }
    }

    /// The largest size of a message that the operation takes, up to `size` bytes.
    pub fn fit(self, size: usize) -> usize {
        match self {
            Operation::CbcEncrypt | Operation::CbcDecrypt => size & !15,
            _ => size,
        }
    }

    /// Who does it, `N` messages of `size` bytes at a time.
    pub fn candidates<const N: usize>(self, size: usize) -> Vec<Candidate<'static>> {
        let aes = || AesKey::new(&AES_KEY).expect("16 bytes");
        match self {
            Operation::Gcm => vec![
                aeads::<_, N>(size, || GcmKey::new(&AES_KEY).expect("16 bytes"), gcm::seal),
                ring::<N>(size, &ring::aead::AES_128_GCM, &AES_KEY),
                aws_aead::<N>(size, &aws_lc_rs::aead::AES_128_GCM, &AES_KEY),
            ],
            Operation::ChaCha => vec![
                aeads::<_, N>(
                    size,
                    || ChaChaKey::new(&CHACHA_KEY).expect("32 bytes"),
                    chacha::seal,
                ),
                ring::<N>(size, &ring::aead::CHACHA20_POLY1305, &CHACHA_KEY),
                aws_aead::<N>(size, &aws_lc_rs::aead::CHACHA20_POLY1305, &CHACHA_KEY),
            ],
            Operation::CbcEncrypt => vec![
                ciphers::<N>(size, aes, cbc::encrypt),
                aws_encryption::<N>(size, aws_cipher::EncryptingKey::cbc),
            ],
            Operation::CbcDecrypt => vec![
                ciphers::<N>(size, aes, cbc::decrypt),
                one_by_one::<N, _>("aws-lc-rs", size, || {
                    let key = aws_cipher::DecryptingKey::cbc(aws_key()?)?;
                    Ok(move |data: &mut [u8], iv| {
                        let iv = aws_cipher::DecryptionContext::Iv128(FixedLength::from(iv));
                        key.decrypt(data, iv)?;
                        Ok(())
                    })
                }),
            ],
            Operation::Ctr => vec![
                ciphers::<N>(size, aes, ctr::apply),
                aws_encryption::<N>(size, aws_cipher::EncryptingKey::ctr),
            ],
        }
    }
}

fn aws_key() -> Result<aws_cipher::UnboundCipherKey, Failure> {
    let key = aws_cipher::UnboundCipherKey::new(&aws_cipher::AES_128, &AES_KEY);
    key.map_err(|_| "aws-lc-rs refuses the key".into())
}

/// Messages of `size` bytes, apart by more than that, so that they do not share cache sets.
struct Messages<const N: usize> {
    memory: Vec<u8>,
    size: usize,
    ivs: u64,
}

impl<const N: usize> Messages<N> {
    fn new(size: usize) -> Self {
        Messages {
            memory: vec![0; N * stride(size)],
            size,
            ivs: 0,
        }
    }

    /// Every message, with an IV that was never used before.
    fn fresh(&mut self) -> impl Iterator<Item = (&mut [u8], [u8; 16])> {
        let (ivs, size) = (&mut self.ivs, self.size);
        self.memory.chunks_mut(stride(size)).map(move |message| {
            *ivs += 1;
            let mut iv = [0; 16];
            iv[..8].copy_from_slice(&ivs.to_le_bytes());
            (&mut message[..size], iv)
        })
    }
}

fn stride(size: usize) -> usize {
    size.next_multiple_of(64) + 192
}

/// The kernel of an AEAD.
fn aeads<K: 'static, const N: usize>(
    size: usize,
    key: fn() -> K,
    run: fn(&mut [AeadJob<'_, K>]),
) -> Candidate<'static> {
    Candidate::new(KERNELS, move |_| {
        let (key, mut messages) = (key(), Messages::<N>::new(size));
        Ok(move |operations: u64| {
            for _ in 0..operations {
                let mut fresh = messages.fresh();
                let mut tags = [[0; 16]; N];
                let mut tags = tags.iter_mut();
                run(&mut from_fn::<_, N, _>(|_| {
                    let (data, iv) = fresh.next().expect("N messages");
                    AeadJob {
                        key: &key,
                        iv,
                        aad: &[],
                        data: data.into(),
                        tag: tags.next().expect("N tags"),
                    }
                }));
            }
            Ok(())
        })
    })
}

/// The kernel of a cipher.
fn ciphers<const N: usize>(
    size: usize,
    key: fn() -> AesKey,
    run: fn(&mut [CipherJob<'_, AesKey>]),
) -> Candidate<'static> {
    Candidate::new(KERNELS, move |_| {
        let (key, mut messages) = (key(), Messages::<N>::new(size));
        Ok(move |operations: u64| {
            for _ in 0..operations {
                let mut fresh = messages.fresh();
                run(&mut from_fn::<_, N, _>(|_| {
                    let (data, iv) = fresh.next().expect("N messages");
                    CipherJob {
                        key: &key,
                        iv,
                        data: data.into(),
                    }
                }));
            }
            Ok(())
        })
    })
}

/// A crate that has no batches. `make` gives what encrypts one message in place.
fn one_by_one<const N: usize, F>(
    name: &str,
    size: usize,
    make: impl Fn() -> Result<F, Failure> + Sync + 'static,
) -> Candidate<'static>
where
    F: FnMut(&mut [u8], [u8; 16]) -> Result<(), Failure> + 'static,
{
    Candidate::new(name, move |_| {
        let (mut run, mut messages) = (make()?, Messages::<N>::new(size));
        Ok(move |operations: u64| {
            for _ in 0..operations {
                for (data, iv) in messages.fresh() {
                    run(data, iv)?;
                }
            }
            Ok(())
        })
    })
}

fn aws_encryption<const N: usize>(
    size: usize,
    mode: fn(aws_cipher::UnboundCipherKey) -> Result<aws_cipher::EncryptingKey, Unspecified>,
) -> Candidate<'static> {
    one_by_one::<N, _>("aws-lc-rs", size, move || {
        let key = mode(aws_key()?)?;
        Ok(move |data: &mut [u8], iv| {
            let iv = aws_cipher::EncryptionContext::Iv128(FixedLength::from(iv));
            key.less_safe_encrypt(data, iv)?;
            Ok(())
        })
    })
}

fn ring<const N: usize>(
    size: usize,
    algorithm: &'static ring::aead::Algorithm,
    key: &'static [u8],
) -> Candidate<'static> {
    use ring::aead::{Aad, LessSafeKey, Nonce, UnboundKey};
    one_by_one::<N, _>("ring", size, move || {
        let key = UnboundKey::new(algorithm, key).map_err(|_| "ring refuses the key")?;
        let key = LessSafeKey::new(key);
        Ok(move |data: &mut [u8], iv: [u8; 16]| {
            let nonce = Nonce::try_assume_unique_for_key(&iv[..12]);
            let sealed = nonce.and_then(|n| key.seal_in_place_separate_tag(n, Aad::empty(), data));
            black_box(&sealed.map_err(|_| "ring does not seal")?);
            Ok(())
        })
    })
}

fn aws_aead<const N: usize>(
    size: usize,
    algorithm: &'static aws_lc_rs::aead::Algorithm,
    key: &'static [u8],
) -> Candidate<'static> {
    use aws_lc_rs::aead::{Aad, LessSafeKey, Nonce, UnboundKey};
    one_by_one::<N, _>("aws-lc-rs", size, move || {
        let key = LessSafeKey::new(UnboundKey::new(algorithm, key)?);
        Ok(move |data: &mut [u8], iv: [u8; 16]| {
            let nonce = Nonce::try_assume_unique_for_key(&iv[..12])?;
            black_box(&key.seal_in_place_separate_tag(nonce, Aad::empty(), data)?);
            Ok(())
        })
    })
}
