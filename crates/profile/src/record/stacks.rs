//! Stacks by number: each address becomes a place in a file, each stack is kept once.

use super::collect::Collector;
use super::records::{KERNEL, MARK, USER};
use super::spaces::Place;

impl Collector {
    /// The number of a stack. `chain` has addresses from the innermost function outwards, the
    /// kernel's and the program's, each part behind its mark.
    pub(super) fn stack(&mut self, pid: u32, chain: &[u64]) -> u32 {
        if !self.spaces.knows(pid) && pid != 0 {
            self.spaces.read(pid);
        }
        let mut places = Vec::with_capacity(chain.len());
        let (mut kernel, mut first) = (false, true);
        for &address in chain {
            if address >= MARK {
                match address {
                    KERNEL => (kernel, first) = (true, true),
                    USER => (kernel, first) = (false, true),
                    _ => {}
                }
                continue;
            }
            // The address behind a call may belong to the next function.
            let address = if first {
                address
            } else {
                address.wrapping_sub(1)
            };
            first = false;
            places.push(match kernel {
                true => Place::Kernel(address),
                false => self.spaces.place(pid, address),
            });
        }
        let mut stack = 0;
        for place in places.into_iter().rev() {
            let next = self.places.len() as u32;
            let number = *self.place_numbers.entry(place).or_insert(next);
            if number == next {
                self.places.push(place);
            }
            let next = self.stacks.len() as u32 + 1;
            let entry = (stack, number);
            stack = *self.stack_numbers.entry(entry).or_insert(next);
            if stack == next {
                self.stacks.push(entry);
            }
        }
        stack
    }
}
