//! The ways in which a vector's bytes lie in memory when a driver gets them.

use cipherlane_core::{OwnedRequest, Payload, Request};

/// Lengths of the segments of a scatter list, over and over: odd, empty, whole blocks and more.
const INPUT_CUTS: [usize; 9] = [1, 15, 0, 7, 16, 33, 3, 64, 5];
/// Those of the output, so that no cut but the first falls where the input's does.
const OUTPUT_CUTS: [usize; 7] = [13, 2, 48, 1, 31, 0, 17];

/// How input and output of one request lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    /// One region, overwritten.
    InPlace,
    /// From one region to another.
    Apart,
    /// A list of segments, overwritten.
    ScatteredInPlace,
    /// From one list of segments to another, cut elsewhere.
    Scattered,
}

impl Shape {
    /// All of them.
    pub(crate) const ALL: [Shape; 4] = [
        Shape::InPlace,
        Shape::Apart,
        Shape::ScatteredInPlace,
        Shape::Scattered,
    ];

    /// In words, for messages.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Shape::InPlace => "in place",
            Shape::Apart => "from one region to another",
            Shape::ScatteredInPlace => "as a scatter list in place",
            Shape::Scattered => "from one scatter list to another",
        }
    }

    /// Lays out `input`, with an output of the same length filled with a pattern.
    pub(crate) fn lay_out(self, input: &[u8]) -> Payload {
        let blank = vec![0xa5; input.len()];
        match self {
            Shape::InPlace => Payload::InPlace(input.to_vec()),
            Shape::Apart => Payload::Copy {
                input: input.to_vec(),
                output: blank,
            },
            Shape::ScatteredInPlace => Payload::ScatterInPlace(cut(input, &INPUT_CUTS)),
            Shape::Scattered => Payload::Scatter {
                input: cut(input, &INPUT_CUTS),
                output: cut(&blank, &OUTPUT_CUTS),
            },
        }
    }
}

/// A scatter list for a MAC, which has no output.
pub(crate) fn mac_scattered(input: &[u8]) -> Payload {
    Payload::Scatter {
        input: cut(input, &INPUT_CUTS),
        output: Vec::new(),
    }
}

fn cut(data: &[u8], lengths: &[usize]) -> Vec<Vec<u8>> {
    let mut segments = Vec::new();
    let mut rest = data;
    for &length in lengths.iter().cycle() {
        let (head, tail) = rest.split_at(length.min(rest.len()));
        segments.push(head.to_vec());
        rest = tail;
        if rest.is_empty() {
            break;
        }
    }
    segments
}

const OWN: &str = "the requests of a check own their memory";

/// The output of a request, its segments joined; empty for a MAC.
pub(crate) fn output(request: &OwnedRequest) -> Vec<u8> {
    match &request.payload {
        Payload::InPlace(output) | Payload::Copy { output, .. } => output.clone(),
        Payload::ScatterInPlace(output) | Payload::Scatter { output, .. } => output.concat(),
        Payload::Mac(_) => Vec::new(),
        Payload::Raw(_) => unreachable!("{OWN}"),
    }
}

/// An owned request taken apart into borrowed regions.
pub(crate) struct Regions<'a> {
    payload: Borrowed<'a>,
    iv: &'a [u8],
    aad: &'a [u8],
    tag: &'a mut [u8],
}

enum Borrowed<'a> {
    InPlace(&'a mut [u8]),
    Apart(&'a [u8], &'a mut [u8]),
    ScatteredInPlace(Vec<&'a mut [u8]>),
    Scattered(Vec<&'a [u8]>, Vec<&'a mut [u8]>),
    Mac(&'a [u8]),
    MacScattered(Vec<&'a [u8]>),
}

impl<'a> Regions<'a> {
    /// Borrows the regions of `owned`.
    pub(crate) fn of(owned: &'a mut OwnedRequest) -> Self {
        let payload = match &mut owned.payload {
            Payload::InPlace(data) => Borrowed::InPlace(data),
            Payload::Copy { input, output } => Borrowed::Apart(input, output),
            Payload::ScatterInPlace(data) => {
                Borrowed::ScatteredInPlace(data.iter_mut().map(Vec::as_mut_slice).collect())
            }
            Payload::Scatter { input, output } => {
                let input = input.iter().map(Vec::as_slice).collect();
                match output.is_empty() {
                    true => Borrowed::MacScattered(input),
                    false => {
                        let output = output.iter_mut().map(Vec::as_mut_slice).collect();
                        Borrowed::Scattered(input, output)
                    }
                }
            }
            Payload::Mac(data) => Borrowed::Mac(data),
            Payload::Raw(_) => unreachable!("{OWN}"),
        };
        Regions {
            payload,
            iv: &owned.iv,
            aad: &owned.aad,
            tag: &mut owned.tag,
        }
    }

    /// A request over the regions.
    pub(crate) fn request(&'a mut self) -> Request<'a> {
        let request = match &mut self.payload {
            Borrowed::InPlace(data) => Request::in_place(data),
            Borrowed::Apart(input, output) => Request::new(input, output),
            Borrowed::ScatteredInPlace(data) => Request::scatter_in_place(data),
            Borrowed::Scattered(input, output) => Request::scatter(input, output),
            Borrowed::Mac(data) => Request::mac(data),
            Borrowed::MacScattered(data) => Request::mac_scatter(data),
        };
        request.iv(self.iv).aad(self.aad).tag(self.tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_keeps_the_bytes_and_their_number() {
        for len in [0, 1, 15, 16, 17, 300] {
            let data: Vec<u8> = (0..len).map(|n| n as u8).collect();
            for shape in Shape::ALL {
                let payload = shape.lay_out(&data);
                let input = match &payload {
                    Payload::InPlace(input) | Payload::Copy { input, .. } => input.clone(),
                    Payload::ScatterInPlace(input) | Payload::Scatter { input, .. } => {
                        input.concat()
                    }
                    Payload::Mac(_) | Payload::Raw(_) => unreachable!("no shape of a cipher"),
                };
                assert_eq!(input, data, "{shape:?}");
                assert_eq!(
                    output(&OwnedRequest::new(payload)).len(),
                    data.len(),
                    "{shape:?}"
                );
            }
        }
    }

    #[test]
    fn scatter_lists_have_empty_and_odd_segments() {
        let segments = cut(&[7; 200], &INPUT_CUTS);
        assert!(segments.iter().any(Vec::is_empty));
        assert!(segments.iter().any(|s| s.len() % 16 != 0));
        assert_eq!(cut(&[], &INPUT_CUTS), [Vec::<u8>::new()]);
    }
}
