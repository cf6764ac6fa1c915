//! What vector registers have after the kernels that clear only those that they use.

use core::arch::asm;

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::job::Direction;
use cipherlane_kernels::xts::{self, XtsKey};
use cipherlane_kernels::{cbc, ecb};
use inout::InOutBuf;

use super::feature_sets;

type Block = [u8; 16];
type Run = fn(&Keys, &mut Block, InOutBuf<'_, '_, u8>);

struct Keys {
    aes: AesKey,
    xts: XtsKey,
}

/// What is called, and what with.
struct Call<'c> {
    run: Run,
    key: &'c Keys,
    iv: Block,
    data: &'c mut [u8],
}

extern "sysv64" fn call(of: &mut Call<'_>) {
    (of.run)(of.key, &mut of.iv, (&mut *of.data).into());
}

/// The vector registers after a call before which all their bits were set.
fn after(of: &mut Call<'_>) -> [Block; 16] {
    let mut registers = [[0; 16]; 16];
    // SAFETY: the call takes one argument and keeps to its convention, by which r12 is kept;
    // sixteen blocks are written.
    unsafe {
        asm!(
            "pcmpeqd xmm0, xmm0", "pcmpeqd xmm1, xmm1", "pcmpeqd xmm2, xmm2",
            "pcmpeqd xmm3, xmm3", "pcmpeqd xmm4, xmm4", "pcmpeqd xmm5, xmm5",
            "pcmpeqd xmm6, xmm6", "pcmpeqd xmm7, xmm7", "pcmpeqd xmm8, xmm8",
            "pcmpeqd xmm9, xmm9", "pcmpeqd xmm10, xmm10", "pcmpeqd xmm11, xmm11",
            "pcmpeqd xmm12, xmm12", "pcmpeqd xmm13, xmm13", "pcmpeqd xmm14, xmm14",
            "pcmpeqd xmm15, xmm15",
            "call {call}",
            "movups [r12], xmm0", "movups [r12 + 16], xmm1", "movups [r12 + 32], xmm2",
            "movups [r12 + 48], xmm3", "movups [r12 + 64], xmm4", "movups [r12 + 80], xmm5",
            "movups [r12 + 96], xmm6", "movups [r12 + 112], xmm7",
            "movups [r12 + 128], xmm8", "movups [r12 + 144], xmm9",
            "movups [r12 + 160], xmm10", "movups [r12 + 176], xmm11",
            "movups [r12 + 192], xmm12", "movups [r12 + 208], xmm13",
            "movups [r12 + 224], xmm14", "movups [r12 + 240], xmm15",
            call = sym call,
            in("rdi") of,
            in("r12") registers.as_mut_ptr(),
            clobber_abi("sysv64"),
        );
    }
    registers
}

/// Whether instructions of AES are there, and not denied: the portable path has no registers of its
/// own to clear.
fn has_aes() -> bool {
    let denied = cipherlane_kernels::environment::text(feature_sets::VARIABLE).unwrap_or_default();
    std::is_x86_feature_detected!("aes") && denied.split(',').all(|feature| feature != "aes")
}

/// Each register is empty or as it was, behind parts of one block to five, and data units of XTS that end
/// with less than one.
pub(crate) fn check() {
    if !has_aes() {
        return;
    }
    let runs: [(&str, Run); 6] = [
        ("ECB, encryption", |key, _, data| {
            ecb::crypt_one(Direction::Encrypt, &key.aes, data);
        }),
        ("ECB, decryption", |key, _, data| {
            ecb::crypt_one(Direction::Decrypt, &key.aes, data);
        }),
        ("CBC, encryption", |key, iv, data| {
            cbc::encrypt_one(&key.aes, iv, data)
        }),
        ("CBC, decryption", |key, iv, data| {
            cbc::decrypt_one(&key.aes, iv, data)
        }),
        ("XTS, encryption", |key, tweak, data| {
            xts::crypt_one(Direction::Encrypt, &key.xts, tweak, data);
        }),
        ("XTS, decryption", |key, tweak, data| {
            xts::crypt_one(Direction::Decrypt, &key.xts, tweak, data);
        }),
    ];
    let key = Keys {
        aes: AesKey::new(&[7; 32]).unwrap(),
        xts: XtsKey::new(&[[7; 32], [8; 32]].concat()).unwrap(),
    };
    for (name, run) in runs {
        let odd: &[usize] = if name.starts_with("XTS") {
            &[0, 3]
        } else {
            &[0]
        };
        let lengths = (1..=5).flat_map(|blocks| odd.iter().map(move |odd| 16 * blocks + odd));
        for len in lengths {
            let mut data = vec![9; len];
            let registers = after(&mut Call {
                run,
                key: &key,
                iv: [5; 16],
                data: &mut data,
            });
            for (number, register) in registers.iter().enumerate() {
                assert!(
                    *register == [0; 16] || *register == [0xff; 16],
                    "{name}, {len} bytes: xmm{number} has {register:x?}"
                );
            }
            assert!(registers.contains(&[0; 16]), "{name}: nothing ran");
            assert_ne!(data, vec![9; len]);
        }
    }
}
