//! The requests that the accelerator would be given: sizes, and how often each comes.

use std::collections::BTreeMap;
use std::path::Path;

use cipherlane_core::Algorithm;

use crate::capture;
use crate::failure::Failure;
use crate::units;

/// Sizes where none are given: those of the published tables.
const SIZES: [usize; 8] = [16, 64, 256, 1024, 4096, 8192, 64 << 10, 450_000];
/// The simple Internet mix: sizes of IP packets, and how many of 12.
const IMIX: [(usize, u64); 3] = [(40, 7), (576, 4), (1500, 1)];
/// The largest request.
const LARGEST: usize = 64 << 20;

/// Sizes, and how often each comes.
#[derive(Debug)]
pub(super) struct Workload {
    /// A mix has a name; sizes that are only looked at one by one have none.
    pub(super) mix: Option<String>,
    /// Bytes, ascending, and the share of requests.
    pub(super) shares: Vec<(usize, f64)>,
}

impl Workload {
    /// From the words of `--workload`. Sizes are rounded up to what the algorithm takes, as
    /// padding would.
    pub(super) fn new(words: &[String], algorithm: &Algorithm) -> Result<Workload, Failure> {
        let (mix, sizes) = match words {
            [] => (None, SIZES.map(|size| (size, 1)).to_vec()),
            [word] if word == "imix" => (Some("IMIX".to_owned()), IMIX.to_vec()),
            [word] if is_file(word) => (Some(word.clone()), captured(Path::new(word))?),
            words => {
                let sizes = words.iter().map(|word| Ok((size(word)?, 1)));
                (None, sizes.collect::<Result<_, Failure>>()?)
            }
        };
        let mut counts = BTreeMap::new();
        for (size, count) in sizes {
            let padded = size
                .max(algorithm.min_len)
                .next_multiple_of(algorithm.block);
            *counts.entry(padded).or_insert(0) += count;
        }
        let all: u64 = counts.values().sum();
        let shares = counts.into_iter();
        Ok(Workload {
            mix,
            shares: shares
                .map(|(size, count)| (size, count as f64 / all as f64))
                .collect(),
        })
    }

    pub(super) fn longest(&self) -> usize {
        self.shares.last().map_or(0, |&(size, _)| size)
    }
}

/// Whether a word is meant as a file: sizes have no dots and slashes.
fn is_file(word: &str) -> bool {
    word.contains(['.', '/']) || Path::new(word).exists()
}

fn size(word: &str) -> Result<usize, Failure> {
    let refused = |why: String| Failure::Usage(format!("--workload {word}: {why}"));
    let size = units::parse_size(word)
        .map_err(|why| refused(format!("{why}; or 'imix', or a capture FILE.pcap")))?;
    match size {
        1..=LARGEST => Ok(size),
        _ => Err(refused(format!("give 1 to {LARGEST} bytes"))),
    }
}

/// The packets of a capture by length, those between two powers of two as one: their mean.
fn captured(path: &Path) -> Result<Vec<(usize, u64)>, Failure> {
    let packets = capture::read(path)?;
    if packets.is_empty() {
        return Err(Failure::Usage(format!(
            "'{}' holds no whole IP packet; capture with a longer snapshot length (tcpdump -s 0)",
            path.display()
        )));
    }
    let mut classes: BTreeMap<usize, (usize, u64)> = BTreeMap::new();
    for packet in packets {
        let (bytes, count) = classes.entry(packet.len().next_power_of_two()).or_default();
        *bytes += packet.len();
        *count += 1;
    }
    Ok(classes
        .into_values()
        .map(|(bytes, count)| (bytes.div_ceil(count as usize), count))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(words: &[&str]) -> Result<Workload, Failure> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        Workload::new(&words, Algorithm::find("cbc(aes)").unwrap())
    }

    #[test]
    fn sizes_are_padded_and_a_mix_has_its_shares() {
        let imix = shares(&["imix"]).unwrap();
        let sizes: Vec<usize> = imix.shares.iter().map(|&(size, _)| size).collect();
        assert_eq!(sizes, [48, 576, 1504]);
        assert!((imix.shares[0].1 - 7.0 / 12.0).abs() < 1e-9 && imix.mix.is_some());
        let sizes = shares(&["1K", "20", "30"]).unwrap();
        assert_eq!(sizes.shares.len(), 2, "20 and 30 both become 32");
        assert_eq!((sizes.longest(), sizes.mix), (1024, None));
        assert_eq!(shares(&[]).unwrap().shares.len(), SIZES.len());
    }

    #[test]
    fn what_is_no_workload_is_named() {
        for (words, named) in [
            (&["imax"][..], "imax"),
            (&["64", "imix"], "imix"),
            (&["0"], "--workload 0: give 1"),
            (&["65M"], "--workload 65M"),
            (&["none.pcap"], "none.pcap"),
        ] {
            let message = shares(words).unwrap_err().to_string();
            assert!(message.contains(named), "{message}");
        }
    }
}
