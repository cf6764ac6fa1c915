//! The engine: keys, the rules, and the work itself by the software kernels.

use cipherlane_core::{Algorithm, Direction, KeyLengths, Kind, Request, Status, Transform};
use zeroize::{Zeroize, Zeroizing};

use super::Model;
use super::fetch::Work;
use crate::transport::DmaFault;
use crate::transport::wire::{
    ALGORITHMS, BAD_TAG, DMA_FAULT, DONE, Descriptor, ENGINE_ERROR, NO_SESSION, Operation, REFUSED,
    TAG,
};

/// Bytes of additional data that the device takes at most.
const MAX_AAD: u32 = 1 << 20;
/// Bytes of a key that it takes at most.
const MAX_KEY: u32 = 4096;

/// A key in the device's memory.
pub(super) struct LoadedKey {
    algorithm: &'static Algorithm,
    kernel: Box<dyn Transform>,
}

impl Model {
    pub(super) fn load_key(&mut self, operation: &Operation) -> u32 {
        let name = ALGORITHMS.get(usize::from(operation.algorithm));
        let Some(algorithm) = name.and_then(|name| Algorithm::find(name).ok()) else {
            return REFUSED;
        };
        if operation.aad_len > MAX_KEY
            || self.settings.offers(algorithm).is_err()
            || !self.keys.contains_key(&operation.session)
                && self.keys.len() >= self.settings.rules.sessions as usize
        {
            return REFUSED;
        }
        let mut key = Zeroizing::new(vec![0; operation.aad_len as usize]);
        if self.port.iommu.read(operation.aad, &mut key) == Err(DmaFault) {
            return DMA_FAULT;
        }
        let taken = match algorithm.keys {
            KeyLengths::OneOf(lengths) => lengths.iter().any(|&(bytes, _)| bytes == key.len()),
            KeyLengths::Any { .. } => !key.is_empty(),
        };
        let bits = &self.settings.key_bits;
        if !taken || !bits.is_empty() && !bits.contains(&algorithm.key_bits(key.len())) {
            return REFUSED;
        }
        let kernel = (algorithm.software)(&key);
        self.keys
            .insert(operation.session, LoadedKey { algorithm, kernel });
        DONE
    }

    /// Leaves output and tag in `work`, or says by a status why not.
    pub(super) fn compute(&self, direction: Direction, work: &mut Work) -> Result<(), u32> {
        let operation = work.operation;
        let key = self.keys.get(&operation.session).ok_or(NO_SESSION)?;
        self.check(key.algorithm, work)?;
        if !self.controls.computes() {
            return Ok(());
        }
        let fault = |DmaFault| DMA_FAULT;
        let iommu = &self.port.iommu;
        work.data.resize(operation.len as usize, 0);
        let mut rest = work.data.as_mut_slice();
        for piece in &work.inputs {
            let (head, tail) = rest.split_at_mut(piece.len as usize);
            iommu.read(piece.address, head).map_err(fault)?;
            rest = tail;
        }
        work.aad.resize(operation.aad_len as usize, 0);
        iommu.read(operation.aad, &mut work.aad).map_err(fault)?;
        work.tag.resize(usize::from(operation.tag_len), 0);
        work.writes_tag = direction == Direction::Encrypt && operation.tag_len > 0;
        if direction == Direction::Decrypt {
            iommu.read(operation.tag, &mut work.tag).map_err(fault)?;
        }
        let is_mac = key.algorithm.kind == Kind::Mac;
        let request = match is_mac {
            true => Request::mac(&work.data),
            false => Request::in_place(&mut work.data),
        };
        let iv = &operation.iv[..usize::from(operation.iv_len)];
        let mut requests = [request.iv(iv).aad(&work.aad).tag(&mut work.tag)];
        key.kernel.run(direction, &mut requests);
        match requests[0].status() {
            Status::Done if is_mac => {
                wipe(&mut work.data);
                work.data.clear();
                Ok(())
            }
            Status::Done => Ok(()),
            Status::BadTag => Err(BAD_TAG),
            _ => Err(ENGINE_ERROR),
        }
    }

    /// Whether a request keeps the rules of the device and of the algorithm.
    fn check(&self, algorithm: &Algorithm, work: &Work) -> Result<(), u32> {
        let (operation, rules) = (&work.operation, &self.settings.rules);
        let len = operation.len as usize;
        let aad = operation.aad_len as usize;
        let output = match algorithm.kind {
            Kind::Mac => 0,
            _ => u64::from(operation.len),
        };
        let piece_is_right = |pieces: &[Descriptor], i: usize| {
            let piece = pieces[i];
            let last = i + 1 == pieces.len();
            piece.len > 0
                && piece.len <= rules.max_segment
                && piece.address.is_multiple_of(rules.alignment.into())
                && (last || piece.len.is_multiple_of(rules.block))
        };
        let (inputs, outputs) = (&work.inputs, &work.outputs);
        let right = operation.len <= rules.max_request
            && operation.aad_len <= MAX_AAD
            && usize::from(operation.iv_len) == algorithm.iv_len
            && len.is_multiple_of(algorithm.block)
            && len >= algorithm.min_len
            && (match algorithm.tags {
                [] => operation.tag_len == 0,
                tags => tags.contains(&usize::from(operation.tag_len)),
            })
            && usize::from(operation.tag_len) <= TAG
            && algorithm.aad.takes(aad)
            && total(inputs) == u64::from(operation.len)
            && total(outputs) == output
            && (0..inputs.len()).all(|i| piece_is_right(inputs, i))
            && (0..outputs.len()).all(|i| piece_is_right(outputs, i));
        if right { Ok(()) } else { Err(REFUSED) }
    }
}

/// Overwrites with zeros, by more than a byte at a time; what is looked at afterwards cannot
/// be left out.
pub(super) fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    std::hint::black_box(bytes);
}

pub(super) fn total(pieces: &[Descriptor]) -> u64 {
    pieces.iter().map(|piece| u64::from(piece.len)).sum()
}

/// Expanding a key, and dropping one, leaves copies on the stack below. They are overwritten.
#[inline(never)]
pub(super) fn wipe_dead_stack() {
    let mut dead = [std::mem::MaybeUninit::<u8>::uninit(); 32 << 10];
    dead.zeroize();
}
