//! Why a request was refused or failed, in words.

use super::Inner;
use crate::algorithm::AadLengths;
use crate::request::{Request, Status};
use crate::{Error, OwnedRequest};

impl Inner {
    #[cold]
    pub(super) fn first_error(&self, requests: &[Request<'_>]) -> Error {
        let mut errors = requests
            .iter()
            .filter_map(|r| self.error(r.status(), &Lengths::of(r)));
        errors.next().expect("a request is not done")
    }

    pub(super) fn error(&self, status: Status, lengths: &Lengths) -> Option<Error> {
        let algorithm = self.algorithm.name;
        Some(match status {
            Status::Done | Status::Pending => return None,
            Status::BadTag => Error::BadTag { algorithm },
            Status::IvLength => Error::IvLength {
                algorithm,
                given: lengths.iv,
                expected: self.algorithm.iv_len,
            },
            Status::IvBits => Error::IvBits { algorithm },
            Status::TagLength => Error::TagLength {
                algorithm,
                given: lengths.tag,
                expected: format!("the session was opened with {}", self.tag_len),
            },
            Status::AadLength => Error::AadLength {
                algorithm,
                given: lengths.aad,
                expected: match self.algorithm.aad {
                    AadLengths::Esp => "8, or 12 with extended sequence numbers".to_owned(),
                    AadLengths::Exactly(len) => {
                        format!("{len}: SPI, 64-bit sequence number and IV")
                    }
                    AadLengths::None | AadLengths::Any | AadLengths::Together(_) => {
                        "none".to_owned()
                    }
                },
            },
            Status::NotBlockMultiple => Error::NotBlockMultiple {
                algorithm,
                given: lengths.input,
                block: self.algorithm.block,
            },
            Status::TooShort => Error::TooShort {
                algorithm,
                given: lengths.input,
                min_len: self.algorithm.min_len,
            },
            Status::TooLong => Error::TooLong {
                algorithm,
                given: match self.algorithm.aad {
                    AadLengths::Together(_) => lengths.input.saturating_add(lengths.aad),
                    _ => lengths.input,
                },
                max_len: self.algorithm.max_len,
            },
            Status::OutputLength => Error::OutputLength {
                algorithm,
                input: lengths.input,
                output: lengths.output,
            },
            Status::Overlap => Error::Overlap { algorithm },
            Status::Untouched | Status::Failed => Error::DriverFailed {
                algorithm,
                driver: match self.alone {
                    Some(index) => self.framework.shared.entries[index]
                        .driver
                        .name()
                        .to_owned(),
                    None => "auto".to_owned(),
                },
            },
        })
    }
}

/// Lengths of a request's regions, for error messages.
pub(super) struct Lengths {
    input: usize,
    output: usize,
    iv: usize,
    aad: usize,
    tag: usize,
}

impl Lengths {
    pub(super) fn of(request: &Request<'_>) -> Self {
        Lengths {
            input: request.len(),
            output: request.output_len(),
            iv: request.iv_len(),
            aad: request.aad_len(),
            tag: request.tag_len(),
        }
    }

    pub(super) fn of_owned(request: &OwnedRequest) -> Self {
        Lengths {
            input: request.len(),
            output: request.output_len(),
            iv: request.iv.len(),
            aad: request.aad.len(),
            tag: request.tag.len(),
        }
    }
}
