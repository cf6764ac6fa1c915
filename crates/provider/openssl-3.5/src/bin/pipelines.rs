//! What a pipeline of the provider gains over single messages of OpenSSL's own ciphers, in
//! the same libcrypto 3.5 and the same run. `CIPHERLANE_PROVIDER` names a release build.
//!
//! `pipelines [SECONDS]` measures each of the three ways for that number of seconds (1 unless
//! given).

use std::error::Error;
use std::time::Duration;

use cipherlane_measure::interleave::{Plan, measure};
use cipherlane_measure::machine::Machine;
use cipherlane_measure::record::Case;
use cipherlane_measure::recorder::Recorder;
use cipherlane_measure::subject::{Candidate, Failure};
use openssl_3_5::message::Message;
use openssl_3_5::pipeline::Pipeline;
use openssl_3_5::{Cipher, Lib, Refused};

const PIPES: usize = 16;
const LEN: usize = 1400;
/// Additional data of a GCM message: the header of a TLS 1.3 record.
const AAD: [u8; 5] = [23, 3, 3, 5, 0x88];

const DEFAULT: &str = "default, single";
const OURS: &str = "cipherlane, single";
const PIPELINE: &str = "cipherlane, pipeline";

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = std::env::args()
        .nth(1)
        .map_or(Ok(1.0), |text| text.parse())?;
    let plan = Plan {
        time: Duration::try_from_secs_f64(seconds)?,
        block: Duration::from_millis(5),
        ..Plan::default()
    };
    let (ours, default) = (Lib::ours(), Lib::theirs());
    let machine = Machine::detect();
    println!("{}, {}, {}", machine.cpu, machine.kernel, machine.date);
    println!("{PIPES} messages of {LEN} B under one key, a fresh IV each:\n");
    println!(
        "{:17} {:8} {:>15} {:>18} {:>20}  pipeline",
        "", "", DEFAULT, OURS, PIPELINE
    );
    for name in [
        "AES-128-GCM",
        "AES-256-GCM",
        "AES-128-CBC",
        "AES-256-CBC",
        "AES-128-CTR",
        "ChaCha20-Poly1305",
    ] {
        let (ours, default) = (ours.cipher(name), default.cipher(name));
        for direction in ["encrypt", "decrypt"] {
            let encrypt = direction == "encrypt";
            let candidates = [
                Candidate::new(DEFAULT, |_| single(&default, name, encrypt)),
                Candidate::new(OURS, |_| single(&ours, name, encrypt)),
                Candidate::new(PIPELINE, |_| pipeline(&ours, name, encrypt)),
            ];
            let measurement = measure(&plan, &candidates, |_| ())?;
            let case = Case {
                algorithm: name.to_owned(),
                keybits: 8 * ours.key_len() as u32,
                direction: direction.to_owned(),
                batch: PIPES as u64,
                threads: 1,
                depth: None,
                pause_us: None,
            };
            let mut recorder = Recorder::new(DEFAULT);
            recorder.add(&case, LEN as u64, &measurement);
            let record = recorder.finish(machine.clone());
            let ns = |name: &str| {
                let cell = record.cells.iter().find(|cell| cell.driver == name);
                cell.map_or(f64::NAN, |cell| 1e9 * LEN as f64 / cell.bytes_per_second)
            };
            let entry = record
                .crossovers
                .iter()
                .find(|entry| entry.driver == PIPELINE);
            let ratio = entry.map_or(f64::NAN, |entry| entry.ratios[0].ratio);
            println!(
                "{name:17} {direction:8} {:12.0} ns {:15.0} ns {:17.0} ns  x{ratio:.2}",
                ns(DEFAULT),
                ns(OURS),
                ns(PIPELINE),
            );
        }
    }
    Ok(())
}

fn failed(refused: Refused) -> Failure {
    refused.0.into()
}

/// What 16 messages are given: encrypting, other IVs each time; decrypting, what was
/// encrypted once.
struct Batch {
    aead: bool,
    encrypt: bool,
    key: Vec<u8>,
    ivs: [[u8; 16]; PIPES],
    iv_len: usize,
    sent: u64,
    input: Vec<Vec<u8>>,
    output: Vec<[u8; LEN + 16]>,
    tags: [[u8; 16]; PIPES],
}

impl Batch {
    fn new(cipher: &Cipher, name: &str, encrypt: bool) -> Result<Batch, Refused> {
        let len = match name.ends_with("CBC") {
            // There is no padding.
            true => LEN / 16 * 16,
            false => LEN,
        };
        let mut batch = Batch {
            aead: name.ends_with("GCM") || name.starts_with("ChaCha"),
            encrypt: true,
            key: vec![7; cipher.key_len()],
            ivs: [[0; 16]; PIPES],
            iv_len: cipher.iv_len(),
            sent: 0,
            input: vec![vec![0x5a; len]; PIPES],
            output: vec![[0; LEN + 16]; PIPES],
            tags: [[0; 16]; PIPES],
        };
        if !encrypt {
            batch.one_by_one(&mut batch.message(cipher)?)?;
            batch.encrypt = false;
            for (input, output) in batch.input.iter_mut().zip(&batch.output) {
                input.copy_from_slice(&output[..len]);
            }
        }
        Ok(batch)
    }

    fn message(&self, cipher: &Cipher) -> Result<Message, Refused> {
        let mut message = Message::new(cipher, self.encrypt, &self.key)?;
        message.set_padding(false);
        Ok(message)
    }

    fn pipeline(&self, cipher: &Cipher) -> Result<Pipeline, Refused> {
        let ivs = self.ivs.each_ref().map(|iv| &iv[..self.iv_len]);
        let mut pipeline = Pipeline::new(cipher, self.encrypt, &self.key, &ivs)?;
        pipeline.set_padding(false);
        Ok(pipeline)
    }

    fn next_ivs(&mut self) {
        for iv in self.ivs.iter_mut().filter(|_| self.encrypt) {
            self.sent += 1;
            iv[..8].copy_from_slice(&self.sent.to_be_bytes());
        }
    }

    fn one_by_one(&mut self, message: &mut Message) -> Result<(), Refused> {
        self.next_ivs();
        for i in 0..PIPES {
            message.begin(&self.ivs[i][..self.iv_len])?;
            if self.aead {
                message.aad(&AAD)?;
            }
            message.update(&self.input[i], &mut self.output[i])?;
            if self.aead && !self.encrypt {
                message.set_tag(&self.tags[i])?;
            }
            message.finish()?;
            if self.aead && self.encrypt {
                message.tag(&mut self.tags[i])?;
            }
        }
        Ok(())
    }

    fn together(&mut self, pipeline: &mut Pipeline) -> Result<(), Refused> {
        self.next_ivs();
        let ivs = self.ivs.each_ref().map(|iv| &iv[..self.iv_len]);
        pipeline.begin(self.encrypt, None, &ivs)?;
        if self.aead {
            pipeline.aad(&[&AAD[..]; PIPES])?;
        }
        let inputs: [&[u8]; PIPES] = std::array::from_fn(|i| &self.input[i][..]);
        pipeline.update(
            &inputs,
            self.output.iter_mut().map(|output| &mut output[..]),
        )?;
        if self.aead && !self.encrypt {
            pipeline.set_tags(&self.tags.each_ref().map(|tag| &tag[..]))?;
        }
        pipeline.finish(self.output.iter_mut().map(|output| &mut output[..16]))?;
        if self.aead && self.encrypt {
            pipeline.tags(self.tags.iter_mut().map(|tag| &mut tag[..]))?;
        }
        Ok(())
    }
}

fn single(
    cipher: &Cipher,
    name: &str,
    encrypt: bool,
) -> Result<impl FnMut(u64) -> Result<(), Failure>, Failure> {
    let mut batch = Batch::new(cipher, name, encrypt).map_err(failed)?;
    let mut message = batch.message(cipher).map_err(failed)?;
    Ok(move |operations| {
        (0..operations).try_for_each(|_| batch.one_by_one(&mut message).map_err(failed))
    })
}

fn pipeline(
    cipher: &Cipher,
    name: &str,
    encrypt: bool,
) -> Result<impl FnMut(u64) -> Result<(), Failure>, Failure> {
    let mut batch = Batch::new(cipher, name, encrypt).map_err(failed)?;
    let mut pipeline = batch.pipeline(cipher).map_err(failed)?;
    Ok(move |operations| {
        (0..operations).try_for_each(|_| batch.together(&mut pipeline).map_err(failed))
    })
}
