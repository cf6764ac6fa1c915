//! Programs of all sorts against the device.

use std::sync::OnceLock;

use cipherlane_core::{Algorithm, Config, KnownAnswer};
use cipherlane_drivers::cryptodev::header::*;

use super::*;

const STRUCTURE: usize = 0;
const KEY: usize = 0x100;
const MAC_KEY: usize = 0x200;
const IV: usize = 0x400;
const TAG: usize = 0x500;
const AAD: usize = 0x1000;
const DATA: usize = 0x2000;
const OUT: usize = 0x8000;

const EBADMSG: i32 = 74;
const EINVAL: i32 = 22;
const EMFILE: i32 = 24;
const EMSGSIZE: i32 = 90;
const EFAULT: i32 = 14;

fn framework() -> &'static Framework {
    static FRAMEWORK: OnceLock<Framework> = OnceLock::new();
    FRAMEWORK.get_or_init(|| cipherlane_drivers::framework(Config::default()).unwrap())
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}

fn answers(name: &str) -> &'static [KnownAnswer] {
    Algorithm::find(name).unwrap().known_answers
}

/// Opens a session; its number.
fn open(
    program: &mut Program,
    cipher: u32,
    key: &[u8],
    mac: u32,
    mac_key: &[u8],
) -> Result<u32, i32> {
    program.write(KEY, key);
    program.write(MAC_KEY, mac_key);
    let wanted = SessionOp {
        cipher,
        mac,
        keylen: key.len() as u32,
        key: BASE + KEY,
        mackeylen: mac_key.len() as u32,
        mackey: BASE + MAC_KEY,
        ..SessionOp::default()
    };
    program.write(STRUCTURE, &wanted.write());
    program.ioctl(CIOCGSESSION, BASE + STRUCTURE, |_| {})?;
    Ok(SessionOp::read(&program.read(STRUCTURE, SessionOp::SIZE))
        .unwrap()
        .ses)
}

fn crypt(program: &mut Program, asked: CryptOp) -> Result<(), i32> {
    program.write(STRUCTURE, &asked.write());
    program.ioctl(CIOCCRYPT, BASE + STRUCTURE, |_| {})
}

fn auth_crypt(program: &mut Program, asked: CryptAuthOp) -> Result<CryptAuthOp, i32> {
    program.write(STRUCTURE, &asked.write());
    program.ioctl(CIOCAUTHCRYPT, BASE + STRUCTURE, |_| {})?;
    Ok(CryptAuthOp::read(&program.read(STRUCTURE, CryptAuthOp::SIZE)).unwrap())
}

fn request(ses: u32, op: u16, len: usize) -> CryptOp {
    CryptOp {
        ses,
        op,
        len: len as u32,
        src: BASE + DATA,
        dst: BASE + OUT,
        mac: BASE + TAG,
        iv: BASE + IV,
        ..CryptOp::default()
    }
}

#[test]
fn ciphers_and_macs_give_published_answers() {
    let mut program = Program::new(framework());
    let mut count = 0;
    for (number, name) in CIPHERS
        .iter()
        .filter(|(number, _)| *number != CRYPTO_AES_GCM)
    {
        for known in answers(name) {
            program.reopen();
            let ses = open(&mut program, *number, &bytes(known.key), 0, &[]).unwrap();
            let (plain, sealed) = (bytes(known.plaintext), bytes(known.ciphertext));
            program.write(IV, &bytes(known.iv));
            for (op, input, output) in [
                (COP_ENCRYPT, &plain, &sealed),
                (COP_DECRYPT, &sealed, &plain),
            ] {
                program.write(DATA, input);
                crypt(&mut program, request(ses, op, input.len())).unwrap();
                assert_eq!(
                    program.read(OUT, output.len()),
                    *output,
                    "{name}, {}",
                    known.source
                );
            }
            count += 1;
        }
    }
    for (number, name) in MACS {
        for known in answers(name) {
            program.reopen();
            let ses = open(&mut program, 0, &[], number, &bytes(known.key)).unwrap();
            let message = bytes(known.plaintext);
            program.write(DATA, &message);
            crypt(&mut program, request(ses, COP_ENCRYPT, message.len())).unwrap();
            let tag = bytes(known.tag);
            assert_eq!(
                program.read(TAG, tag.len()),
                tag,
                "{name}, {}",
                known.source
            );
            count += 1;
        }
    }
    assert!(count > 8);
}

#[test]
fn a_cipher_goes_on_where_it_ended() {
    let mut program = Program::new(framework());
    let known = &answers("cbc(aes)")[0];
    let (plain, sealed) = (bytes(known.plaintext), bytes(known.ciphertext));
    assert!(plain.len() > 16, "more than one block");
    for (op, input, output) in [
        (COP_ENCRYPT, &plain, &sealed),
        (COP_DECRYPT, &sealed, &plain),
    ] {
        let ses = open(&mut program, 11, &bytes(known.key), 0, &[]).unwrap();
        // Each block by itself: with the IV written back, or kept by the session.
        for keeps in [false, true] {
            program.write(IV, &bytes(known.iv));
            for (number, block) in input.chunks(16).enumerate() {
                program.write(DATA, block);
                let mut asked = request(ses, op, 16);
                match keeps {
                    true if number > 0 => asked.iv = 0,
                    true => {}
                    false => asked.flags = COP_FLAG_WRITE_IV,
                }
                crypt(&mut program, asked).unwrap();
                assert_eq!(program.read(OUT, 16), output[16 * number..][..16]);
            }
        }
    }
}

#[test]
fn an_aead_gives_published_answers_and_forgeries_write_nothing() {
    let mut program = Program::new(framework());
    for known in answers("gcm(aes)") {
        program.reopen();
        let ses = open(&mut program, CRYPTO_AES_GCM, &bytes(known.key), 0, &[]).unwrap();
        let (plain, aad) = (bytes(known.plaintext), bytes(known.aad));
        let sealed = [bytes(known.ciphertext), bytes(known.tag)].concat();
        program.write(IV, &bytes(known.iv));
        program.write(AAD, &aad);
        program.write(DATA, &plain);
        let asked = CryptAuthOp {
            ses,
            len: plain.len() as u32,
            auth_len: aad.len() as u32,
            auth_src: BASE + AAD,
            src: BASE + DATA,
            dst: BASE + OUT,
            iv: BASE + IV,
            iv_len: 12,
            ..CryptAuthOp::default()
        };
        let told = auth_crypt(&mut program, asked).unwrap();
        assert_eq!((told.len as usize, told.tag_len), (sealed.len(), 16));
        assert_eq!(told.tag, BASE + OUT + plain.len());
        assert_eq!(program.read(OUT, sealed.len()), sealed, "{}", known.source);
        let back = CryptAuthOp {
            op: COP_DECRYPT,
            len: sealed.len() as u32,
            ..asked
        };
        program.write(DATA, &sealed);
        let told = auth_crypt(&mut program, back).unwrap();
        assert_eq!(told.len as usize, plain.len());
        assert_eq!(program.read(OUT, plain.len()), plain);
        // A shorter tag is its front.
        let short = CryptAuthOp {
            tag_len: 12,
            len: back.len - 4,
            ..back
        };
        auth_crypt(&mut program, short).unwrap();
        program.write(OUT, &[0x77; 64]);
        for at in [0, sealed.len() - 1] {
            let mut forged = sealed.clone();
            forged[at] ^= 1;
            program.write(DATA, &forged);
            assert_eq!(auth_crypt(&mut program, back), Err(EBADMSG));
            assert_eq!(program.read(OUT, 64), [0x77; 64]);
        }
        for wrong in [
            CryptAuthOp { iv: 0, ..back },
            CryptAuthOp { iv_len: 16, ..back },
            CryptAuthOp { tag_len: 3, ..back },
            CryptAuthOp { len: 15, ..back },
            CryptAuthOp { op: 2, ..back },
            CryptAuthOp {
                flags: COP_FLAG_AEAD_TLS_TYPE,
                ..back
            },
        ] {
            assert_eq!(auth_crypt(&mut program, wrong), Err(EINVAL), "{wrong:?}");
        }
    }
    assert!(program.status().refused["wrong tag"] >= 2);
}

#[test]
fn srtps_way_encrypts_then_authenticates() {
    let mut program = Program::new(framework());
    let (key, mac_key) = ([7; 16], [9; 20]);
    let ses = open(&mut program, CRYPTO_AES_CTR, &key, 18, &mac_key).unwrap();
    let (head, plain, behind) = ([1; 12], [2; 100], [3; 4]);
    program.write(DATA, &[&head[..], &plain, &behind].concat());
    program.write(IV, &[5; 16]);
    let asked = CryptAuthOp {
        ses,
        flags: COP_FLAG_AEAD_SRTP_TYPE,
        len: 100,
        auth_len: 116,
        auth_src: BASE + DATA,
        src: BASE + DATA + 12,
        dst: BASE + DATA + 12,
        tag: BASE + TAG,
        tag_len: 10,
        iv: BASE + IV,
        ..CryptAuthOp::default()
    };
    auth_crypt(&mut program, asked).unwrap();
    // By the framework itself, a call for each.
    let mut expected = plain;
    let cipher = framework().session("ctr(aes)", &key).unwrap();
    cipher
        .open()
        .unwrap()
        .encrypt(&[5; 16], &mut expected)
        .unwrap();
    let covered = [&head[..], &expected, &behind].concat();
    assert_eq!(program.read(DATA, 116), covered);
    let mut tag = [0; 32];
    let mac = framework().session("hmac(sha256)", &mac_key).unwrap();
    mac.open().unwrap().mac(&covered, &mut tag).unwrap();
    assert_eq!(program.read(TAG, 10), tag[..10]);

    let back = CryptAuthOp {
        op: COP_DECRYPT,
        ..asked
    };
    program.write(TAG, &[tag[0] ^ 1]);
    assert_eq!(auth_crypt(&mut program, back), Err(EBADMSG));
    assert_eq!(program.read(DATA, 116), covered, "nothing is decrypted");
    program.write(TAG, &tag[..1]);
    auth_crypt(&mut program, back).unwrap();
    assert_eq!(program.read(DATA + 12, 100), plain);
    for wrong in [
        CryptAuthOp { dst: 0, ..asked },
        CryptAuthOp {
            auth_len: 111,
            ..asked
        },
        CryptAuthOp {
            auth_src: BASE + DATA + 13,
            ..asked
        },
    ] {
        assert_eq!(auth_crypt(&mut program, wrong), Err(EINVAL), "{wrong:?}");
    }
}

#[test]
fn what_is_not_served_is_refused_by_name() {
    let mut program = Program::new(framework());
    let key = [1; 16];
    for (cipher, key, mac) in [
        (0, &key[..0], 0),
        (1, &key[..8], 0),
        (11, &key[..15], 0),
        (CRYPTO_AES_GCM, &key[..], 18),
        (11, &key[..], 14),
        (11, &[1; 65][..], 0),
    ] {
        assert_eq!(open(&mut program, cipher, key, mac, &[]), Err(EINVAL));
    }
    let ses = open(&mut program, 11, &key, 0, &[]).unwrap();
    let sound = request(ses, COP_ENCRYPT, 16);
    for (wrong, error) in [
        (
            CryptOp {
                ses: ses + 1,
                ..sound
            },
            EINVAL,
        ),
        (CryptOp { op: 2, ..sound }, EINVAL),
        (CryptOp { len: 17, ..sound }, EINVAL),
        (
            CryptOp {
                flags: COP_FLAG_UPDATE,
                ..sound
            },
            EINVAL,
        ),
        (CryptOp { src: 8, ..sound }, EFAULT),
        (
            CryptOp {
                dst: usize::MAX,
                ..sound
            },
            EFAULT,
        ),
        (
            CryptOp {
                len: 0xffff_fff0,
                ..sound
            },
            EMSGSIZE,
        ),
        (
            CryptOp {
                len: MAX_DATA as u32,
                ..sound
            },
            EMSGSIZE,
        ),
    ] {
        assert_eq!(crypt(&mut program, wrong), Err(error), "{wrong:?}");
    }
    crypt(&mut program, sound).unwrap();
    assert_eq!(program.ioctl(0xffff_ffff, BASE, |_| {}), Err(EINVAL));
    // A session is closed once, and goes with its file.
    program.write(STRUCTURE, &ses.to_ne_bytes());
    assert_eq!(program.ioctl(CIOCFSESSION, BASE, |_| {}), Ok(()));
    assert_eq!(program.ioctl(CIOCFSESSION, BASE, |_| {}), Err(EINVAL));
    for number in 0..10 {
        let opened = open(&mut program, 11, &key, 0, &[]);
        assert_eq!(opened.err(), (number >= 8).then_some(EMFILE));
    }
    assert_eq!(program.status().sessions, 8);
    program.reopen();
    let status = program.status();
    assert_eq!((status.sessions, status.files), (0, 1));
    let files = (0..5).filter(|_| {
        let reply = program.message(&kernel::open()).unwrap();
        kernel::opened(&reply).is_some()
    });
    assert_eq!(files.count(), 3, "four at most, and one is the program's");
}

#[test]
fn memory_that_changes_under_a_request_is_noticed() {
    let mut program = Program::new(framework());
    let ses = open(&mut program, 11, &[1; 16], 0, &[]).unwrap();
    let sound = request(ses, COP_ENCRYPT, 64);
    for change in [
        CryptOp { len: 32, ..sound },
        CryptOp { len: 128, ..sound },
        CryptOp {
            len: u32::MAX,
            ..sound
        },
        CryptOp { iv: 0, ..sound },
        CryptOp {
            ses: ses + 1,
            ..sound
        },
    ] {
        program.write(STRUCTURE, &sound.write());
        let mut questions = 0;
        let between = |program: &mut Program| {
            questions += 1;
            // The device has been given the structure, and has asked for what the structure names.
            if questions == 2 {
                program.write(STRUCTURE, &change.write());
            }
        };
        let ended = program.ioctl(CIOCCRYPT, BASE + STRUCTURE, between);
        assert!(
            matches!(ended, Err(EINVAL | EMSGSIZE)),
            "{change:?}: {ended:?}"
        );
    }
}

#[test]
fn sessions_tell_what_they_are() {
    let mut program = Program::new(framework());
    let ses = open(&mut program, 21, &[1; 16], 20, &[1; 64]).unwrap();
    let asked = SessionInfo {
        ses,
        ..SessionInfo::default()
    };
    program.write(STRUCTURE, &asked.write());
    program.ioctl(CIOCGSESSINFO, BASE, |_| {}).unwrap();
    let told = SessionInfo::read(&program.read(STRUCTURE, SessionInfo::SIZE)).unwrap();
    assert_eq!(told.cipher_name.text(), "ctr(aes)");
    assert_eq!(told.cipher_driver.text(), "ctr-aes-cipherlane");
    assert_eq!(told.hash_driver.text(), "hmac-sha512-cipherlane");
    assert_eq!((told.flags, told.alignmask), (0, 0));
    program.write(STRUCTURE, &[0xff; 4]);
    program.ioctl(CIOCASYMFEAT, BASE, |_| {}).unwrap();
    assert_eq!(program.read(STRUCTURE, 4), [0; 4]);
}
