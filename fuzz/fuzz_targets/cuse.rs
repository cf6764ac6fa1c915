//! `/dev/crypto` against hostile programs: sound requests with damaged structures, memory that
//! changes while a request is served, messages with any bytes. Whatever came before, a sound
//! request is served rightly, and no reply breaks the kernel's protocol.
#![no_main]

use std::sync::OnceLock;

use arbitrary::Arbitrary;
use cipherlane_core::{Config, Framework};
use cipherlane_device::cuse::hostile::{BASE, Program};
use cipherlane_drivers::cryptodev::header::{
    CIOCASYMFEAT, CIOCAUTHCRYPT, CIOCCRYPT, CIOCFSESSION, CIOCGSESSINFO, CIOCGSESSION, CryptAuthOp,
    CryptOp, SessionOp,
};
use libfuzzer_sys::fuzz_target;

/// NIST SP 800-38A, F.2.1, the first block.
const KEY: [u8; 16] = 0x2b7e151628aed2a6abf7158809cf4f3cu128.to_be_bytes();
const IV: [u8; 16] = 0x000102030405060708090a0b0c0d0e0fu128.to_be_bytes();
const PLAIN: [u8; 16] = 0x6bc1bee22e409f96e93d7e117393172au128.to_be_bytes();
const CIPHER: [u8; 16] = 0x7649abac8119b246cee98e9b12e9197du128.to_be_bytes();

const STRUCTURE: usize = 0;
const DATA: usize = 0x1000;

#[derive(Arbitrary, Debug)]
enum Step {
    Open {
        cipher: u8,
        mac: u8,
        key_len: u8,
        mac_key_len: u8,
    },
    Crypt {
        session: u8,
        op: bool,
        flags: u8,
        len: u16,
        has_iv: bool,
        damage: Vec<(u8, u8)>,
    },
    AuthCrypt {
        session: u8,
        op: bool,
        flags: u8,
        len: u16,
        head: u8,
        behind: u8,
        tag_len: u8,
        damage: Vec<(u8, u8)>,
    },
    Other {
        command: u8,
        structure: Vec<u8>,
    },
    Memory {
        at: u16,
        bytes: Vec<u8>,
    },
    Reopen,
    Message(Vec<u8>),
}

fn framework() -> &'static Framework {
    static FRAMEWORK: OnceLock<Framework> = OnceLock::new();
    FRAMEWORK.get_or_init(|| {
        let config = Config {
            force: Some("software".to_owned()),
            ..Config::default()
        };
        cipherlane_drivers::framework(config).expect("the usual drivers")
    })
}

/// Opens a session; its number, if there is one.
fn open(program: &mut Program, wanted: SessionOp) -> Option<u32> {
    program.write(STRUCTURE, &wanted.write());
    program.ioctl(CIOCGSESSION, BASE, |_| {}).ok()?;
    Some(SessionOp::read(&program.read(STRUCTURE, SessionOp::SIZE))?.ses)
}

/// Carries a request; bytes of the structure change after the device has read it.
fn carry(program: &mut Program, command: u32, structure: &[u8], damage: &[(u8, u8)]) {
    program.write(STRUCTURE, structure);
    let mut questions = 0;
    let _ = program.ioctl(command, BASE, |program| {
        questions += 1;
        let (at, byte) = match damage.get(questions) {
            Some(damage) => *damage,
            None => return,
        };
        program.write(usize::from(at) % structure.len(), &[byte]);
    });
}

fuzz_target!(|steps: Vec<Step>| {
    let mut program = Program::new(framework());
    let mut sessions: Vec<u32> = Vec::new();
    for step in steps.into_iter().take(200) {
        let session = |index: u8| {
            let index = usize::from(index);
            let known = sessions.get(index % (sessions.len() + 1));
            known.copied().unwrap_or(index as u32)
        };
        match step {
            Step::Open {
                cipher,
                mac,
                key_len,
                mac_key_len,
            } => sessions.extend(open(
                &mut program,
                SessionOp {
                    cipher: cipher.into(),
                    mac: mac.into(),
                    keylen: key_len.into(),
                    key: BASE + DATA,
                    mackeylen: mac_key_len.into(),
                    mackey: BASE + DATA,
                    ..SessionOp::default()
                },
            )),
            Step::Crypt {
                session: index,
                op,
                flags,
                len,
                has_iv,
                damage,
            } => {
                let asked = CryptOp {
                    ses: session(index),
                    op: op.into(),
                    flags: flags.into(),
                    len: len.into(),
                    src: BASE + DATA,
                    dst: BASE + DATA,
                    mac: BASE + 0x200,
                    iv: if has_iv { BASE + 0x100 } else { 0 },
                    ..CryptOp::default()
                };
                carry(&mut program, CIOCCRYPT, &asked.write(), &damage);
            }
            Step::AuthCrypt {
                session: index,
                op,
                flags,
                len,
                head,
                behind,
                tag_len,
                damage,
            } => {
                let (len, head) = (u32::from(len), usize::from(head));
                let asked = CryptAuthOp {
                    ses: session(index),
                    op: op.into(),
                    flags: flags.into(),
                    len,
                    auth_len: len + head as u32 + u32::from(behind),
                    auth_src: BASE + DATA,
                    src: BASE + DATA + head,
                    dst: BASE + DATA + head,
                    tag: BASE + 0x200,
                    tag_len: tag_len.into(),
                    iv: BASE + 0x100,
                    iv_len: 12,
                };
                carry(&mut program, CIOCAUTHCRYPT, &asked.write(), &damage);
            }
            Step::Other { command, structure } => {
                let commands = [
                    CIOCGSESSION,
                    CIOCFSESSION,
                    CIOCCRYPT,
                    CIOCASYMFEAT,
                    CIOCGSESSINFO,
                    CIOCAUTHCRYPT,
                    u32::from(command),
                ];
                let command = commands[usize::from(command) % commands.len()];
                program.write(STRUCTURE, &structure);
                let _ = program.ioctl(command, BASE, |_| {});
            }
            Step::Memory { at, bytes } => program.write(at.into(), &bytes),
            Step::Reopen => {
                program.reopen();
                sessions.clear();
            }
            Step::Message(bytes) => {
                let _ = program.message(&bytes);
            }
        }
    }
    program.close_others();
    program.write(DATA, &KEY);
    let sound = SessionOp {
        cipher: 11,
        keylen: 16,
        key: BASE + DATA,
        ..SessionOp::default()
    };
    let ses = open(&mut program, sound).expect("a sound session");
    program.write(DATA, &PLAIN);
    program.write(DATA + 16, &IV);
    let asked = CryptOp {
        ses,
        len: 16,
        src: BASE + DATA,
        dst: BASE + DATA,
        iv: BASE + DATA + 16,
        ..CryptOp::default()
    };
    program.write(STRUCTURE, &asked.write());
    assert_eq!(program.ioctl(CIOCCRYPT, BASE, |_| {}), Ok(()));
    assert_eq!(program.read(DATA, 16), CIPHER);
});
