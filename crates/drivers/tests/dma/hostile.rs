//! Ring memory is hostile on both sides: a device that writes nonsense to a driver, and a
//! driver that writes nonsense to a device.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cipherlane_core::{Direction, Framework, Request, VirtualTime};
use cipherlane_drivers::dma::model::{Controls, Model};
use cipherlane_drivers::dma::transport::wire::{
    BROKEN, Completion, DONE, Descriptor, HEADER, MAGIC, Opcode, Operation, READY, Register,
};
use cipherlane_drivers::dma::transport::{Arena, Device, Port, Simulated};
use cipherlane_drivers::dma::{Dma, Settings, layout};
use cipherlane_drivers::software::Software;
use proptest::prelude::*;

use crate::rig::{bytes, device, encrypted};

/// What a hostile device does at a doorbell.
#[derive(Clone, Debug)]
enum Move {
    Complete(u16, u16, u32, u64),
    Tail(u32),
    Head(u32),
    Status(u32),
    Acknowledge,
    Interrupt,
}

fn moves() -> impl Strategy<Value = Move> {
    prop_oneof![
        // Any status but that of success: nobody can tell a lie from the truth here.
        6 => (0..12u16, 0..6u16, 1..9u32, any::<u64>()).prop_map(|(s, t, c, w)| Move::Complete(s, t, c, w)),
        1 => any::<(u16, u16, u32, u64)>()
            .prop_map(|(s, t, c, w)| Move::Complete(s, t, c.max(DONE + 1), w)),
        1 => any::<u32>().prop_map(Move::Tail),
        1 => any::<u32>().prop_map(Move::Head),
        1 => any::<u32>().prop_map(Move::Status),
        4 => Just(Move::Acknowledge),
        2 => Just(Move::Interrupt),
    ]
}

struct Hostile {
    port: Port,
    moves: Vec<Move>,
    next: usize,
    tail: u32,
    interrupt: bool,
}

impl Hostile {
    fn arena(&self) -> &Arena {
        &self.port.arena
    }

    fn play(&mut self) {
        let Some(play) = self.moves.get(self.next % self.moves.len().max(1)) else {
            return;
        };
        self.next += 1;
        let write = |register, value| {
            let register = self.arena().register(register);
            register.store(value, Ordering::Relaxed);
        };
        match *play {
            Move::Complete(slot, turn, status, written) => {
                let completion = Completion {
                    slot,
                    turn,
                    status,
                    written,
                };
                let layout = *self.arena().layout();
                completion.store(self.arena().entry(layout.completion(self.tail)));
                self.tail = self.tail.wrapping_add(1);
                self.arena()
                    .register(Register::COMPLETE_TAIL)
                    .store(self.tail, Ordering::Relaxed);
            }
            Move::Tail(tail) => write(Register::COMPLETE_TAIL, tail),
            Move::Head(head) => write(Register::SUBMIT_HEAD, head),
            Move::Status(status) => write(Register::STATUS, status),
            Move::Acknowledge => {
                let reset = self
                    .arena()
                    .register(Register::RESET)
                    .load(Ordering::Relaxed);
                if reset
                    != self
                        .arena()
                        .register(Register::RESET_DONE)
                        .load(Ordering::Relaxed)
                {
                    write(Register::COMPLETE_TAIL, 0);
                    write(Register::SUBMIT_HEAD, 0);
                    write(Register::STATUS, READY);
                    write(Register::RESET_DONE, reset);
                    self.tail = 0;
                }
            }
            Move::Interrupt => self.interrupt = true,
        }
    }
}

impl Device for Hostile {
    fn doorbell(&mut self, _: u64) {
        for _ in 0..3 {
            self.play();
        }
    }

    fn next_event(&self) -> Option<u64> {
        None
    }

    fn advance(&mut self, _: u64) -> bool {
        self.play();
        std::mem::take(&mut self.interrupt)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 50, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn a_driver_survives_a_device_that_writes_nonsense(
        moves in prop::collection::vec(moves(), 1..40),
        revocable in any::<bool>(),
    ) {
        let device = device(|d| (d.rules.ring, d.rules.revocable) = (16, revocable));
        let settings = Settings { timeout_ms: 5, ..Settings::default() };
        let time = VirtualTime::new();
        let port = Port::new(layout(&settings, &device), revocable).unwrap();
        // A good device, until it is admitted.
        let mut hostile = Hostile { port: port.clone(), moves, next: 0, tail: 0, interrupt: false };
        let armed = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let controls = Arc::new(Controls::new(&device.behaviour));
        let mut good = Model::new(&device, port.clone(), controls);
        struct Turncoat<F>(F);
        impl<F: FnMut(Option<u64>, u64) -> (Option<u64>, bool) + Send> Device for Turncoat<F> {
            fn doorbell(&mut self, now: u64) { (self.0)(Some(now), now); }
            fn next_event(&self) -> Option<u64> { None }
            fn advance(&mut self, now: u64) -> bool { (self.0)(None, now).1 }
        }
        let turned = armed.clone();
        let turncoat = Turncoat(move |doorbell: Option<u64>, now| {
            let device: &mut dyn Device = match turned.load(Ordering::Relaxed) {
                true => &mut hostile,
                false => &mut good,
            };
            if let Some(now) = doorbell {
                device.doorbell(now);
            }
            // The good one is done at once.
            let until = match turned.load(Ordering::Relaxed) { true => now, false => u64::MAX / 2 };
            (None, device.advance(until))
        });
        let transport = Simulated::new(port, time.clone(), Box::new(turncoat));
        let driver = Dma::new("test", &settings, device, Ok(Box::new(transport)));
        let framework = Framework::builder(Arc::new(Software))
            .driver(Arc::new(driver))
            .clock(time.clock())
            .build()
            .unwrap();
        let key = bytes(1, 16);
        let session = framework.session("ctr(aes)", &key).unwrap().driver("dma:test").open().unwrap();
        armed.store(true, Ordering::Relaxed);
        for round in 0..4u8 {
            let mut data: Vec<_> = (0..6).map(|i| bytes(i + round, 400)).collect();
            let mut requests: Vec<_> = data.iter_mut().map(|d| Request::in_place(d).iv(&[round; 16])).collect();
            let _ = session.process(Direction::Encrypt, &mut requests);
            let statuses: Vec<_> = requests.iter().map(|r| r.status()).collect();
            drop(requests);
            for (i, (data, status)) in data.iter().zip(statuses).enumerate() {
                let (want, _) = encrypted("ctr(aes)", &key, &[round; 16], &[], &bytes(i as u8 + round, 400));
                prop_assert_eq!(status, cipherlane_core::Status::Done);
                prop_assert!(*data == want, "{} {}", round, i);
            }
        }
    }
}

/// What a hostile driver puts where a descriptor or an operation belongs.
fn words() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => 0..0x2_0000u64,
        2 => any::<u64>(),
        1 => (0..4u64, 0..70_000u64).prop_map(|(flags, len)| flags << 32 | len),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn a_device_survives_a_driver_that_writes_nonsense(
        rings in prop::collection::vec((words(), words()), 1..16),
        operations in prop::collection::vec(prop::collection::vec(words(), 7), 1..8),
        good_heads in any::<bool>(),
        tail in prop_oneof![4 => 0..20u32, 1 => any::<u32>()],
    ) {
        let device = device(|d| d.rules.ring = 16);
        let settings = Settings { pool_kib: 64, ..Settings::default() };
        let port = Port::new(layout(&settings, &device), true).unwrap();
        let controls = Arc::new(Controls::new(&device.behaviour));
        let mut model = Model::new(&device, port.clone(), controls);
        let arena = &port.arena;
        let layout = *arena.layout();
        for (i, words) in operations.iter().enumerate() {
            let operation = arena.operation(layout.slot(i as u16));
            for (to, word) in operation.iter().zip(words) {
                to.store(*word, Ordering::Relaxed);
            }
            if good_heads {
                let opcode = [Opcode::Run(Direction::Encrypt), Opcode::LoadKey, Opcode::WipeKey][i % 3];
                if let Some(found) = Operation::load(operation) {
                    Operation { opcode, ..found }.store(operation);
                }
            }
        }
        for (i, (address, rest)) in rings.iter().enumerate() {
            let entry = arena.entry(layout.descriptor(i as u32));
            entry[0].store(*address, Ordering::Relaxed);
            entry[1].store(*rest, Ordering::Relaxed);
            if good_heads && i % 3 == 0 {
                let slot = (i % 8) as u16;
                let address = layout.slot(slot) as u64;
                Descriptor { address, len: 128, flags: HEADER | (i as u16 & 1), slot }.store(entry);
            }
        }
        arena.register(Register::SUBMIT_TAIL).store(tail, Ordering::Relaxed);
        model.doorbell(0);
        model.advance(u64::MAX / 2);
        let status = arena.register(Register::STATUS).load(Ordering::Relaxed);
        prop_assert!(status == READY || status == BROKEN);
        // Registers and rings are as they were: nothing was written by way of a descriptor.
        prop_assert_eq!(arena.register(Register::SUBMIT_TAIL).load(Ordering::Relaxed), tail);
        prop_assert_eq!(arena.wide_register(Register::MAGIC).load(Ordering::Relaxed), MAGIC);
        // A reset makes it whole.
        arena.register(Register::SUBMIT_TAIL).store(0, Ordering::Relaxed);
        arena.register(Register::COMPLETE_HEAD).store(0, Ordering::Relaxed);
        arena.register(Register::RESET).store(1, Ordering::Relaxed);
        model.doorbell(0);
        prop_assert_eq!(arena.register(Register::RESET_DONE).load(Ordering::Relaxed), 1);
        prop_assert_eq!(arena.register(Register::STATUS).load(Ordering::Relaxed), READY);
    }
}
