//! The PCI device against guests that keep its rules and guests that do not. QEMU's part is
//! played here: the ivshmem protocol, the guest's memory, the rings.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cipherlane_device::pci::{Ram, Server};
use cipherlane_dma_model::Settings;
use cipherlane_dma_model::transport::wire::{
    BUS, Completion, DMA_FAULT, DONE, Descriptor, HEADER, Layout, MORE, OPERATION, Opcode,
    Operation, READY, REFUSED, Register, WRITE, algorithm_number,
};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryMmap};

const MEMORY: u64 = 1 << 20;
/// NIST SP 800-38A, F.2.1: key, IV, first block and its encryption.
const KEY: [u8; 16] = 0x2b7e151628aed2a6abf7158809cf4f3c_u128.to_be_bytes();
const IV: [u8; 16] = 0x000102030405060708090a0b0c0d0e0f_u128.to_be_bytes();
const PLAIN: [u8; 16] = 0x6bc1bee22e409f96e93d7e117393172a_u128.to_be_bytes();
const SEALED: [u8; 16] = 0x7649abac8119b246cee98e9b12e9197d_u128.to_be_bytes();
/// Where things stand in the guest's memory.
const KEY_AT: u64 = 0x1000;
const IN_AT: u64 = 0x2000;
const OUT_AT: u64 = 0x3000;

/// A machine with the device: what QEMU and the guest's kernel have.
struct Guest {
    bar: GuestMemoryMmap,
    ram: GuestMemoryMmap,
    doorbell: OwnedFd,
    layout: Layout,
    tail: u32,
    head: u32,
    resets: u32,
    _stream: UnixStream,
}

fn map(file: OwnedFd) -> GuestMemoryMmap {
    let file = std::fs::File::from(file);
    let len = file.metadata().unwrap().len() as usize;
    let part = Some(FileOffset::new(file, 0));
    GuestMemoryMmap::from_ranges_with_files([(GuestAddress(0), len, part)]).unwrap()
}

fn receive(stream: &UnixStream) -> (i64, Option<OwnedFd>) {
    let mut bytes = [0; 8];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let mut parts = [IoSliceMut::new(&mut bytes)];
    assert_eq!(
        recvmsg(stream, &mut parts, &mut control, flags)
            .unwrap()
            .bytes,
        8
    );
    let mut files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    let file = files.next();
    (i64::from_le_bytes(bytes), file)
}

impl Guest {
    fn connect(socket: &Path, memory: &Path, settings: &Settings) -> Guest {
        let stream = UnixStream::connect(socket).unwrap();
        assert!(matches!(receive(&stream), (0, None)), "the version");
        assert!(matches!(receive(&stream), (0, None)), "the number of QEMU");
        let (-1, Some(bar)) = receive(&stream) else {
            panic!("the shared memory")
        };
        let (1, Some(doorbell)) = receive(&stream) else {
            panic!("the doorbell")
        };
        let (0, Some(_)) = receive(&stream) else {
            panic!("the interrupt")
        };
        let ram = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(memory);
        let mut guest = Guest {
            bar: map(bar),
            ram: map(ram.unwrap().into()),
            doorbell,
            // The pool is not used by guests.
            layout: Layout {
                ring: settings.rules.ring,
                pool: 0,
            },
            tail: 0,
            head: 0,
            resets: 0,
            _stream: stream,
        };
        guest.reset();
        guest
    }

    fn register(&self, register: usize) -> u32 {
        let at = GuestAddress(register as u64);
        self.bar.load::<u32>(at, Ordering::Acquire).unwrap()
    }

    fn set(&self, register: usize, value: u32) {
        let at = GuestAddress(register as u64);
        self.bar.store(value, at, Ordering::Release).unwrap();
    }

    fn words<const N: usize>(&self, at: usize, words: &[AtomicU64; N]) {
        let at = at as u64;
        for (i, word) in words.iter().enumerate() {
            let bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            let at = GuestAddress(at + 8 * i as u64);
            self.bar.write_slice(&bytes, at).unwrap();
        }
    }

    fn ring_doorbell(&self) {
        rustix::io::write(&self.doorbell, &1u64.to_ne_bytes()).unwrap();
    }

    /// Waits for what the device does; a device that is dead is noticed.
    fn wait(&self, what: &str, done: impl Fn(&Guest) -> bool) {
        let limit = Instant::now() + Duration::from_secs(60);
        while !done(self) {
            assert!(Instant::now() < limit, "the device does not answer: {what}");
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    fn reset(&mut self) {
        self.resets += 1;
        let number = self.resets;
        (self.tail, self.head) = (0, 0);
        self.set(Register::SUBMIT_TAIL, 0);
        self.set(Register::COMPLETE_HEAD, 0);
        self.set(Register::RESET, number);
        self.ring_doorbell();
        self.wait("reset", |guest| {
            guest.register(Register::RESET_DONE) == number
        });
        assert_eq!(self.register(Register::STATUS), READY);
    }

    fn put(&mut self, descriptor: Descriptor) {
        let words = [const { AtomicU64::new(0) }; 2];
        descriptor.store(&words);
        self.words(self.layout.descriptor(self.tail), &words);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Writes a chain without ringing.
    fn write(&mut self, slot: u16, operation: Operation, pieces: &[(u64, u32, u16)]) {
        let words = [const { AtomicU64::new(0) }; 7];
        operation.store(&words);
        self.words(self.layout.slot(slot), &words);
        let mut left = pieces.len();
        let mut more = || {
            left = left.wrapping_sub(1);
            if left == usize::MAX { 0 } else { MORE }
        };
        self.put(Descriptor {
            address: self.layout.slot(slot) as u64,
            len: OPERATION as u32,
            flags: HEADER | more(),
            slot,
        });
        for &(address, len, flags) in pieces {
            self.put(Descriptor {
                address,
                len,
                flags: flags | more(),
                slot,
            });
        }
    }

    /// The status of the next completion.
    fn status(&mut self) -> u32 {
        self.set(Register::SUBMIT_TAIL, self.tail);
        self.ring_doorbell();
        let head = self.head;
        self.wait("completion", |guest| {
            guest.register(Register::COMPLETE_TAIL) != head
        });
        let mut bytes = [[0; 8]; 2];
        for (i, bytes) in bytes.iter_mut().enumerate() {
            let at = GuestAddress((self.layout.completion(head) + 8 * i) as u64);
            self.bar.read_slice(bytes, at).unwrap();
        }
        self.head = self.head.wrapping_add(1);
        self.set(Register::COMPLETE_HEAD, self.head);
        Completion::load(&bytes.map(|bytes| AtomicU64::new(u64::from_ne_bytes(bytes)))).status
    }

    fn load_key(&mut self, aad: u64) -> u32 {
        self.ram.write_slice(&KEY, GuestAddress(KEY_AT)).unwrap();
        let operation = Operation {
            opcode: Opcode::LoadKey,
            aad_len: 16,
            aad,
            ..operation()
        };
        self.write(0, operation, &[]);
        self.status()
    }

    fn encrypt(&mut self, from: u64, to: u64) -> u32 {
        self.write(1, operation(), &[(from, 16, 0), (to, 16, WRITE)]);
        self.status()
    }

    /// After whatever was before, the device does its work.
    fn assert_well(&mut self) {
        self.reset();
        assert_eq!(self.load_key(BUS | KEY_AT), DONE);
        self.ram.write_slice(&PLAIN, GuestAddress(IN_AT)).unwrap();
        self.ram
            .write_slice(&[0; 16], GuestAddress(OUT_AT))
            .unwrap();
        assert_eq!(self.encrypt(BUS | IN_AT, BUS | OUT_AT), DONE);
        let mut out = [0; 16];
        self.ram.read_slice(&mut out, GuestAddress(OUT_AT)).unwrap();
        assert_eq!(out, SEALED);
    }
}

fn operation() -> Operation {
    Operation {
        opcode: Opcode::Run(cipherlane_core::Direction::Encrypt),
        algorithm: algorithm_number("cbc(aes)").unwrap(),
        tag_len: 0,
        iv_len: 16,
        turn: 0,
        session: 7,
        len: 16,
        aad_len: 0,
        aad: 0,
        tag: 0,
        iv: IV,
    }
}

/// Runs `guest` on a machine with the device, and then asks whether it is well.
fn with_device(settings: Settings, guest: impl FnOnce(&mut Guest)) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let ram = Ram::new(&path("ram"), MEMORY).unwrap();
    let server = Server::new(&path("socket"), ram, settings.clone()).unwrap();
    std::thread::scope(|scope| {
        let served = scope.spawn(|| server.serve_next().unwrap());
        let mut machine = Guest::connect(&path("socket"), &path("ram"), &settings);
        machine.assert_well();
        guest(&mut machine);
        machine.assert_well();
        drop(machine);
        let summary = served.join().unwrap();
        assert!(summary.requests[0] >= 2 && summary.keys >= 2, "{summary:?}");
    });
}

fn preset(name: &str) -> Settings {
    Settings::preset(name).unwrap()
}

#[test]
fn a_guest_that_keeps_the_rules_is_served_by_every_preset_with_cbc() {
    for name in Settings::presets() {
        if preset(name)
            .algorithms
            .iter()
            .any(|name| name == "cbc(aes)")
        {
            with_device(preset(name), |_| ());
        }
    }
}

#[test]
fn addresses_outside_of_the_guests_memory_fail_the_request() {
    with_device(preset("cyclone-v-soc-aes"), |guest| {
        let slot = guest.layout.slot(0) as u64;
        for (from, to) in [
            (BUS | MEMORY, BUS | OUT_AT),
            (BUS | (MEMORY - 12), BUS | OUT_AT),
            (BUS | IN_AT, BUS | (MEMORY - 12)),
            (BUS | IN_AT, BUS | 0x7fff_ffff_ffff_fff0),
            (BUS | IN_AT, !0 << 4),
            // Registers and rings are no memory for data.
            (BUS | IN_AT, 0),
            (0x200, BUS | OUT_AT),
            (slot - 16, BUS | OUT_AT),
            (1 << 62, BUS | OUT_AT),
        ] {
            assert_eq!(guest.encrypt(from, to), DMA_FAULT, "{from:x} {to:x}");
        }
        assert_eq!(guest.load_key(BUS | (MEMORY - 15)), DMA_FAULT);
    });
}

#[test]
fn requests_against_the_rules_are_refused() {
    with_device(preset("cyclone-v-soc-aes"), |guest| {
        let right = [(BUS | IN_AT, 16, 0), (BUS | OUT_AT, 16, WRITE)];
        let wrong = [
            (
                Operation {
                    len: u32::MAX,
                    ..operation()
                },
                right,
            ),
            (
                Operation {
                    len: 32,
                    ..operation()
                },
                right,
            ),
            (
                Operation {
                    iv_len: 255,
                    ..operation()
                },
                right,
            ),
            (
                Operation {
                    tag_len: 16,
                    ..operation()
                },
                right,
            ),
            (
                Operation {
                    aad_len: u32::MAX,
                    ..operation()
                },
                right,
            ),
            (operation(), [(BUS | IN_AT | 2, 16, 0), right[1]]),
            (operation(), [(BUS | IN_AT, u32::MAX, 0), right[1]]),
        ];
        for (operation, pieces) in wrong {
            guest.write(1, operation, &pieces);
            assert_eq!(guest.status(), REFUSED, "{operation:?} {pieces:x?}");
        }
        // A key of another length than the device takes.
        let key = Operation {
            opcode: Opcode::LoadKey,
            aad_len: 32,
            aad: BUS | KEY_AT,
            ..operation()
        };
        guest.write(0, key, &[]);
        assert_eq!(guest.status(), REFUSED);
    });
}

#[test]
fn a_guest_that_gives_more_than_it_can_have_under_way_stops_its_own_device() {
    let mut settings = preset("cyclone-v-soc-aes");
    // Nothing comes to an end meanwhile.
    settings.link.latency_ns = 1e12;
    let ring = settings.rules.ring;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let ram = Ram::new(&path("ram"), MEMORY).unwrap();
    let server = Server::new(&path("socket"), ram, settings.clone()).unwrap();
    std::thread::scope(|scope| {
        let served = scope.spawn(|| server.serve_next().unwrap());
        let mut guest = Guest::connect(&path("socket"), &path("ram"), &settings);
        for _ in 0..4 {
            // The same slot again and again, a ring at a time.
            for _ in 0..ring {
                guest.write(0, operation(), &[]);
            }
            guest.set(Register::SUBMIT_TAIL, guest.tail);
            guest.ring_doorbell();
            let tail = guest.tail;
            guest.wait("fetching", |guest| {
                guest.register(Register::SUBMIT_HEAD) == tail
                    || guest.register(Register::STATUS) != READY
            });
            if guest.register(Register::STATUS) != READY {
                break;
            }
        }
        assert_ne!(guest.register(Register::STATUS), READY);
        guest.reset();
        drop(guest);
        served.join().unwrap();
    });
}

#[test]
fn garbage_anywhere_in_the_bar_stops_nothing_but_the_guests_own_device() {
    with_device(preset("cyclone-v-soc-aes"), |guest| {
        // SplitMix64.
        let mut state = 20_261_122_u64;
        let mut random = move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        let slots = guest.layout.slot(8);
        for round in 0..400 {
            // A request that is right but for some words.
            guest.write(
                (random() % 4) as u16,
                operation(),
                &[(BUS | IN_AT, 16, 0), (BUS | OUT_AT, 16, WRITE)],
            );
            for _ in 0..random() % 12 {
                let at = match random() % 3 {
                    0 => random() as usize % 0x200,
                    1 => guest.layout.descriptor(random() as u32 % 16),
                    _ => guest.layout.slot(0) + random() as usize % (slots - guest.layout.slot(0)),
                };
                let value = random() >> (random() % 64);
                let at = GuestAddress(at as u64 & !7);
                guest.bar.write_slice(&value.to_le_bytes(), at).unwrap();
            }
            if random() % 2 == 0 {
                guest.set(Register::SUBMIT_TAIL, guest.tail);
            }
            guest.ring_doorbell();
            if round % 8 == 0 {
                // It may have asked for any reset itself; for this one it has not.
                guest.resets = 0x5a00_0000 + round;
                guest.assert_well();
            }
        }
        guest.resets = 0x5b00_0000;
    });
}

#[test]
fn a_device_serves_one_guest_after_the_other() {
    let settings = preset("cyclone-v-soc-aes");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let ram = Ram::new(&path("ram"), MEMORY).unwrap();
    let server = Server::new(&path("socket"), ram, settings.clone()).unwrap();
    let error = {
        let ram = Ram::new(&path("ram"), MEMORY).unwrap();
        Server::new(&path("socket"), ram, settings.clone()).unwrap_err()
    };
    assert!(error.to_string().contains("another process"), "{error}");
    std::thread::scope(|scope| {
        // The one that asked whether the socket is served, and two machines.
        let served = scope.spawn(|| [(); 3].map(|()| server.serve_next().unwrap()));
        for _ in 0..2 {
            Guest::connect(&path("socket"), &path("ram"), &settings).assert_well();
        }
        let [nobody, first, second] = served.join().unwrap();
        assert_eq!(nobody.requests, [0, 0]);
        assert_eq!((first.requests, second.requests), ([1, 0], [1, 0]));
    });
}
