//! What one operation is, and all the cells to be measured.

use cipherlane_core::{Algorithm, Direction, Kind};
use cipherlane_measure::record::Case;

use super::asked::Asked;
use super::lineup::Lineup;
use crate::failure::Failure;
use crate::units;

/// An operation: a batch of requests of one size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) algorithm: &'static Algorithm,
    pub(crate) direction: Direction,
    /// Bytes of a request.
    pub(crate) size: usize,
    /// Requests.
    pub(crate) batch: usize,
}

/// What is measured at a time, by all drivers in turn.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// The algorithm's place among those asked for.
    pub(super) choice: usize,
    pub(super) key_bits: u32,
    pub(super) size: usize,
    pub(super) threads: usize,
    /// Batches under way; `None` for a caller that waits.
    pub(super) depth: Option<usize>,
    /// Microseconds between calls.
    pub(super) pause: Option<u64>,
    pub(super) work: Work,
}

/// The cells, and what was left out.
#[derive(Debug, Default)]
pub(super) struct Cells {
    pub(super) cells: Vec<Cell>,
    pub(super) notes: Vec<String>,
}

impl Work {
    /// Bytes of additional data: SPI and sequence number, as in ESP.
    pub(super) fn aad_len(self) -> usize {
        self.algorithm.aad.fit(8)
    }

    /// Whether a kept ciphertext is decrypted to memory beside it.
    pub(super) fn keeps_ciphertext(self) -> bool {
        self.algorithm.kind == Kind::Aead && self.direction == Direction::Decrypt
    }

    /// Whether tags have to be right beforehand.
    pub(super) fn needs_tags(self) -> bool {
        !self.algorithm.tags.is_empty() && self.direction == Direction::Decrypt
    }

    /// Whether every operation has another IV.
    pub(super) fn has_fresh_ivs(self) -> bool {
        self.algorithm.iv_len > 0 && !self.keeps_ciphertext()
    }

    /// An IV, padded with zeros, from a number that no other request has. One of 12 bytes is a salt and
    /// that number, as for packets of ESP (RFC 4106) and records of TLS. Of others the first bit stays
    /// clear, as MGM's nonces have none.
    pub(super) fn iv(self, serial: u64) -> [u8; 16] {
        const SALT: [u8; 4] = [0x5a, 0xe5, 0x3c, 0xc3];
        let mut iv = [0; 16];
        if self.algorithm.iv_len == 12 {
            iv[..4].copy_from_slice(&SALT);
            iv[4..12].copy_from_slice(&serial.to_be_bytes());
        } else {
            let serial = u128::from(serial);
            iv = (serial & 0x7f | serial >> 7 << 8).to_le_bytes();
        }
        iv
    }

    /// Bytes that a caller needs with this number of batches.
    fn memory(self, batches: usize) -> usize {
        let copies = if self.keeps_ciphertext() { 2 } else { 1 };
        let bytes = self.size.saturating_mul(self.batch);
        bytes.saturating_mul(batches.saturating_mul(copies))
    }

    /// What is done, in the words of a record.
    pub(crate) fn case(self, keybits: u32, threads: usize, depth: Option<usize>) -> Case {
        Case {
            algorithm: self.algorithm.name.to_owned(),
            keybits,
            direction: match self.direction {
                Direction::Encrypt => "encrypt".to_owned(),
                Direction::Decrypt => "decrypt".to_owned(),
            },
            batch: self.batch as u64,
            threads,
            depth: depth.map(|depth| depth as u64),
            pause_us: None,
        }
    }

    /// Whether the algorithm takes requests of this size.
    fn is_taken(self) -> bool {
        let algorithm = self.algorithm;
        self.size.is_multiple_of(algorithm.block)
            && self.size >= algorithm.min_len
            && self.size as u64 <= algorithm.max_len
    }
}

impl Cell {
    pub(super) fn case(&self) -> Case {
        Case {
            pause_us: self.pause,
            ..self.work.case(self.key_bits, self.threads, self.depth)
        }
    }
}

/// All cells, those of one case together. At most half of the machine's `memory` is used.
pub(super) fn cells(asked: &Asked, lineup: &Lineup, memory: Option<u64>) -> Result<Cells, Failure> {
    let limit = memory.map_or(usize::MAX, |bytes| (bytes / 2) as usize);
    let mut cells = Cells::default();
    for (place, choice) in asked.choices.iter().enumerate() {
        if lineup.sessions(place).is_empty() {
            continue;
        }
        let algorithm = choice.algorithm;
        let work = |size, batch| Work {
            algorithm,
            direction: asked.direction,
            size,
            batch,
        };
        let (taken, refused): (Vec<usize>, Vec<usize>) = asked
            .sizes
            .iter()
            .partition(|&&size| work(size, 1).is_taken());
        if !refused.is_empty() {
            cells.notes.push(refusal(algorithm, &refused));
        }
        for (depth, pause) in callers(asked) {
            for &threads in &asked.threads {
                for &batch in &asked.batches {
                    for &size in &taken {
                        let work = work(size, batch);
                        let bytes = work.memory(depth.unwrap_or(1)).saturating_mul(threads);
                        if bytes > limit {
                            cells.notes.push(format!(
                                "{}: batches of {batch} requests of {} by {threads} callers \
                                 are left out: they take more than half of the memory",
                                algorithm.name,
                                units::size(size as u64)
                            ));
                            continue;
                        }
                        cells.cells.push(Cell {
                            choice: place,
                            key_bits: algorithm.key_bits(choice.key_len),
                            size,
                            threads,
                            depth,
                            pause,
                            work,
                        });
                    }
                }
            }
        }
    }
    match cells.cells.is_empty() {
        true => Err(Failure::Usage(format!(
            "nothing is left to measure: {}",
            cells.notes.join("; ")
        ))),
        false => Ok(cells),
    }
}

/// Every kind of caller: how many batches it has under way, and how long it pauses. One that does
/// not wait has no pauses.
fn callers(asked: &Asked) -> Vec<(Option<usize>, Option<u64>)> {
    let of = |&depth: &Option<usize>| match depth {
        None => asked.pauses.iter().map(|&pause| (None, pause)).collect(),
        depth => vec![(depth, None)],
    };
    asked.depths.iter().flat_map(of).collect()
}

fn refusal(algorithm: &Algorithm, sizes: &[usize]) -> String {
    let sizes: Vec<_> = sizes.iter().map(|&size| units::size(size as u64)).collect();
    let mut takes = Vec::new();
    if algorithm.block > 1 {
        takes.push(format!("multiples of {} bytes", algorithm.block));
    }
    if algorithm.min_len > 0 {
        takes.push(format!("{} bytes or more", algorithm.min_len));
    }
    if takes.is_empty() {
        takes.push(format!("at most {} bytes", algorithm.max_len));
    }
    format!(
        "{} is left out at {}: it takes {}",
        algorithm.name,
        sizes.join(", "),
        takes.join(" and ")
    )
}
