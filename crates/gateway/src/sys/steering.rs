//! Which queue of the TUN device a packet goes to: always the same one for a flow.
//!
//! By itself the kernel sends a flow to the queue by which a packet of its other direction was
//! written last. Packets of one flow come in by all threads, so that the flow would change its
//! queue, and overtake itself, all the time. This program of eBPF takes addresses and ports
//! instead, and the kernel then keeps no table of flows.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::service::WITH_PORTS;

/// A program that is loaded, for any number of devices.
#[derive(Debug)]
pub struct Steering {
    program: OwnedFd,
}

impl Steering {
    /// For a gateway of this number of threads: `None` where one thread needs none, or where there
    /// can be none, which is logged.
    pub fn of(threads: usize) -> Option<Steering> {
        if threads == 1 {
            return None;
        }
        let loaded = Steering::load().inspect_err(|error| {
            tracing::warn!(
                "packets of a flow may overtake each other, since the kernel takes no program \
                 that keeps flows to one queue of the device: {error}; it takes CAP_BPF and a \
                 kernel with CONFIG_BPF_SYSCALL"
            );
        });
        loaded.ok()
    }

    /// Loads it, which takes CAP_BPF where `kernel.unprivileged_bpf_disabled` is not 0.
    fn load() -> io::Result<Steering> {
        let program = program();
        let license = c"MIT OR Apache-2.0";
        let attributes = Attributes {
            kind: BPF_PROG_TYPE_SOCKET_FILTER,
            instruction_count: program.len() as u32,
            instructions: program.as_ptr() as u64,
            license: license.as_ptr() as u64,
            ..Attributes::default()
        };
        // SAFETY: BPF_PROG_LOAD reads the attributes, the instructions and the license, which live
        // until the call returns; what is beyond the given size is taken as 0.
        let file = unsafe {
            let attributes: *const Attributes = &attributes;
            libc::syscall(
                libc::SYS_bpf,
                BPF_PROG_LOAD,
                attributes,
                size_of::<Attributes>(),
            )
        };
        let Ok(file @ 0..) = i32::try_from(file) else {
            return Err(io::Error::last_os_error());
        };
        // SAFETY: the descriptor was just made and belongs to nobody else.
        let program = unsafe { OwnedFd::from_raw_fd(file) };
        Ok(Steering { program })
    }
}

impl AsFd for Steering {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }
}

/// linux/bpf.h
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_PROG_TYPE_SOCKET_FILTER: u32 = 1;

/// The beginning of `union bpf_attr` (linux/bpf.h) for BPF_PROG_LOAD.
#[derive(Default)]
#[repr(C)]
struct Attributes {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

/// Spreads the sum over all 64 bits: 2^64 divided by the golden ratio.
pub(crate) const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Registers. A load from the packet writes to R0, uses R1 to R5, and reads the context in R6.
const R0: u8 = 0;
const R1: u8 = 1;
const CONTEXT: u8 = 6;
const PROTOCOL: u8 = 7;
/// Where the header behind the IP header begins.
const BEHIND: u8 = 8;
const SUM: u8 = 9;

/// An instruction (Linux, Documentation/bpf/standardization/instruction-set.rst).
fn instruction(code: u32, to: u8, from: u8, jump: i16, value: i32) -> u64 {
    let fields = [code as u8, to | from << 4];
    u64::from(u16::from_le_bytes(fields))
        | u64::from(jump as u16) << 16
        | u64::from(value as u32) << 32
}

/// The program. A packet that is too short for a load ends it with 0.
fn program() -> Vec<u64> {
    use libc::{BPF_ABS, BPF_B, BPF_H, BPF_IND, BPF_K, BPF_LD, BPF_W, BPF_X};
    use libc::{BPF_ADD, BPF_AND, BPF_JEQ, BPF_JMP, BPF_LSH, BPF_MUL, BPF_RSH};
    const BPF_ALU64: u32 = 7;
    const BPF_MOV: u32 = 0xb0;
    const BPF_EXIT: u32 = 0x90;
    const BPF_JA: u32 = 0;
    const BPF_JSET: u32 = 0x40;
    const BPF_DW: u32 = 0x18;
    let load = |size, at| instruction(BPF_LD | BPF_ABS | size, 0, 0, 0, at);
    let with = |operation, register, value| {
        instruction(BPF_ALU64 | operation | BPF_K, register, 0, 0, value)
    };
    let by = |operation, to, from| instruction(BPF_ALU64 | operation | BPF_X, to, from, 0, 0);
    let jump = |kind, register, value, over: usize| {
        instruction(BPF_JMP | kind | BPF_K, register, 0, over as i16, value)
    };
    // SUM = 31 * SUM + R0
    let add = [with(BPF_MUL, SUM, 31), by(BPF_ADD, SUM, R0)];
    let add_word = |at| [&[load(BPF_W, at)][..], &add].concat();

    let mut four = vec![
        with(BPF_AND, R0, 15),
        with(BPF_LSH, R0, 2),
        by(BPF_MOV, BEHIND, R0),
    ];
    four.extend([12, 16].into_iter().flat_map(add_word));
    four.extend([load(BPF_B, 9), by(BPF_MOV, PROTOCOL, R0)]);
    // A fragment: more follow, or it is not the first. Only one of them has ports.
    four.extend([
        load(BPF_H, 6),
        jump(BPF_JSET, R0, 0x3fff, 1),
        jump(BPF_JA, 0, 0, 1),
        with(BPF_MOV, PROTOCOL, 0),
    ]);

    let mut six = vec![with(BPF_MOV, BEHIND, 40)];
    six.extend((8..40).step_by(4).flat_map(add_word));
    six.extend([load(BPF_B, 6), by(BPF_MOV, PROTOCOL, R0)]);

    // The ports, where there are any.
    let mut ports = Vec::new();
    for (place, protocol) in WITH_PORTS.into_iter().enumerate() {
        ports.push(jump(
            BPF_JEQ,
            PROTOCOL,
            protocol.into(),
            WITH_PORTS.len() - place,
        ));
    }
    let word = instruction(BPF_LD | BPF_IND | BPF_W, 0, BEHIND, 0, 0);
    ports.push(jump(BPF_JA, 0, 0, 1 + add.len()));
    ports.push(word);
    ports.extend(add);

    let wide = BPF_LD | BPF_DW;
    let end = [
        instruction(wide, R1, 0, 0, SPREAD as u32 as i32),
        instruction(0, 0, 0, 0, (SPREAD >> 32) as i32),
        by(BPF_MUL, SUM, R1),
        with(BPF_RSH, SUM, 32),
        by(BPF_MOV, R0, SUM),
        instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
    ];
    let none = [
        with(BPF_MOV, R0, 0),
        instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
    ];

    // Version 4, 6, or none.
    four.push(jump(BPF_JA, 0, 0, six.len()));
    let mut all = vec![
        by(BPF_MOV, CONTEXT, R1),
        with(BPF_MOV, SUM, 0),
        load(BPF_B, 0),
        by(BPF_MOV, PROTOCOL, R0),
        with(BPF_RSH, PROTOCOL, 4),
        jump(BPF_JEQ, PROTOCOL, 4, 1 + none.len()),
        jump(BPF_JEQ, PROTOCOL, 6, none.len() + four.len()),
    ];
    all.extend(none);
    all.extend(four);
    all.extend(six);
    all.extend(ports);
    all.extend(end);
    all
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    const BPF_PROG_TEST_RUN: libc::c_int = 10;
    /// The kernel takes an Ethernet header off.
    const ETHERNET: usize = 14;

    /// The part of `union bpf_attr` for BPF_PROG_TEST_RUN.
    #[derive(Default)]
    #[repr(C)]
    struct Run {
        program: u32,
        answer: u32,
        len: u32,
        len_out: u32,
        packet: u64,
        packet_out: u64,
        repeat: u32,
        duration: u32,
    }

    /// What the kernel's run of the program says of an IP packet.
    fn answer(steering: &Steering, packet: &[u8]) -> u32 {
        let kind = if packet[0] >> 4 == 6 {
            0x86dd_u16
        } else {
            0x0800
        };
        let mut frame = vec![0; ETHERNET - 2];
        frame.extend(kind.to_be_bytes());
        frame.extend(packet);
        let mut run = Run {
            program: steering.as_fd().as_raw_fd() as u32,
            len: frame.len() as u32,
            packet: frame.as_ptr() as u64,
            repeat: 1,
            ..Run::default()
        };
        // SAFETY: the kernel reads the frame and writes to `run`, which live until the call
        // returns.
        let done = unsafe {
            let run: *mut Run = &mut run;
            libc::syscall(libc::SYS_bpf, BPF_PROG_TEST_RUN, run, size_of::<Run>())
        };
        assert_eq!(done, 0, "{}", io::Error::last_os_error());
        run.answer
    }

    fn v4(protocol: u8, fragment: u16, ports: [u16; 2], options: usize) -> Vec<u8> {
        let mut packet = vec![0; 20 + 4 * options];
        packet[0] = 0x45 + options as u8;
        packet[6..8].copy_from_slice(&fragment.to_be_bytes());
        packet[9] = protocol;
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        packet.extend([0; 40]);
        packet
    }

    fn v6(next: u8, last: u8, ports: [u16; 2]) -> Vec<u8> {
        let mut packet = vec![0; 40];
        (packet[0], packet[6], packet[39]) = (0x60, next, last);
        packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        packet.extend([0; 40]);
        packet
    }

    #[test]
    fn a_flow_has_one_answer_and_flows_have_many() {
        let steering = match Steering::load() {
            Ok(steering) => steering,
            Err(error) => {
                let message = format!("SKIPPED, the steering of flows is NOT tested: {error}\n");
                io::Write::write_all(&mut io::stderr(), message.as_bytes()).unwrap();
                return;
            }
        };
        let ask = |packet: Vec<u8>| answer(&steering, &packet);
        let mut queues = [0; 4];
        for port in 0..400 {
            let tcp = ask(v4(6, 0x4000, [port, 80], 0));
            assert_eq!(tcp, ask(v4(6, 0, [port, 80], 0)), "DF is no fragment");
            assert_eq!(tcp, ask(v4(6, 0, [port, 80], 3)), "behind options");
            queues[tcp as usize % 4] += 1;
        }
        assert!(queues.iter().all(|count| *count > 50), "{queues:?}");
        // Ports of a fragment may be its data, and other protocols have none.
        let whole = ask(v4(17, 0, [1, 2], 0));
        let fragment = ask(v4(17, 0x2000, [1, 2], 0));
        assert_ne!(whole, fragment);
        assert_eq!(fragment, ask(v4(17, 0x2000, [3, 4], 0)));
        assert_eq!(fragment, ask(v4(17, 185, [5, 6], 0)));
        assert_eq!(ask(v4(1, 0, [1, 2], 0)), ask(v4(1, 0, [3, 4], 0)));
        for protocol in WITH_PORTS {
            let of = |ports| ask(v6(protocol, 1, ports));
            assert_ne!(of([1, 2]), of([3, 2]), "{protocol}");
        }
        assert_ne!(ask(v6(58, 1, [1, 2])), ask(v6(58, 2, [1, 2])), "addresses");
        assert_eq!(ask(v6(58, 1, [1, 2])), ask(v6(58, 1, [3, 4])));
        // What is neither, and what ends too early.
        assert_eq!(ask(vec![0x20; 60]), 0);
        assert_eq!(ask(v4(6, 0, [1, 2], 0)[..21].to_vec()), 0);
    }
}
