//! What is asked of a driver for one vector, and how the answer is judged.

use cipherlane_core::{Algorithm, Direction, Kind, OwnedRequest, Payload, Status};

use super::case::{Case, Padding, Verdict};
use super::memory::{self, Shape};

/// One request to be made of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trial {
    /// Encrypt (or compute a MAC), or decrypt (or verify).
    pub(crate) direction: Direction,
    /// How its payload lies in memory.
    pub(crate) shape: Shape,
    /// Bit of the tag that is turned over before decrypting, to see it refused.
    flipped: Option<usize>,
}

/// The trials of a vector, each to be made alone and in company.
pub(crate) fn trials(case: &Case, algorithm: &Algorithm) -> Vec<Trial> {
    let trial = |direction, shape, flipped| Trial {
        direction,
        shape,
        flipped,
    };
    let shapes: &[Shape] = match algorithm.kind {
        Kind::Mac => &[Shape::Apart, Shape::Scattered],
        _ => &Shape::ALL,
    };
    let mut trials = Vec::new();
    for &shape in shapes {
        if case.verdict == Verdict::Accept {
            trials.push(trial(Direction::Encrypt, shape, None));
        }
        trials.push(trial(Direction::Decrypt, shape, None));
    }
    if case.verdict == Verdict::Accept && !case.tag.is_empty() {
        // Another bit for each vector, so that over a file every place of the tag has its turn.
        let bit = case.line % (case.tag.len() * 8);
        trials.extend(
            shapes
                .iter()
                .map(|&s| trial(Direction::Decrypt, s, Some(bit))),
        );
    }
    trials
}

impl Trial {
    /// Memory with the input of the vector, as this trial wants it.
    pub(crate) fn prepare(&self, case: &Case, algorithm: &Algorithm) -> OwnedRequest {
        let input = match (algorithm.kind, self.direction) {
            (Kind::Mac, _) => case.plaintext.clone(),
            (_, Direction::Encrypt) => pad(case),
            (_, Direction::Decrypt) => case.ciphertext.clone(),
        };
        let payload = match (algorithm.kind, self.shape) {
            (Kind::Mac, Shape::Scattered) => memory::mac_scattered(&input),
            (Kind::Mac, _) => Payload::Mac(input),
            (_, shape) => shape.lay_out(&input),
        };
        let mut request = OwnedRequest::new(payload);
        request.iv.clone_from(&case.iv);
        request.aad.clone_from(&case.aad);
        request.tag.clone_from(&case.tag);
        match (self.direction, self.flipped) {
            (Direction::Encrypt, _) => request.tag.fill(0),
            (Direction::Decrypt, Some(bit)) => request.tag[bit / 8] ^= 1 << (bit % 8),
            (Direction::Decrypt, None) => {}
        }
        request
    }

    /// Judges what became of a request; `Err` says in words what is wrong.
    pub(crate) fn judge(
        &self,
        case: &Case,
        algorithm: &Algorithm,
        request: &OwnedRequest,
        status: Status,
    ) -> Result<(), String> {
        let output = memory::output(request);
        let reject = case.verdict == Verdict::Reject || self.flipped.is_some();
        if reject && case.padding == Padding::Pkcs7 {
            return match (status, unpad(&output)) {
                (Status::Done, Some(_)) => Err("wrong padding was taken for right".to_owned()),
                (Status::Done, None) => Ok(()),
                (other, _) => Err(format!("ended as {other:?}")),
            };
        }
        if reject {
            return judge_refusal(case, algorithm, &output, status);
        }
        if status != Status::Done {
            return Err(format!("ended as {status:?}"));
        }
        match (self.direction, algorithm.kind) {
            (Direction::Encrypt, Kind::Mac) => same("MAC", &request.tag, &case.tag),
            (Direction::Encrypt, _) => {
                same("ciphertext", &output, &case.ciphertext)?;
                same("tag", &request.tag, &case.tag)
            }
            (Direction::Decrypt, Kind::Mac) => Ok(()),
            (Direction::Decrypt, _) if case.padding == Padding::Pkcs7 => match unpad(&output) {
                Some(plaintext) => same("plaintext", plaintext, &case.plaintext),
                None => Err("right padding was taken for wrong".to_owned()),
            },
            (Direction::Decrypt, _) => same("plaintext", &output, &case.plaintext),
        }
    }

    /// The trial in words, for messages.
    pub(crate) fn words(&self) -> String {
        let direction = match self.direction {
            Direction::Encrypt => "encrypting",
            Direction::Decrypt => "decrypting",
        };
        let flipped = match self.flipped {
            Some(bit) => format!(" with bit {bit} of the tag turned over"),
            None => String::new(),
        };
        format!("{direction} {}{flipped}", self.shape.words())
    }
}

/// A vector to be rejected is refused for its parameters, or for its tag with the output wiped.
fn judge_refusal(
    case: &Case,
    algorithm: &Algorithm,
    output: &[u8],
    status: Status,
) -> Result<(), String> {
    match status {
        Status::Done | Status::Pending | Status::Untouched | Status::Failed => {
            Err(format!("not rejected: ended as {status:?}"))
        }
        Status::BadTag if output.iter().any(|&byte| byte != 0) => {
            Err("the output was not wiped".to_owned())
        }
        Status::BadTag => Ok(()),
        Status::IvBits => Ok(()),
        // Rejected before the tag was looked at: right only where the parameters are wrong.
        other if case.iv.len() == algorithm.iv_len => Err(format!(
            "rejected for another reason than its tag: {other:?}"
        )),
        _ => Ok(()),
    }
}

fn same(what: &str, given: &[u8], expected: &[u8]) -> Result<(), String> {
    if given == expected {
        return Ok(());
    }
    let at = given.iter().zip(expected).position(|(g, e)| g != e);
    Err(match at {
        Some(at) if given.len() == expected.len() => format!(
            "wrong {what}: byte {at} of {} is {:02x}, not {:02x}",
            given.len(),
            given[at],
            expected[at]
        ),
        _ => format!(
            "wrong {what}: {} bytes, not {}",
            given.len(),
            expected.len()
        ),
    })
}

/// The plaintext with the padding that the vector wants (RFC 5652 section 6.3).
fn pad(case: &Case) -> Vec<u8> {
    let mut padded = case.plaintext.clone();
    if case.padding == Padding::Pkcs7 {
        let missing = 16 - padded.len() % 16;
        padded.resize(padded.len() + missing, missing as u8);
    }
    padded
}

/// The plaintext without its padding, if that is right.
fn unpad(padded: &[u8]) -> Option<&[u8]> {
    let added = usize::from(*padded.last()?);
    if !(1..=16).contains(&added) || added > padded.len() {
        return None;
    }
    let (plaintext, padding) = padded.split_at(padded.len() - added);
    padding
        .iter()
        .all(|&b| usize::from(b) == added)
        .then_some(plaintext)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn case(algorithm: &str) -> (Case, &'static Algorithm) {
        let mut case = Case::new(&Arc::from("f"), 3, "c".into(), algorithm);
        let algorithm = Algorithm::find(algorithm).unwrap();
        case.iv = vec![1; algorithm.iv_len];
        case.plaintext = vec![2; 16];
        case.ciphertext = vec![3; 16];
        case.tag = vec![4; algorithm.tag_len()];
        (case, algorithm)
    }

    fn decrypting(case: &Case, algorithm: &Algorithm, flipped: bool) -> Trial {
        *trials(case, algorithm)
            .iter()
            .find(|t| t.direction == Direction::Decrypt && t.flipped.is_some() == flipped)
            .unwrap()
    }

    #[test]
    fn both_directions_every_shape_and_a_turned_bit() {
        let (mut aead, algorithm) = case("gcm(aes)");
        assert_eq!(trials(&aead, algorithm).len(), 12);
        let turned = decrypting(&aead, algorithm, true).prepare(&aead, algorithm);
        assert_eq!(turned.tag[..2], [4 ^ 8, 4]);
        aead.verdict = Verdict::Reject;
        assert!(
            trials(&aead, algorithm)
                .iter()
                .all(|t| t.direction == Direction::Decrypt)
        );
        let (cipher, algorithm) = case("ctr(aes)");
        assert_eq!(trials(&cipher, algorithm).len(), 8);
    }

    #[test]
    fn the_judge_sees_wrong_bytes_tags_statuses_and_unwiped_output() {
        let (case, algorithm) = case("gcm(aes)");
        for trial in trials(&case, algorithm) {
            let mut request = trial.prepare(&case, algorithm);
            let judge = |r: &OwnedRequest, status| trial.judge(&case, algorithm, r, status);
            let message = judge(&request, Status::Done).unwrap_err();
            assert!(judge(&request, Status::Failed).is_err());
            if trial.flipped.is_some() {
                assert!(message.contains("not rejected"), "{message}");
                assert!(
                    judge(&request, Status::BadTag)
                        .unwrap_err()
                        .contains("not wiped")
                );
                request.payload = Payload::InPlace(vec![0; 16]);
                assert_eq!(judge(&request, Status::BadTag), Ok(()));
                assert!(judge(&request, Status::AadLength).is_err());
                continue;
            }
            assert!(judge(&request, Status::BadTag).is_err());
            let expected = match trial.direction {
                Direction::Encrypt => &case.ciphertext,
                Direction::Decrypt => &case.plaintext,
            };
            request.payload = Payload::InPlace(expected.clone());
            request.tag.clone_from(&case.tag);
            assert_eq!(judge(&request, Status::Done), Ok(()));
            if trial.direction == Direction::Encrypt {
                request.tag[15] ^= 1;
                let message = judge(&request, Status::Done).unwrap_err();
                assert_eq!(message, "wrong tag: byte 15 of 16 is 05, not 04");
            }
        }
    }

    #[test]
    fn wrong_parameters_may_be_refused_as_such() {
        let (mut case, algorithm) = case("gcm(aes)");
        case.verdict = Verdict::Reject;
        let trial = decrypting(&case, algorithm, false);
        let request = trial.prepare(&case, algorithm);
        assert!(
            trial
                .judge(&case, algorithm, &request, Status::IvLength)
                .is_err()
        );
        case.iv = Vec::new();
        assert_eq!(
            trial.judge(&case, algorithm, &request, Status::IvLength),
            Ok(())
        );
    }

    #[test]
    fn padding_is_added_and_judged_here() {
        let (mut case, algorithm) = case("cbc(aes)");
        case.padding = Padding::Pkcs7;
        assert_eq!(pad(&case).len(), 32);
        let trial = decrypting(&case, algorithm, false);
        let mut request = trial.prepare(&case, algorithm);
        request.payload = Payload::InPlace(pad(&case));
        assert_eq!(
            trial.judge(&case, algorithm, &request, Status::Done),
            Ok(())
        );
        case.verdict = Verdict::Reject;
        assert!(
            trial
                .judge(&case, algorithm, &request, Status::Done)
                .is_err()
        );
        for wrong in [&[][..], &[0; 16], &[17; 32], &[2, 1, 2], &[5, 5]] {
            request.payload = Payload::InPlace(wrong.to_vec());
            assert_eq!(
                trial.judge(&case, algorithm, &request, Status::Done),
                Ok(()),
                "{wrong:?}"
            );
        }
    }
}
